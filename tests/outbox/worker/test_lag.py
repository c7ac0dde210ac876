"""How late a first attempt is, of which a node that took nothing for a while is the cause."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from outbox.clock import SystemClock
from outbox.database.transaction import Database
from outbox.durations import SECOND
from outbox.queue.drain import cycle
from outbox.queue.state.claimed_deliveries import Capacity
from tests.support.drain import Counted, add_webhook, inbox, make, ring, rows, run, worker_for

EARLIER = "update events set due_at = due_at - 60000000"
SLACK = 20
"""Seconds that the machine may take."""
URL = "http://127.0.0.1:9/"


class Leaping(SystemClock):
    """A monotonic clock that a test puts forward, as by a process that stood still."""

    ahead = 0.0

    def monotonic(self) -> float:
        return SystemClock.monotonic() + self.ahead


class Lags(Counted):
    """An observer that keeps the lags of the requests that were started."""

    def __init__(self) -> None:
        self.lags: list[float] = []
        super().__init__()

    def __getattr__(self, name: str) -> Callable[..., None]:
        if name == "started":
            return lambda kind, lag, limited: self.lags.append(lag)
        return super().__getattr__(name)


@pytest.mark.parametrize("db_url", ["postgres"], indirect=True)
@pytest.mark.parametrize(("stood_still", "lag"), [(0.0, 0), (40.0, 40), (100.0, 60)])
async def test_what_an_event_waited_for_a_node_that_took_nothing_is_its_lag(
    db: Database, stood_still: float, lag: float
) -> None:
    """The wait of an event alone is none: other owners may have had their turns."""
    clock, keys = Leaping(), ring()
    db.observer = watch = Lags()
    async with inbox() as box:
        await add_webhook(db, keys, box.url)
        for number in range(8):
            await db.write(make, f"r{number}")
        await db.write(run, EARLIER)
        worker, sender = worker_for(db, keys, clock)
        clock.ahead = stood_still
        task = asyncio.create_task(worker.run())
        await watch.until("delivery_finished", 8)
        await worker.drain(1.0)
        await sender.close()
        await task
    # The window of the webhook is two, so most of them wait for requests before them, too.
    assert [lag <= late < lag + SLACK for late in watch.lags] == [True] * 8


@pytest.mark.parametrize("db_url", ["postgres"], indirect=True)
async def test_a_claim_in_parts_tells_the_wait_of_the_event_too(db: Database) -> None:
    keys = ring()
    await add_webhook(db, keys, URL)
    await db.write(make, "r0")
    await db.write(run, EARLIER)
    await db.write(cycle.fan_out_and_look, Capacity("node", "none", 0, 0, 0, {}, 0))
    assert await db.read(rows, "select 1 as one from deliveries where state = 'ready'")
    taken = await db.write(cycle.claim_due, Capacity("node", "claim", 9, 0, 0, {}, 1_000))
    [attempt] = [delivery.attempt for delivery in taken.claimed]
    assert attempt.waited_us >= 60 * SECOND > SLACK * SECOND > attempt.lag_us
