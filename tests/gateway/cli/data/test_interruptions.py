"""A command that does not come to its end leaves everything as it was."""

from __future__ import annotations

import asyncio
import signal
import sqlite3
import subprocess
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import asyncpg
import pytest

from tests.support.cluster import own_server
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


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A folder with a database and its backup."""
    assert command("migrate", folder=tmp_path).returncode == 0
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


STANDBYS = "synchronous_standby_names"
WAITS = "select count(*) = 1 from pg_stat_activity where wait_event = 'SyncRep'"


@asynccontextmanager
async def committing(
    folder: Path, *words: str
) -> AsyncIterator[tuple[Process, asyncpg.Connection]]:
    """Run a command into a PostgreSQL server whose COMMITs wait for a standby that is not there."""
    async with own_server() as cluster:
        await cluster.run("alter system set synchronous_standby_names = 'nobody'")
        await cluster.run("select pg_reload_conf()")
        admin = await asyncpg.connect(cluster.url)
        await until(lambda: admin.fetchval("select current_setting($1) <> ''", STANDBYS))
        words = tuple(word.format(url=cluster.url) for word in words)
        settings = {} if "--to" in words else {"CARTEIRO_DATABASE__URL": cluster.url}
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "gateway", *words,
            cwd=folder, env=environment(folder, **settings), stdout=PIPE, stderr=PIPE,
        )  # fmt: skip
        try:
            await until(lambda: admin.fetchval(WAITS))
            yield process, admin
        finally:
            if process.returncode is None:
                process.kill()
            await admin.close()


@pytest.mark.parametrize("words", [("copy", "--to", "{url}"), ("restore", "b", "--overwrite")])
async def test_a_commit_that_is_under_way_takes_place(small: Path, words: tuple[str, ...]) -> None:
    async with committing(small, *words) as (process, admin):
        process.send_signal(signal.SIGTERM)
        await admin.execute("alter system reset synchronous_standby_names")
        await admin.execute("select pg_reload_conf()")
        out, err = await process.communicate()
        assert (process.returncode, b"nothing is changed" in err) == (0, False), err
        assert out.split()[0] in (b"Copied", b"Restored")
        assert (small / "carteiro.db.copied").exists() == ("copy" in words)


async def test_a_copy_whose_commit_is_left_keeps_servers_from_the_file(small: Path) -> None:
    async with committing(small, "copy", "--to", "{url}") as (process, admin):
        process.send_signal(signal.SIGTERM)
        process.send_signal(signal.SIGINT)
        _, err = await process.communicate()
        assert process.returncode == 1
        assert b"nothing is changed" not in err
        assert b"it may have been written; look first" in err
        assert (small / "carteiro.db.copied").exists()
        # It has been: only the standby does not have it.
        await until(lambda: admin.fetchval("select to_regclass('users') is not null"))


def test_a_backup_that_is_written_is_no_longer_ended(small: Path) -> None:
    """The lock of another writer holds it up when it stores its time."""
    with (
        closing(sqlite3.connect(small / "carteiro.db", isolation_level=None)) as db,
        subprocess.Popen(
            [sys.executable, "-m", "gateway", "backup", "c"],
            cwd=small, env=environment(small), stderr=subprocess.PIPE, text=True,
        ) as process,
    ):  # fmt: skip
        db.execute("begin immediate")
        try:
            wait_until((small / "c").exists)
            process.send_signal(signal.SIGTERM)
            _, err = process.communicate(timeout=HANG_SECONDS)
        finally:
            process.kill()
    assert (process.returncode, "nothing is changed" in err) == (0, False), err
    assert command("restore", "c", "--check", folder=small).returncode == 0


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
