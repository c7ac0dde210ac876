"""Everything moves: each table and column of the schema, between both engines."""

import asyncio
from pathlib import Path

from tests.support import every_table
from tests.support.databases import SqliteFiles
from tests.support.process import command


def run(*words: str, url: str, folder: Path) -> str:
    done = command(*words, folder=folder, CARTEIRO_DATABASE__URL=url)
    assert done.returncode == 0, done.stderr
    return done.stdout


def template(sqlite_files: SqliteFiles, folder: Path) -> str:
    folder.mkdir()
    return asyncio.run(sqlite_files.fresh(folder)).removeprefix("sqlite:///")


def test_a_backup_has_every_table_and_restores_on_both_engines(
    db_url: str, target: str, tmp_path: Path, sqlite_files: SqliteFiles
) -> None:
    rows = every_table.rows_for(template(sqlite_files, tmp_path / "template"))
    assert len(rows) > 40
    asyncio.run(every_table.fill(db_url, rows))
    before = asyncio.run(every_table.read(db_url))
    assert all(before.values()), [table for table, content in before.items() if not content]
    run("backup", "all.backup", url=db_url, folder=tmp_path)
    run("restore", "all.backup", url=target, folder=tmp_path)
    assert asyncio.run(every_table.read(target)) == before


def test_copy_moves_every_table(
    empty_postgres: str, tmp_path: Path, sqlite_files: SqliteFiles
) -> None:
    file = template(sqlite_files, tmp_path / "source")
    source = f"sqlite:///{file}"
    asyncio.run(every_table.fill(source, every_table.rows_for(file)))
    before = asyncio.run(every_table.read(source))
    run("copy", "--to", empty_postgres, url=source, folder=tmp_path)
    assert asyncio.run(every_table.read(empty_postgres)) == before


def test_the_engines_differ_in_the_columns_that_are_known(
    empty_postgres: str, tmp_path: Path, sqlite_files: SqliteFiles
) -> None:
    """A column that one engine alone has would be lost on the way without a word."""
    file = template(sqlite_files, tmp_path / "template")
    run("migrate", url=empty_postgres, folder=tmp_path)
    asyncio.run(every_table.fill(empty_postgres, every_table.rows_for(file)))
    here = {
        table: set(rows[0]) for table, rows in asyncio.run(every_table.read(empty_postgres)).items()
    }
    there = {
        table: {name for name in rows[0] if (table, name) not in every_table.REBUILT}
        for table, rows in every_table.rows_for(file).items()
    }
    assert here == there
