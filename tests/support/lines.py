"""Deliveries of ordered webhooks without a drain: written, claimed and settled by hand."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from outbox.database.transaction import Database, Tx
from outbox.queue.drain.claim import claim
from outbox.queue.drain.fanout import fan_out
from outbox.queue.drain.rescue import Waits
from outbox.queue.drain.settle import settle
from outbox.queue.state import lanes
from outbox.queue.state.claimed_deliveries import Capacity, Claimed, Result
from outbox.queue.state.policy import Decision, Schedule
from outbox.sending.outcome import unanswered
from tests.support.drain import OWNER, make

NONE = Capacity("node", "claim-0", 0, 0, 0, {}, 0)
URL = "http://127.0.0.1:9/"
WAITS = Waits(Schedule(), lambda: 0.5)
"""Rescued deliveries wait by the default schedule, without jitter."""


@asynccontextmanager
async def lane_locked(db: Database, webhook_id: str) -> AsyncIterator[None]:
    """Hold the lock of a lane on PostgreSQL, as another node does, until the block ends."""
    locked, go_on = asyncio.Event(), asyncio.Event()

    async def hold(tx: Tx) -> None:
        await lanes.lock(tx, [webhook_id])
        locked.set()
        await go_on.wait()

    holding = asyncio.create_task(db.apart("migration").write(hold))
    await locked.wait()
    try:
        yield
    finally:
        go_on.set()
        await holding


async def fanned(db: Database) -> None:
    """Fan out all events; claim nothing."""
    while (await db.write(fan_out, NONE)).more:
        pass


async def written(db: Database, *records: str, owner: str = OWNER) -> None:
    """Write one event for each of these records, in this order, and fan out."""
    for record in records:
        await db.write(make, record, owner=owner)
    await fanned(db)


async def taken(db: Database, webhook_id: str, token: str = "claim-1") -> list[Claimed]:
    """Claim whatever is due."""
    capacity = Capacity("node", token, 64, 64, 64, {webhook_id: 32}, 1_000_000)
    return (await db.write(claim, capacity, {})).claimed


def result(delivery: Claimed, state: Any, delay: int | None = None) -> Result:
    """Return the result of a failed request that leads to `state`."""
    decision = Decision(state, "test", delay, None, state == "gone", "keep", True, True)
    outcome = unanswered("timeout", "test", 0.0)
    return Result(delivery, decision, outcome, 0, (("X-Test", "1"),), URL, "node")


async def settled(
    db: Database, claimed: list[Claimed], state: Any, delay: int | None = None
) -> None:
    """Record that the attempts of these deliveries led to `state`."""
    done = await db.write(settle, [result(delivery, state, delay) for delivery in claimed])
    assert len(done.held) == len(claimed)
