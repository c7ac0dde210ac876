"""SQLite: batches, transactions that the engine ends, durability settings, the lock."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest

from outbox import database
from outbox.clock import SystemClock
from outbox.database.transaction import Database, Tx
from outbox.errors import CannotStart, UnitError
from outbox.ids import Ids
from tests.support.clocks import Wall
from tests.support.drain import add_webhook, ring


@pytest.fixture
async def file(tmp_path: Path) -> AsyncIterator[Database]:
    db = await database.open(
        f"sqlite:///{tmp_path}/one.db", clock=SystemClock(), ids=Ids(), serving=True
    )

    async def table(tx: Tx) -> None:
        await tx.run("create table notes (name text primary key, text blob not null)")

    await db.write(table)
    yield db
    await db.close()


async def note(tx: Tx, name: str, size: int = 1) -> str:
    await tx.run("insert into notes (name, text) values ($1, $2)", name, b"x" * size)
    return name


async def noted(tx: Tx) -> set[str]:
    return {row["name"] for row in await tx.all("select name from notes")}


async def pragma(tx: Tx, name: str) -> object:
    row = await tx.one(f"pragma {name}")
    assert row is not None
    return row[0]


async def test_every_commit_is_synced_to_the_disk(file: Database) -> None:
    assert await file.write(pragma, "synchronous") == 2
    assert await file.write(pragma, "journal_mode") == "wal"
    assert await file.write(pragma, "foreign_keys") == 1


async def test_a_unit_that_awaits_something_else_is_named(file: Database) -> None:
    async def wrong(tx: Tx) -> None:
        await asyncio.sleep(0)

    with pytest.raises(UnitError, match=r"wrong awaited something other than its tx"):
        await file.write(wrong)
    await file.write(note, "after")
    assert await file.read(noted) == {"after"}


async def due(tx: Tx) -> int:
    row = await tx.one("select due_now() as due")
    assert row is not None
    return int(row["due"])


@pytest.mark.parametrize("db_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    "mark",
    ["update outbox_state set due_mark = due_now()", "update lanes set turned_at = due_now()"],
)
async def test_the_due_clock_never_goes_back_across_restarts(db_url: str, mark: str) -> None:
    async def marked(tx: Tx) -> int:
        return await tx.run(mark)

    clock = Wall()
    db = await database.open(db_url, clock=clock, ids=Ids())
    await add_webhook(db, ring(), "http://127.0.0.1:9/")
    first = await db.read(due)
    assert await db.write(marked) == 1
    clock.offset = -30 * 86_400_000_000
    # A jump of the wall clock during the run has no effect.
    assert first <= await db.read(due) < first + 60_000_000
    await db.close()
    db = await database.open(db_url, clock=clock, ids=Ids())
    assert await db.read(due) >= first
    await db.close()


@pytest.mark.parametrize("db_url", ["sqlite"], indirect=True)
async def test_a_damaged_file_is_not_served(tmp_path: Path, db_url: str) -> None:
    path = Path(db_url.removeprefix("sqlite:///"))
    with closing(sqlite3.connect(path)) as connection:
        [size] = connection.execute("pragma page_size").fetchone()
        [page] = connection.execute(
            "select rootpage from sqlite_master where name = 'events'"
        ).fetchone()
    content = bytearray(path.read_bytes())
    # The number of cells of a page that no statement reads at the start.
    content[(page - 1) * size + 4] ^= 0x10
    path.write_bytes(content)
    unchecked = await database.open(db_url, clock=SystemClock(), ids=Ids())
    await unchecked.close()
    with pytest.raises(CannotStart, match=r"test\.db is damaged \(.*\); keep a copy") as refused:
        await database.open(db_url, clock=SystemClock(), ids=Ids(), serving=True)
    assert "\n" not in str(refused.value)
