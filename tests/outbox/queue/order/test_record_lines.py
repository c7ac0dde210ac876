"""What an owner sees of the lines of an ordered webhook, and the skip of a head."""

from __future__ import annotations

import pytest

from outbox.database.transaction import Database
from outbox.queue.order import record_lines
from tests.support.drain import add_webhook, ring, rows
from tests.support.lines import URL, settled, taken, written

HOUR = 3_600_000_000


async def stuck(db: Database, *records: str) -> str:
    """Return an ordered webhook whose heads have failed once."""
    webhook_id, _ = await add_webhook(db, ring(), URL, ordered=True)
    await written(db, *records)
    await settled(db, await taken(db, webhook_id), "ready", HOUR)
    return webhook_id


async def test_a_webhook_without_held_deliveries_shows_no_lines(db: Database) -> None:
    webhook_id = await stuck(db, "a", "b")
    assert await db.read(record_lines.of_webhook, webhook_id) == record_lines.Lines(0, ())


async def test_only_a_waiting_head_is_skipped(db: Database) -> None:
    webhook_id = await stuck(db, "a", "a")
    [head] = (await db.read(record_lines.of_webhook, webhook_id)).stuck
    [follower] = await db.read(rows, "select id from deliveries where state = 'held'")
    with pytest.raises(record_lines.NoHead, match="no others"):
        await db.write(record_lines.skip, follower["id"])
    await db.write(record_lines.skip, head.delivery_id)
    with pytest.raises(record_lines.NoHead, match="no others"):
        await db.write(record_lines.skip, head.delivery_id)
    assert await taken(db, webhook_id, "claim-2")
    with pytest.raises(record_lines.NoHead, match="being sent"):
        await db.write(record_lines.skip, follower["id"])
    with pytest.raises(record_lines.NoHead, match="no longer"):
        await db.write(record_lines.skip, "0" * 24)


async def test_each_delivery_knows_its_place(db: Database) -> None:
    await stuck(db, "a", "a", "a")
    head, second, third = await db.read(rows, "select id from deliveries order by seq")
    assert await db.read(record_lines.place, head["id"]) == record_lines.Place(None, 2)
    for follower in (second, third):
        assert await db.read(record_lines.place, follower["id"]) == record_lines.Place(
            head["id"], 0
        )
    await db.write(record_lines.skip, head["id"])
    assert await db.read(record_lines.place, head["id"]) is None
