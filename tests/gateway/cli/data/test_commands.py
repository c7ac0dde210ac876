"""`carteiro backup`, `restore` and `copy`: what they refuse, what they leave, and what they say."""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
import stat
import subprocess
from contextlib import closing
from pathlib import Path

import asyncpg
import msgspec
import pytest

from gateway.cli.data.archive import ArchiveReader, ArchiveWriter, Manifest
from outbox import database
from outbox.clock import SystemClock
from outbox.database.database_urls import without_password
from outbox.database.sqlite.file import File
from outbox.database.transfer import Applied, Table
from outbox.errors import CannotStart
from outbox.ids import Ids
from tests.support.process import command

ANA = "ana@example.com"
KEY_LINE = "0123abcd AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA= 2026-01-01T00:00:00Z\n"
OTHER_LINE = KEY_LINE.replace("0123abcd", "89abcdef")


def run(folder: Path, *words: str, url: str | None = None) -> subprocess.CompletedProcess[str]:
    settings = {} if url is None else {"CARTEIRO_DATABASE__URL": url}
    return command(*words, folder=folder, **settings)


def done(folder: Path, *words: str, url: str | None = None) -> str:
    ended = run(folder, *words, url=url)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def refused(folder: Path, *words: str, url: str | None = None) -> str:
    """Return the one line of the refusal."""
    ended = run(folder, *words, url=url)
    assert (ended.returncode, ended.stdout) == (1, ""), ended
    [line] = [line for line in ended.stderr.splitlines() if line.startswith("carteiro: ")]
    assert "Traceback" not in ended.stderr
    return line.removeprefix("carteiro: ")


def add(folder: Path, email: str = ANA, url: str | None = None) -> None:
    settings = {} if url is None else {"CARTEIRO_DATABASE__URL": url}
    ended = command(
        "user", "add", email, "--name", "Ana", "--password-stdin",
        folder=folder, stdin="correct horse\n", **settings,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr


def emails(folder: Path, url: str | None = None) -> set[str]:
    lines = done(folder, "user", "list", url=url).splitlines()[1:]
    return {line.split()[0] for line in lines}


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a database, its key file and a backup."""
    folder = tmp_path_factory.mktemp("template")
    add(folder)
    key = folder / "carteiro.key"
    key.write_text(KEY_LINE)
    key.chmod(0o600)
    done(folder, "backup", "b")
    return folder


@pytest.fixture
def folder(template: Path, tmp_path: Path) -> Path:
    """A copy of the template."""
    shutil.copytree(template, tmp_path, dirs_exist_ok=True)
    return tmp_path


def stored_time(folder: Path) -> int:
    with closing(sqlite3.connect(folder / "carteiro.db")) as db:
        return int(db.execute("select backed_up_at from outbox_state").fetchone()[0])


def made_at(file: Path) -> int:
    archive = ArchiveReader(file)
    archive.close()
    return archive.manifest.made_at


def test_the_database_stores_the_time_of_its_last_backup(folder: Path) -> None:
    first = stored_time(folder)
    assert first == made_at(folder / "b")
    refused(folder, "backup", "b")
    assert stored_time(folder) == first
    done(folder, "backup", "c")
    second = stored_time(folder)
    assert second == made_at(folder / "c") > first
    with closing(sqlite3.connect(folder / "carteiro.db")) as db, db:
        db.execute("delete from schema_migrations where number >= 15 and component = 'outbox'")
    told = done(folder, "backup", "d")
    assert "Note: the database could not store the time of this backup: its schema is older" in told
    assert stored_time(folder) == second


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()} - {"carteiro.db-wal", "carteiro.db-shm"}


def test_a_backup_is_private_and_says_that_the_key_is_not_in_it(folder: Path) -> None:
    before = os.umask(0)
    try:
        told = done(folder, "backup", "c")
    finally:
        os.umask(before)
    assert stat.S_IMODE((folder / "c").stat().st_mode) == 0o600
    assert f"The key file {folder / 'carteiro.key'} is not in it" in told
    assert KEY_LINE.split()[1].encode() not in (folder / "c").read_bytes()
    assert names(folder) == {"carteiro.db", "carteiro.key", "b", "c"}


def test_a_backup_needs_a_database_and_a_folder(tmp_path: Path) -> None:
    assert refused(tmp_path, "backup", "b").startswith("there is no database")
    (tmp_path / "carteiro.db").touch()
    assert refused(tmp_path, "backup", "b") == "the database is empty"
    add(tmp_path)
    assert (
        refused(tmp_path, "backup", "no/b") == "cannot write no/b.part: No such file or directory"
    )
    assert names(tmp_path) == {"carteiro.db"}


def test_the_key_file_travels_when_told_to(folder: Path, tmp_path: Path) -> None:
    assert "The keys are in it" in done(folder, "backup", "c", "--with-key")
    (there := tmp_path / "there").mkdir()
    done(there, "restore", str(folder / "c"))
    assert (there / "carteiro.key").read_text() == KEY_LINE
    assert stat.S_IMODE((there / "carteiro.key").stat().st_mode) == 0o600
    assert stat.S_IMODE((there / "carteiro.db").stat().st_mode) == 0o600
    assert emails(there) == {ANA}


def test_with_key_needs_a_key(tmp_path: Path) -> None:
    add(tmp_path)
    assert refused(tmp_path, "backup", "b", "--with-key").startswith("there is no key file")


@pytest.mark.parametrize("with_key", [False, True])
def test_a_restore_beside_other_keys_is_refused(
    folder: Path, tmp_path: Path, with_key: bool
) -> None:
    """With them a server would end each delivery, because it cannot decrypt its secret."""
    done(folder, "backup", "c", *["--with-key"] * with_key)
    (there := tmp_path / "there").mkdir()
    (there / "carteiro.key").write_text(OTHER_LINE)
    (there / "carteiro.key").chmod(0o600)
    told = refused(there, "restore", str(folder / "c"))
    assert "lacks the key 0123abcd" in told
    assert ("move it away" in told) == with_key
    assert names(there) == {"carteiro.key"}


def test_a_restore_keeps_a_ring_that_has_more_keys_and_ends_the_mark_of_a_copy(
    folder: Path,
) -> None:
    (folder / "carteiro.key").write_text(KEY_LINE + OTHER_LINE)
    mark = folder / "carteiro.db.copied"
    mark.write_text("carteiro.db was copied to postgresql://other/db\n")
    done(folder, "restore", "b", "--overwrite")
    assert (folder / "carteiro.key").read_text() == KEY_LINE + OTHER_LINE
    assert not mark.exists()


def test_data_is_overwritten_only_when_told_to(folder: Path, target: str) -> None:
    add(folder, "new@example.com", url=target)
    told = refused(folder, "restore", "b", url=target)
    assert "has data" in told
    assert "--overwrite" in told
    assert emails(folder, target) == {"new@example.com"}
    done(folder, "restore", "b", "--overwrite", url=target)
    assert emails(folder, target) == {ANA}


def test_an_empty_schema_is_no_data(folder: Path, target: str) -> None:
    done(folder, "migrate", url=target)
    done(folder, "restore", "b", url=target)
    assert emails(folder, target) == {ANA}


def test_a_copy_stays_paused_until_it_is_resumed(folder: Path, empty_postgres: str) -> None:
    paused = "It is paused: no webhook sends, no mail is sent"
    assert paused not in done(folder, "restore", "b", "--overwrite")
    assert done(folder, "resume") == "The database is not paused.\n"
    assert paused in done(folder, "restore", "b", "--overwrite", "--pause")
    # Its backups and copies are paused, too.
    done(folder, "backup", "c")
    assert paused in done(folder, "restore", "c", "--overwrite")
    assert paused in done(folder, "copy", "--to", empty_postgres)
    assert "Resumed: 0 waiting mails" in done(folder, "resume", url=empty_postgres)
    assert done(folder, "resume", url=empty_postgres) == "The database is not paused.\n"
    assert paused not in done(folder, "restore", "b", "--overwrite")
    assert done(folder, "resume") == "The database is not paused.\n"


def test_a_damaged_backup_changes_nothing(folder: Path, target: str) -> None:
    add(folder, "new@example.com", url=target)
    content = (folder / "b").read_bytes()
    (folder / "b").write_bytes(content[:-20])
    before = names(folder)
    assert "is truncated" in refused(folder, "restore", "b", "--overwrite", url=target)
    assert emails(folder, target) == {"new@example.com"}
    assert names(folder) <= before | {"target.db.lock"}
    assert "is truncated" in refused(folder, "restore", "b", "--check")


def test_a_check_changes_nothing(folder: Path) -> None:
    before = {path: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    assert "is whole: " in done(folder, "restore", "--check", "b")
    assert {path: path.read_bytes() for path in folder.iterdir() if path.is_file()} == before


def test_a_restore_on_a_new_machine_needs_nothing_but_the_backup(folder: Path) -> None:
    new = folder / "new"
    new.mkdir()
    for name in ("b", "carteiro.key"):
        shutil.move(folder / name, new / name)
    # As without a configuration: the folder data/ is not there either.
    ended = command("restore", "b", folder=new, CARTEIRO_DATABASE__URL="sqlite:///data/carteiro.db")
    assert ended.returncode == 0, ended.stderr
    assert emails(new, "sqlite:///data/carteiro.db") == {ANA}


def test_a_restore_without_its_folder_is_refused(folder: Path) -> None:
    told = refused(folder, "restore", "b", url=f"sqlite:///{folder}/missing/carteiro.db")
    assert "there is no folder" in told


def test_an_open_file_is_not_replaced(folder: Path) -> None:
    """Another process would write into a file that has no name any more."""
    other = sqlite3.connect(folder / "carteiro.db")
    try:
        other.execute("begin")
        other.execute("select count(*) from users").fetchall()
        assert "another process uses" in refused(folder, "restore", "b", "--overwrite")
    finally:
        other.close()
    done(folder, "restore", "b", "--overwrite")


def test_a_damaged_database_is_kept_beside_the_restored_one(folder: Path) -> None:
    (folder / "carteiro.db").write_bytes(b"no database " * 1000)
    assert "is damaged" in refused(folder, "restore", "b")
    done(folder, "restore", "b", "--overwrite")
    assert emails(folder) == {ANA}
    assert (folder / "carteiro.db.damaged").read_bytes().startswith(b"no database")


def test_nothing_is_restored_or_copied_beside_a_server(folder: Path, empty_postgres: str) -> None:
    server = File(folder / "carteiro.db", SystemClock(), True, "full")
    server.lock()
    try:
        assert "already in use by server process" in refused(folder, "restore", "b", "--overwrite")
        assert "already in use by server process" in refused(folder, "copy", "--to", empty_postgres)
        done(folder, "backup", "while-it-serves")
    finally:
        server.release()
    done(folder, "restore", "--check", "while-it-serves")
    done(folder, "restore", "b", url=empty_postgres)
    with asyncio.Runner() as runner:
        node = runner.run(_node(empty_postgres))
        told = refused(folder, "restore", "b", "--overwrite", url=empty_postgres)
        runner.run(node.close())
    assert "use this PostgreSQL database; stop all its servers" in told


async def _node(url: str) -> asyncpg.Connection:
    return await asyncpg.connect(url, server_settings={"application_name": "carteiro"})


def served(folder: Path) -> None:
    """Open the file as a server does."""

    async def opened() -> None:
        url = f"sqlite:///{folder / 'carteiro.db'}"
        db = await database.open(url, clock=SystemClock(), ids=Ids(), serving=True)
        await db.close()

    asyncio.run(opened())


def test_after_a_copy_only_the_copy_serves(folder: Path, empty_postgres: str) -> None:
    told = done(folder, "copy", "--to", empty_postgres)
    assert "can no longer be served" in told
    assert emails(folder, empty_postgres) == {ANA}
    mark = folder / "carteiro.db.copied"
    assert stat.S_IMODE(mark.stat().st_mode) == 0o600
    with pytest.raises(CannotStart, match="was copied to postgresql://"):
        served(folder)
    # Its data is still there, and can be copied back to safety.
    assert emails(folder) == {ANA}
    done(folder, "backup", "c")
    assert "has data" in refused(folder, "copy", "--to", empty_postgres)
    assert mark.exists()


def test_a_copied_file_goes_nowhere_else(folder: Path, empty_postgres: str) -> None:
    (folder / "carteiro.db.copied").write_text("carteiro.db was copied to postgresql://other/db\n")
    assert "was copied to postgresql://other/db" in refused(folder, "copy", "--to", empty_postgres)


def test_an_interrupted_copy_can_be_repeated(folder: Path, empty_postgres: str) -> None:
    """Killed between the mark and the COMMIT: the target is empty, and the file does not serve."""
    file = folder / "carteiro.db"
    mark = folder / "carteiro.db.copied"
    mark.write_text(f"{file} was copied to {without_password(empty_postgres)}\n")
    with pytest.raises(CannotStart, match="was copied to"):
        served(folder)
    done(folder, "copy", "--to", empty_postgres)
    assert emails(folder, empty_postgres) == {ANA}
    assert mark.exists()


def test_a_refused_copy_leaves_no_mark(folder: Path, empty_postgres: str) -> None:
    add(folder, "new@example.com", url=empty_postgres)
    assert "has data" in refused(folder, "copy", "--to", empty_postgres)
    assert not (folder / "carteiro.db.copied").exists()
    told = refused(folder, "copy", "--to", f"sqlite:///{folder}/other.db")
    assert told.startswith("copy goes from SQLite to PostgreSQL")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ("update users set created_at = 'soon'", "users.created_at has a value of the type str"),
        ("insert into figures values ('x', 1, 1, 'x', 1, 1, 1 << 40, 0,0,0,0,0,0,0,0,0,0,0,0,0)",
         "PostgreSQL cannot store a value of figures"),
    ],
)  # fmt: skip
def test_a_value_that_postgres_cannot_store_is_named(
    folder: Path, empty_postgres: str, change: str, told: str
) -> None:
    with closing(sqlite3.connect(folder / "carteiro.db")) as db, db:
        db.execute(change)
    assert told in refused(folder, "copy", "--to", empty_postgres)
    assert not (folder / "carteiro.db.copied").exists()


def test_texts_that_postgres_cannot_store_are_replaced_and_told(
    folder: Path, empty_postgres: str
) -> None:
    with closing(sqlite3.connect(folder / "carteiro.db")) as db, db:
        db.execute("update users set name = cast(x'41ff42' as text), timezone = 'U' || char(0)")
    told = done(folder, "copy", "--to", empty_postgres)
    assert "Note: users has text that is not UTF-8; replacement characters stand in for it." in told
    assert "Note: users had 1 texts with the character NUL" in told
    assert "A\ufffdB   U\ufffd " in done(folder, "user", "list", url=empty_postgres)


def test_no_password_of_a_url_is_shown(folder: Path) -> None:
    told = refused(folder, "copy", "--to", "postgresql://carteiro:hunter2@127.0.0.1:1/carteiro")
    assert "hunter2" not in told


def forged(folder: Path, name: str, **changes: object) -> None:
    """Write a backup whose manifest somebody has changed; all its digests are right."""
    source = ArchiveReader(folder / "b")
    manifest: Manifest = msgspec.structs.replace(source.manifest, **changes)
    counts = dict.fromkeys((table.name for table in manifest.tables), 0)
    with (folder / name).open("wb", buffering=0) as handle:
        archive = ArchiveWriter(handle, name, manifest)
        for table, rows in source.rows():
            archive.table(table.name)
            archive.rows(rows)
            counts[table.name] += len(rows)
        archive.end(counts)
    source.close()


def tables_of(folder: Path) -> tuple[Table, ...]:
    archive = ArchiveReader(folder / "b")
    archive.close()
    return archive.manifest.tables


@pytest.mark.parametrize("name", ["users where 0; drop table users", "sqlite_sequence", "nodes"])
def test_a_backup_names_no_table_but_ours(folder: Path, target: str, name: str) -> None:
    """The name becomes part of SQL, which may do more than a restore."""
    add(folder, "new@example.com", url=target)
    forged(folder, "c", tables=(*tables_of(folder), Table(name, (), 0)))
    for words in (["--overwrite"], ["--check"]):
        told = refused(folder, "restore", "c", *words, url=target)
        assert told == f"c has the table {name!r}, which is not one of a backup"
    assert emails(folder, target) == {"new@example.com"}


def test_a_table_twice_or_without_columns_is_refused(folder: Path) -> None:
    first, *others = tables_of(folder)
    forged(folder, "c", tables=(first, first, *others))
    assert "has a table twice" in refused(folder, "restore", "c", "--overwrite")
    forged(folder, "d", tables=(Table(first.name, (), 0), *others))
    assert "without columns" in refused(folder, "restore", "--check", "d")


@pytest.mark.parametrize("keys", ["ключ\n", "hello\n", OTHER_LINE, ""])
def test_a_backup_brings_the_keys_that_it_needs_and_nothing_else(
    folder: Path, tmp_path: Path, keys: str
) -> None:
    """A server does not start on another key file, and a second restore would keep it."""
    forged(folder, "c", keys=keys)
    (there := tmp_path / "there").mkdir()
    assert "the key file in " in refused(there, "restore", str(folder / "c"))
    assert names(there) == set()


def test_what_a_backup_says_reaches_no_terminal_as_a_command(folder: Path) -> None:
    forged(folder, "c", migrations=(Applied("outbox", 999, "\x1b]0;title\x07\nroot", "abc"),))
    told = refused(folder, "restore", "c")
    assert told.isprintable()
    assert "newer than this program" in told
