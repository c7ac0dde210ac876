"""Claim, fan-out and settle in one transaction: together they stay within one capacity."""

from __future__ import annotations

import pytest

from outbox.database.transaction import Database
from outbox.queue.drain.cycle import take
from outbox.queue.drain.fanout import fan_out
from outbox.queue.state.claimed_deliveries import Capacity
from outbox.worker.windows import MOST_BYTES
from tests.support.drain import add_webhook, make_many, ring

NONE = Capacity("node", "none", 0, 0, 0, {}, MOST_BYTES)


async def taken(db: Database, capacity: Capacity) -> tuple[int, int]:
    """Return how many deliveries a turn claims from lanes, and of new events."""
    fanned, claims = await db.write(take, capacity)
    ids = [delivery.id for one in claims for delivery in one.claimed]
    born = [delivery.id for delivery in fanned.claimed]
    assert len({*ids, *born}) == len(ids) + len(born)
    return len(ids), len(born)


async def waiting(db: Database, count: int) -> str:
    """Return a webhook with `count` deliveries in its lane."""
    webhook_id, _ = await add_webhook(db, ring(), "http://127.0.0.1:9/")
    await db.write(make_many, count)
    await db.write(fan_out, NONE)
    return webhook_id


@pytest.mark.parametrize(
    ("before", "new", "slots", "window", "claimed"),
    [
        # What is new for an emptied lane is claimed as it is created, behind a rest nothing is.
        (2, 3, 8, 8, (2, 3)), (3, 2, 8, 2, (2, 0)),
        # Both together stay within slots and window.
        (2, 5, 3, 8, (2, 1)), (2, 5, 8, 3, (2, 1)),
    ],
)  # fmt: skip
async def test_what_a_turn_claims_of_old_and_new(
    db: Database, before: int, new: int, slots: int, window: int, claimed: tuple[int, int]
) -> None:
    webhook_id = await waiting(db, before)
    await db.write(make_many, new)
    room = Capacity("node", "claim", slots, 0, 0, {webhook_id: window}, MOST_BYTES)
    assert await taken(db, room) == claimed
