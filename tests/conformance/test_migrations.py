"""Tests migrations on both engines: each runs once and completely, or is refused."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from outbox import database
from outbox.clock import SystemClock
from outbox.database.migrate import migrate, pending
from outbox.database.migration_files import DIGESTS, read_migrations
from outbox.database.transaction import Database, Tx
from outbox.errors import CannotStart
from outbox.ids import Ids
from tests.support.databases import PostgresServer

FIRST = """
-- A comment; with a semicolon;
create table birds (
  name text /*postgres collate "C"*/ primary key
);
/*postgres
create function twice(n bigint) returns bigint language sql
  as $$ select n * 2; $$;
*/
insert into birds (name) values ('sabia');
"""


@pytest.fixture(params=["sqlite", "postgres"])
async def bare(
    request: pytest.FixtureRequest, tmp_path: Path, postgres_server: PostgresServer
) -> AsyncIterator[str]:
    """Return the address of an empty database."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/bare.db"
        return
    url = await postgres_server.empty()
    yield url
    await postgres_server.drop(url)


@pytest.fixture
async def db(bare: str) -> AsyncIterator[Database]:
    db = await database.open(bare, clock=SystemClock(), ids=Ids())
    yield db
    await db.close()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "steps"
    folder.mkdir()
    (folder / "0001_birds.sql").write_text(FIRST)
    return folder


async def birds(tx: Tx) -> list[str]:
    return [row["name"] for row in await tx.all("select name from birds order by name")]


async def test_a_failed_migration_rolls_back_and_can_be_retried(db: Database, folder: Path) -> None:
    sources = [("test", folder)]
    await migrate(db, sources)
    second = folder / "0002_more.sql"
    second.write_text("insert into birds (name) values ('arara');\ninsert into fish values (1);\n")
    with pytest.raises(Exception, match="fish"):
        await migrate(db, sources)
    assert await db.read(birds) == ["sabia"]
    second.write_text("insert into birds (name) values ('arara');\n")
    assert await migrate(db, sources) == ["0002_more"]
    assert await db.read(birds) == ["arara", "sabia"]


async def test_a_failed_migration_takes_back_those_before_it(db: Database, folder: Path) -> None:
    """So that the release that was there before starts again."""
    (folder / "0002_more.sql").write_text("insert into fish values (1);\n")
    with pytest.raises(Exception, match="fish"):
        await migrate(db, [("test", folder)])
    assert await pending(db, [("test", folder)]) == ["0001_birds", "0002_more"]


async def test_two_concurrent_processes_apply_each_migration_once(bare: str, folder: Path) -> None:
    dbs = [await database.open(bare, clock=SystemClock(), ids=Ids()) for _ in range(3)]
    applied = await asyncio.gather(*(migrate(db, [("test", folder)]) for db in dbs))
    assert sorted(len(names) for names in applied) == [0, 0, 1]
    assert await dbs[0].read(birds) == ["sabia"]
    for db in dbs:
        await db.close()


@pytest.fixture
def second(tmp_path: Path) -> Path:
    """Return the folder of a second component."""
    folder = tmp_path / "second"
    folder.mkdir()
    (folder / "0001_fish.sql").write_text("create table fish (name text);\n")
    return folder


async def ledger(tx: Tx) -> list[tuple[object, ...]]:
    rows = await tx.all("select * from schema_migrations order by component, number")
    return [tuple(row[name] for name in row.keys()) for row in rows]  # noqa: SIM118 - of a Row


async def set_checksum(tx: Tx, checksum: str) -> None:
    await tx.run("update schema_migrations set checksum = $1 where name = '0001_birds'", checksum)


async def test_a_changed_statement_is_refused(db: Database, folder: Path) -> None:
    await migrate(db, [("test", folder)])
    (folder / "0001_birds.sql").write_text(FIRST.replace("sabia", "ema"))
    with pytest.raises(CannotStart, match="test 0001_birds was changed"):
        await migrate(db, [("test", folder)])


async def test_comments_and_white_space_may_differ(db: Database, folder: Path) -> None:
    await migrate(db, [("test", folder)])
    (folder / "0001_birds.sql").write_text(
        FIRST.replace("-- A comment", "-- Another").replace("create table ", "create\n\n  table ")
    )
    assert await migrate(db, [("test", folder)]) == []
    (folder / "0001_birds.sql").write_text(FIRST.replace("'sabia'", "' sabia'"))
    with pytest.raises(CannotStart, match="was changed"):
        await migrate(db, [("test", folder)])


async def test_the_checksum_of_a_released_text_is_accepted_and_rewritten(
    db: Database, folder: Path
) -> None:
    await migrate(db, [("test", folder)])
    before = await db.read(ledger)
    await db.write(set_checksum, "older")
    with pytest.raises(CannotStart, match="was changed"):
        await migrate(db, [("test", folder)])
    (folder / DIGESTS).write_text("# name statements texts\n0001_birds checksum old older\n")
    assert await pending(db, [("test", folder)]) == []
    assert await migrate(db, [("test", folder)]) == []
    assert await db.read(ledger) == before


async def test_a_question_changes_nothing(db: Database, folder: Path) -> None:
    assert await pending(db, [("test", folder)]) == ["0001_birds"]
    with pytest.raises(Exception, match="schema_migrations"):
        await db.read(ledger)


async def test_a_newer_schema_is_refused(db: Database, folder: Path) -> None:
    (folder / "0002_more.sql").write_text("insert into birds (name) values ('arara');\n")
    await migrate(db, [("test", folder)])
    (folder / "0002_more.sql").unlink()
    with pytest.raises(CannotStart, match="newer than this program"):
        await migrate(db, [("test", folder)])


async def test_a_newer_schema_is_used_when_all_that_is_new_is_additive(
    db: Database, folder: Path
) -> None:
    for number in (2, 3):
        text = f"-- additive\ncreate table fish_{number} (name text);\n"
        (folder / f"000{number}_more.sql").write_text(text)
    await migrate(db, [("test", folder)])
    for number in (2, 3):
        (folder / f"000{number}_more.sql").unlink()
    assert await migrate(db, [("test", folder)]) == []
    await db.write(_no_longer_additive)
    with pytest.raises(CannotStart, match="newer than this program"):
        await migrate(db, [("test", folder)])


async def _no_longer_additive(tx: Tx) -> None:
    await tx.run("update schema_migrations set additive = false where number = 2")


async def test_a_gap_in_the_database_is_refused(db: Database, folder: Path) -> None:
    (folder / "0002_more.sql").write_text("insert into birds (name) values ('arara');\n")
    await migrate(db, [("test", folder)])
    await db.write(_without_the_first)
    with pytest.raises(CannotStart, match="has the migration test 0002 but not 0001"):
        await migrate(db, [("test", folder)])


async def _without_the_first(tx: Tx) -> None:
    await tx.run("delete from schema_migrations where number = 1")


def test_a_gap_in_the_numbers_is_refused(folder: Path) -> None:
    (folder / "0003_late.sql").write_text("select 1;\n")
    with pytest.raises(CannotStart, match="0003_late"):
        read_migrations("test", folder)


STEP = """
async def step(tx):
    row = await tx.one("select name from birds where name = upper(name) order by name limit 1")
    if row is None:
        return False
    await tx.run("update birds set name = lower(name) where name = $1", row["name"])
    return True
"""


async def test_a_python_migration_runs_batch_by_batch(db: Database, folder: Path) -> None:
    (folder / "0002_more.sql").write_text("insert into birds (name) values ('ARARA'), ('EMA');\n")
    (folder / "0003_lower.py").write_text(STEP)
    sources = [("test", folder)]
    assert await migrate(db, sources) == ["0001_birds", "0002_more", "0003_lower"]
    assert await db.read(birds) == ["arara", "ema", "sabia"]
    assert await migrate(db, sources) == []


async def test_a_python_migration_continues_after_a_failure(db: Database, folder: Path) -> None:
    (folder / "0002_more.sql").write_text("insert into birds (name) values ('ARARA'), ('EMA');\n")
    failing = STEP.replace(
        "await tx.run", 'assert row["name"] != "EMA", "a kill"\n    await tx.run'
    )
    (folder / "0003_lower.py").write_text(failing)
    sources = [("test", folder)]
    with pytest.raises(AssertionError, match="a kill"):
        await migrate(db, sources)
    assert await db.read(birds) == ["EMA", "arara", "sabia"]
    assert await pending(db, sources) == ["0003_lower"]
    (folder / "0003_lower.py").write_text(STEP)
    assert await migrate(db, sources) == ["0003_lower"]
    assert await db.read(birds) == ["arara", "ema", "sabia"]
