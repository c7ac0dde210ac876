"""Waiting deliveries that no longer match what their webhook subscribes to: counted, cancelled."""

from __future__ import annotations

from typing import Any

import pytest

from outbox.database.transaction import Database, Tx
from outbox.events import enqueue
from outbox.queue.order import ordering
from outbox.queue.upkeep import parking, unmatched
from outbox.queue.upkeep.unmatched import Unmatched, Wanted
from outbox.webhooks.conditions import Condition
from tests.support.drain import OWNER, add_webhook, ring, rows, run
from tests.support.lines import fanned

WAITING = "select e.name, e.record_id, d.state from deliveries d join events e on e.id = d.event_id"
MADE = Wanted(frozenset({"thing.made"}), ())
RED = Wanted(frozenset({"thing.made", "thing.sold"}), (Condition("color", "red"),))


async def write(tx: Tx, *events: tuple[str, str, Any], webhook_id: str | None = None) -> None:
    for name, record, color in events:
        enqueue(
            tx, owner_id=OWNER, name=name, record_id=record, record_version=1,
            data={"id": record, "color": color}, webhook_id=webhook_id,
        )  # fmt: skip


async def waiting(db: Database, ordered: bool = False) -> str:
    """A paused webhook with deliveries of two events and two colours, and a test event."""
    webhook_id, _ = await add_webhook(db, ring(), "https://x.example/", "thing.made", "thing.sold")
    await db.write(
        write, ("thing.made", "a", "red"), ("thing.sold", "a", "red"), ("thing.sold", "b", "blue"),
        ("thing.made", "b", "blue"), ("thing.made", "c", "red"),
    )  # fmt: skip
    await db.write(write, ("thing.sold", "t", "blue"), webhook_id=webhook_id)
    await fanned(db)
    if ordered:
        await ordering.turn(db, webhook_id, True)
    assert await db.write(parking.pause, webhook_id)
    return webhook_id


@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize(
    ("wanted", "left"),
    [
        (MADE, {"a made", "b made", "c made", "t sold"}),
        (RED, {"a made", "a sold", "c made", "t sold"}),
        (Wanted(frozenset(), ()), {"t sold"}),
        (Wanted(RED.events, ()), {"a made", "a sold", "b sold", "b made", "c made", "t sold"}),
    ],
)
async def test_what_no_longer_matches_is_counted_and_cancelled(
    db: Database, wanted: Wanted, left: set[str], ordered: bool
) -> None:
    webhook_id = await waiting(db, ordered)
    [row] = await db.read(rows, "select version from webhooks where id = $1", webhook_id)
    version = int(row["version"])
    count = 6 - len(left)
    assert await unmatched.count(db, OWNER, webhook_id, wanted) == Unmatched(count)
    # A change meanwhile ends it.
    assert await unmatched.cancel(db, OWNER, webhook_id, version - 1, wanted) == 0
    assert await unmatched.cancel(db, OWNER, webhook_id, version, wanted) == count
    assert await unmatched.count(db, OWNER, webhook_id, wanted) == Unmatched()
    found = await db.read(rows, WAITING)
    assert {
        f"{row['record_id']} {row['name'].partition('.')[2]}"
        for row in found if row["state"] in ("ready", "held")
    } == left  # fmt: skip
    # Each record of an ordered webhook still has a head.
    held = {row["record_id"] for row in found if row["state"] == "held"}
    assert held <= {row["record_id"] for row in found if row["state"] == "ready"}
    reasons = await db.read(rows, "select reason from deliveries where state = 'cancelled'")
    assert {row["reason"] for row in reasons} <= {unmatched.REASON}


async def test_a_damaged_event_matches(db: Database) -> None:
    webhook_id = await waiting(db)
    await db.write(
        run, "update events set body = $1 where record_id = 'b'", b'{"data":{"color":"bl\xf5e"}}'
    )
    assert await unmatched.count(db, OWNER, webhook_id, RED) == Unmatched()


async def test_counting_is_bounded(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    webhook_id = await waiting(db)
    for name in ("_READY", "_HELD"):
        few = getattr(unmatched, name).replace("limit 500", "limit 2")
        monkeypatch.setattr(unmatched, name, few)
    monkeypatch.setattr(unmatched, "PAGE", 2)
    assert await unmatched.count(db, OWNER, webhook_id, MADE) == Unmatched(2)
    monkeypatch.setattr(unmatched, "LOOKED_AT", 4)
    assert (await unmatched.count(db, OWNER, webhook_id, MADE)).more
    monkeypatch.setattr(unmatched, "LOOKED_AT", 100)
    monkeypatch.setattr(unmatched, "JUDGED", 1)
    assert (await unmatched.count(db, OWNER, webhook_id, RED)).more
    assert not (await unmatched.count(db, OWNER, webhook_id, MADE)).more
