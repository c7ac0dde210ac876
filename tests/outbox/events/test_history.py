"""Pages of events and searches by marks, against a plain filter in memory."""

from __future__ import annotations

import random
from typing import Any

import pytest

from outbox.database.transaction import Database, Tx
from outbox.events import event_history, event_index
from outbox.events.event_history import EventQuery
from outbox.events.event_index import Marks
from outbox.observer import Observer

OWNER = "owner"
EVENT = """
insert into events (id, seq, owner_id, name, record_id, record_version, webhook_id, occurred_at,
  request_id, body, body_digest)
values ($1, $2, $3, $4, $5, 1, $6, $7, $8, $9, '')
"""


class Counts(Observer):
    """An observer that adds up what was deleted."""

    def __init__(self) -> None:
        self.deleted = 0

    def purged(self, table: str, count: int) -> None:
        assert table == "event_marks"
        self.deleted += count


async def furnish(db: Database, first: int, count: int, seed: int = 7) -> list[dict[str, Any]]:
    """Events of two owners, some of them tests, with few records and requests."""
    dice = random.Random(seed)

    async def unit(tx: Tx) -> list[dict[str, Any]]:
        rows = []
        for seq in range(first, first + count):
            at = 1_795_000_000_000_000 + seq * 1_000_000
            row = {
                "id": f"{at // 1000:012x}{seq:012x}", "seq": seq,
                "owner": dice.choice((OWNER, OWNER, "other")),
                "name": dice.choice(("contact.created", "deal.created")),
                "record": f"{dice.randrange(9):024x}",
                "webhook": dice.choice((None, None, None, "w")), "at": at,
                "request": dice.choice((None, "Import-1", "import-2", f"{3:024x}")), "body": b"{}",
            }  # fmt: skip
            await tx.run(EVENT, *row.values())
            rows.append(row)
        await tx.run("update outbox_state set seq = $1", first + count - 1)
        return rows

    return await db.write(unit)


async def walk(db: Database, query: EventQuery, size: int) -> list[str]:
    ids: list[str] = []
    after: int | None = None
    while True:
        page = await db.read(event_history.page, OWNER, query, after, size)
        assert len(page.events) <= size
        ids += [one.id for one in page.events]
        after = page.after
        if after is None:
            return ids


def right(rows: list[dict[str, Any]], query: EventQuery) -> list[str]:
    return [
        row["id"]
        for row in reversed(rows)
        if row["owner"] == OWNER and row["webhook"] is None
        and query.name in ("", row["name"]) and query.since <= row["at"] < query.until
        and (not query.cause or query.cause.lower() == row["record"]
             or query.cause == row["request"])
    ]  # fmt: skip


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks and rounds of few events, so that a test has many of them."""
    monkeypatch.setattr(event_index, "BLOCK", 8)
    monkeypatch.setattr(event_index, "PAGE", 2)
    monkeypatch.setattr(event_index, "BLOCKS", event_index.BLOCKS.replace("limit 128", "limit 2"))
    monkeypatch.setattr(event_history, "SCANNED", 5)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("marked", ["none", "some", "all"])
async def test_pages_hold_what_a_filter_in_memory_finds(db: Database, marked: str) -> None:
    duty = Marks(db)
    rows = await furnish(db, 5, 80 if marked == "some" else 131)
    if marked != "none":
        await duty.run_once()
    if marked == "some":
        rows += await furnish(db, 85, 51, 8)
    since, end = rows[20]["at"], rows[90]["at"]
    for cause in ("", f"{3:024x}", f"{3:024X}", "Import-1", "import-1", "import-2", "nothing"):
        for query in (
            EventQuery(cause=cause), EventQuery("deal.created", cause),
            EventQuery("contact.created", cause, since, end), EventQuery(cause=cause, since=since),
            EventQuery(cause=cause, until=end), EventQuery("none", cause),
        ):  # fmt: skip
            assert await walk(db, query, 7) == right(rows, query), query


@pytest.mark.usefixtures("small")
async def test_a_search_reads_marks_and_not_events(db: Database) -> None:
    """With the marks of a block emptied, what is in it is not found: nothing else is read there."""
    rows = await furnish(db, 0, 64)
    await Marks(db).run_once()

    async def empty(tx: Tx) -> None:
        await tx.run("update event_marks set records = $1, requests = $1 where first_seq < 32", b"")

    await db.write(empty)
    query = EventQuery(cause=f"{3:024x}")
    assert await walk(db, query, 7) == right(rows[32:], query)


@pytest.mark.usefixtures("small")
async def test_marks_are_made_of_whole_blocks_and_go_with_their_events(db: Database) -> None:
    db.observer = counts = Counts()
    duty = Marks(db)
    await furnish(db, 3, 20)
    await duty.run_once()
    # Places 0 to 15 are complete, 16 to 23 lack the last one.
    assert await db.read(event_index.marked) == 16
    await furnish(db, 23, 1)
    await duty.run_once()
    assert await db.read(event_index.marked) == 24

    async def forget(tx: Tx, before: int) -> None:
        await tx.run("delete from events where seq < $1", before)

    await db.write(forget, 15)
    await duty.run_once()
    assert counts.deleted == 1
    await db.write(forget, 24)
    await duty.run_once()
    assert counts.deleted == 3
    # After a long rest the next block is that of the next event.
    await furnish(db, 100, 4)
    await duty.run_once()
    assert await db.read(event_index.marked) == 104
