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


async def test_stuck_heads_are_shown_oldest_first(db: Database) -> None:
    webhook_id = await stuck(db, "a", "b", "b", "c", "a", "b")
    # A new record keeps nothing waiting, and "c" has no follower.
    await written(db, "d", "d")
    lines = await db.read(record_lines.of_webhook, webhook_id)
    assert lines.held == 4
    assert [(line.record_id, line.behind, line.state) for line in lines.stuck] == [
        ("a", 1, "ready"), ("b", 2, "ready"),
    ]  # fmt: skip
    [first, _] = lines.stuck
    assert (first.event, first.tries, first.last_outcome) == ("thing.made", 1, "timeout")
    assert 0 < first.due_in <= HOUR
    again = await taken(db, webhook_id, "claim-2")
    assert len(again) == 1, "the head of the new record"


async def test_a_webhook_without_held_deliveries_shows_no_lines(db: Database) -> None:
    webhook_id = await stuck(db, "a", "b")
    assert await db.read(record_lines.of_webhook, webhook_id) == record_lines.Lines(0, ())


async def test_a_skipped_head_lets_the_next_one_go(db: Database) -> None:
    webhook_id = await stuck(db, "a", "a", "b", "b")
    [first, _] = (await db.read(record_lines.of_webhook, webhook_id)).stuck
    assert await db.write(record_lines.skip, first.delivery_id) == webhook_id
    [row] = await db.read(rows, "select * from deliveries where id = $1", first.delivery_id)
    assert (row["state"], row["reason"]) == ("cancelled", "skipped")
    assert row["finished_at"]
    [following] = await taken(db, webhook_id, "claim-2")
    assert following.id != first.delivery_id
    others = (await db.read(record_lines.of_webhook, webhook_id)).stuck
    assert [line.record_id for line in others] == ["b"]


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


async def test_a_delivery_outside_of_lines_cannot_be_skipped(db: Database) -> None:
    await add_webhook(db, ring(), URL)
    await written(db, "a")
    [row] = await db.read(rows, "select id from deliveries")
    with pytest.raises(record_lines.NoHead):
        await db.write(record_lines.skip, row["id"])
    assert await db.read(record_lines.place, row["id"]) is None


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


@pytest.mark.parametrize("db_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize("statement", [record_lines.STUCK, record_lines.HELD, record_lines.PLACE])
async def test_no_statement_walks_a_table_on_sqlite(db: Database, statement: str) -> None:
    plan = await db.read(rows, f"explain query plan {statement}", "w")
    steps = [str(row["detail"]) for row in plan]
    words = [step.split() for step in steps]
    walked = [one for one in words if one[0] == "SCAN" and one[1] in ("d", "x", "h", "deliveries")]
    assert walked == []
