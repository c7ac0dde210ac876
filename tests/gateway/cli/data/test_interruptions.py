"""A command that does not come to its end leaves everything as it was."""

from __future__ import annotations

import asyncio
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import asyncpg
import pytest

from tests.support.process import command, environment
from tests.support.volume import tmpfs
from tests.support.waiting import HANG_SECONDS, until, wait_until

pytestmark = pytest.mark.proof
ROWS = 60_000
SOME_BYTES = 2_000_000
FILL = """
insert into tallies (owner_id, kind, slot, n)
with recursive c (n) as (select 1 union all select n + 1 from c where n < ?)
select printf('%024d', n), hex(randomblob(200)), 0, n from c
"""


@pytest.fixture
def large(tmp_path: Path) -> Path:
    """A folder with a database that takes a while, and its backup."""
    assert command("migrate", folder=tmp_path).returncode == 0
    with closing(sqlite3.connect(tmp_path / "carteiro.db")) as db, db:
        db.execute(FILL, (ROWS,))
    assert command("backup", "b", folder=tmp_path).returncode == 0
    return tmp_path


def files(folder: Path) -> set[str]:
    """Return the names of its files, without those that SQLite makes and removes beside its own."""
    return {path.name for path in folder.iterdir()} - {"carteiro.db-wal", "carteiro.db-shm"}


def count(folder: Path) -> int:
    with closing(sqlite3.connect(folder / "carteiro.db")) as db:
        [(rows,)] = db.execute("select count(*) from tallies").fetchall()
    return int(rows)


def ended(folder: Path, number: signal.Signals, at: Path, *words: str) -> tuple[int, str]:
    """Start a command, send the signal when `at` has grown; return status and standard error.

    It steps back behind all others, so that it does not come to its end before this process looks.
    """
    with subprocess.Popen(
        ["nice", "-n", "19", sys.executable, "-m", "gateway", *words],
        cwd=folder, env=environment(folder), stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        try:
            wait_until(
                lambda: (
                    process.poll() is not None or (at.exists() and at.stat().st_size >= SOME_BYTES)
                )
            )
            assert process.poll() is None, process.communicate()[1]
            process.send_signal(number)
            _, err = process.communicate(timeout=HANG_SECONDS)
        finally:
            process.kill()
    return process.returncode, err


@pytest.mark.parametrize(
    ("number", "status"),
    [(signal.SIGINT, 130), (signal.SIGTERM, 1), (signal.SIGKILL, -signal.SIGKILL)],
)
def test_an_ended_backup_leaves_no_file(large: Path, number: signal.Signals, status: int) -> None:
    before = files(large)
    part = large / "c.part"
    found, err = ended(large, number, part, "backup", "c")
    assert found == status, err
    assert "Traceback" not in err
    if number == signal.SIGTERM:
        assert "carteiro: ended by SIGTERM; nothing is changed\n" in err
    left = files(large) - before
    # What a kill leaves has another name, and the next backup replaces it.
    assert left == ({"c.part"} if number == signal.SIGKILL else set())
    assert command("backup", "c", folder=large).returncode == 0
    assert files(large) - before == {"c"}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_an_ended_restore_leaves_the_database(large: Path, number: signal.Signals) -> None:
    with closing(sqlite3.connect(large / "carteiro.db")) as db, db:
        db.execute("delete from tallies where n > 10")
    new = large / "carteiro.db.new"
    _, err = ended(large, number, new, "restore", "b", "--overwrite")
    assert "Traceback" not in err
    assert count(large) == 10
    assert new.exists() == (number == signal.SIGKILL)
    assert command("restore", "b", "--overwrite", folder=large).returncode == 0
    assert count(large) == ROWS
    assert not list(large.glob("carteiro.db.new*"))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_an_ended_copy_leaves_both_databases(
    large: Path, empty_postgres: str, number: signal.Signals
) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "gateway", "copy", "--to", empty_postgres],
        cwd=large, env=environment(large), stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        try:
            asyncio.run(_until_loading(empty_postgres))
            process.send_signal(number)
            _, err = process.communicate(timeout=HANG_SECONDS)
        finally:
            process.kill()
    assert process.returncode != 0
    assert "Traceback" not in err
    assert not (large / "carteiro.db.copied").exists()
    assert asyncio.run(_tables_after(empty_postgres)) == 0
    assert command("copy", "--to", empty_postgres, folder=large).returncode == 0


LOADING = """
select count(*) from pg_stat_progress_copy
where tuples_processed > 0 and datname = current_database()
"""
ENDED = """
select count(*) = 0 from pg_stat_activity
where application_name = 'carteiro' and datname = current_database()
"""


async def _until_loading(url: str) -> None:
    """Wait until a session copies rows."""
    connection = await asyncpg.connect(url)
    try:
        await until(lambda: connection.fetchval(LOADING))
    finally:
        await connection.close()


async def _tables_after(url: str) -> int:
    """Return the number of tables when the session of the copy has ended."""
    connection = await asyncpg.connect(url)
    try:
        await until(lambda: connection.fetchval(ENDED))
        tables = "select count(*) from pg_tables where schemaname = current_schema()"
        return int(await connection.fetchval(tables))
    finally:
        await connection.close()


def test_a_full_disk_is_one_line_and_changes_nothing(large: Path) -> None:
    with tmpfs(large, 4) as disk:
        done = command("backup", str(disk / "c"), folder=large)
        assert (done.returncode, files(disk)) == (1, set())
        assert done.stderr.endswith(
            f"carteiro: cannot write {disk / 'c'}: No space left on device; nothing is kept\n"
        )
        url = f"sqlite:///{disk / 'carteiro.db'}"
        done = command("restore", "b", folder=large, CARTEIRO_DATABASE__URL=url)
        assert done.returncode == 1
        assert files(disk) == {"carteiro.db.lock"}
        [line] = [line for line in done.stderr.splitlines() if line.startswith("carteiro: ")]
        assert "database or disk is full" in line
