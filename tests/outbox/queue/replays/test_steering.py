"""Waiting deliveries under a user's hand: tried now, or cancelled."""

from __future__ import annotations

from typing import Any

import pytest

from outbox.database.transaction import Database, Tx
from outbox.queue.drain.claim import claim
from outbox.queue.drain.fanout import fan_out
from outbox.queue.replays import delivery_steering
from outbox.queue.replays.delivery_steering import NotWaiting
from outbox.queue.state import lanes
from outbox.queue.state.claimed_deliveries import Capacity
from outbox.queue.upkeep import parking
from outbox.worker.windows import MOST_BYTES
from tests.support.drain import add_webhook, make, make_many, ring, rows, run

NONE = Capacity("node", "none", 0, 0, 0, {}, MOST_BYTES)
ONE = Capacity("node", "claim", 1, 1, 1, {}, MOST_BYTES)
HOUR = 3_600_000_000


async def scheduled(db: Database, count: int) -> tuple[str, list[str]]:
    """A webhook with deliveries that are retried in an hour or later, the soonest first."""
    webhook_id, _ = await add_webhook(db, ring(), "http://127.0.0.1:9/")
    await db.write(make_many, count)
    await db.write(fan_out, NONE)
    ids = [row["id"] for row in await db.read(rows, "select id from deliveries order by next_at")]
    await db.write(
        run, "update deliveries set retry = $2, next_at = next_at + $1, tries = 3", HOUR, True
    )
    await db.write(lanes.rest, [webhook_id])
    return webhook_id, ids


async def state_of(db: Database, delivery_id: str) -> Any:
    [row] = await db.read(
        rows, "select state, reason, tries, finished_at, next_at - due_now() as due_in "
        "from deliveries where id = $1", delivery_id,
    )  # fmt: skip
    return row


async def test_what_does_not_wait_is_not_tried_now(db: Database) -> None:
    webhook_id, ids = await scheduled(db, 3)
    await db.write(run, "update deliveries set state = 'held' where id = $1", ids[0])
    await db.write(run, "update deliveries set state = 'exhausted' where id = $1", ids[1])
    for delivery_id, why in (
        (ids[0], "earlier delivery of its record"),
        (ids[1], "has ended; replay it"),
        ("f" * 24, "no longer in the log"),
    ):
        with pytest.raises(NotWaiting, match=why):
            await db.write(delivery_steering.try_now, delivery_id)
    await db.write(parking.pause, webhook_id)
    with pytest.raises(NotWaiting, match="Activate the webhook first"):
        await db.write(delivery_steering.try_now, ids[2])


async def test_only_waiting_deliveries_are_cancelled(db: Database) -> None:
    webhook_id, ids = await scheduled(db, 4)
    await db.write(run, "update deliveries set state = 'held' where id = $1", ids[1])
    await db.write(run, "update deliveries set state = 'delivered' where id = $1", ids[3])
    await db.write(delivery_steering.try_now, ids[2])
    await db.write(claim, ONE, {})
    assert await db.write(delivery_steering.cancel, [*ids, "f" * 24]) == [webhook_id] * 2
    assert [(await state_of(db, one))["state"] for one in ids] == [
        "cancelled", "cancelled", "in_flight", "delivered",
    ]  # fmt: skip
    row = await state_of(db, ids[0])
    assert (row["reason"], row["finished_at"] is not None) == ("user", True)
    # Nothing is due here any more, so no claim looks.
    [lane] = await db.read(rows, "select due_at from lanes")
    assert lane["due_at"] is None
    assert await db.write(delivery_steering.cancel, ids) == []


async def test_a_cancelled_head_lets_the_next_of_its_record_go_at_once(db: Database) -> None:
    await add_webhook(db, ring(), "http://127.0.0.1:9/", ordered=True)
    for _ in range(2):
        await db.write(make, "record")
        await db.write(fan_out, NONE)
    head, follower = [
        row["id"] for row in await db.read(rows, "select id from deliveries order by seq")
    ]
    assert (await state_of(db, follower))["state"] == "held"

    async def cancelled(tx: Tx) -> bool:
        await delivery_steering.cancel(tx, [head])
        return tx.wake

    assert await db.write(cancelled)
    [first] = (await db.write(claim, ONE, {})).claimed
    assert first.id == follower
