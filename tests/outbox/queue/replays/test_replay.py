"""Replays during a purge."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from outbox.database.transaction import Database, Tx
from outbox.queue.drain.claim import claim
from outbox.queue.drain.fanout import fan_out
from outbox.queue.replays import replay
from outbox.queue.replays.replay import NotReplayable
from outbox.queue.state import lanes
from outbox.queue.state.claimed_deliveries import Capacity
from outbox.queue.upkeep import retention
from outbox.worker.windows import MOST_BYTES
from tests.support.drain import add_webhook, make, ring, rows

POSTGRES = pytest.mark.parametrize("db_url", ["postgres"], indirect=True)
ROOM = Capacity("node", "claim", 4, 0, 0, {}, MOST_BYTES)


async def finish(tx: Tx) -> None:
    await tx.run("update deliveries set state = 'delivered', claim = null, node_id = null")


async def delivered(db: Database) -> tuple[str, str]:
    """Return a finished delivery and its event."""
    await add_webhook(db, ring(), "http://127.0.0.1:9/")
    await db.write(make, "r")
    await db.write(fan_out, ROOM)
    await db.write(finish)
    [row] = await db.read(rows, "select id, event_id from deliveries")
    return row["id"], row["event_id"]


@POSTGRES
async def test_an_event_that_is_purged_meanwhile_is_not_replayed(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    delivery_id, event_id = await delivered(db)
    looked, go_on = asyncio.Event(), asyncio.Event()
    lock = lanes.lock

    async def slow(tx: Tx, ids: Any) -> list[str]:
        looked.set()
        await go_on.wait()
        return await lock(tx, ids)

    monkeypatch.setattr(lanes, "lock", slow)
    replaying = asyncio.create_task(db.apart("migration").write(replay.one, delivery_id, "user"))
    await looked.wait()
    assert await db.write(retention.purge_events, [event_id], db.clock) == (1, 1)
    go_on.set()
    with pytest.raises(NotReplayable, match="past the retention time"):
        await replaying
    assert not (await db.write(claim, ROOM, {})).claimed
    [row] = await db.read(rows, "select state from deliveries")
    assert row["state"] == "delivered"


@POSTGRES
async def test_an_event_that_is_being_replayed_is_not_purged(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    delivery_id, event_id = await delivered(db)
    made, go_on = asyncio.Event(), asyncio.Event()
    wake = lanes.wake

    async def slow(tx: Tx, ids: Any, due: int) -> None:
        made.set()
        await go_on.wait()
        await wake(tx, ids, due)

    monkeypatch.setattr(lanes, "wake", slow)
    replaying = asyncio.create_task(db.apart("migration").write(replay.one, delivery_id, "user"))
    await made.wait()
    assert await db.write(retention.purge_events, [event_id], db.clock) == (1, 0)
    go_on.set()
    replayed = await replaying
    [claimed] = (await db.write(claim, ROOM, {})).claimed
    assert claimed.id == replayed
