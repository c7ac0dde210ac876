"""How late a first attempt is, of which a node that took nothing for a while is the cause."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest

from outbox import database
from outbox.clock import SystemClock
from outbox.database.transaction import Database
from outbox.durations import SECOND
from outbox.ids import Ids
from outbox.queue.drain import cycle
from outbox.queue.state.claimed_deliveries import Capacity
from tests.support.databases import PostgresServer
from tests.support.drain import Counted, add_webhook, inbox, make, ring, rows, run, worker_for

EARLIER = "alter table events alter column due_at set default due_now() - 60000000"
"""Each event has waited for a minute already."""
CONDITIONS = "update webhooks set conditions = '[]'"
SLACK = 20
"""Seconds that the machine may take."""
URL = "http://127.0.0.1:9/"
NOTHING = Capacity("node", "none", 0, 0, 0, {}, 0)


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


@pytest.fixture
async def db(postgres_server: PostgresServer) -> AsyncIterator[Database]:
    url = await postgres_server.fresh()
    db = await database.open(url, clock=SystemClock(), ids=Ids())
    await db.write(run, EARLIER)
    yield db
    await db.close()
    await postgres_server.drop(url)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("leaps", "lag", "in_parts"),
    [
        ((), 0, False), ((40.0,), 40, False), ((40.0,), 40, True), ((100.0,), 60, False),
        ((100.0, 3.0, 3.0), 0, False),
    ],
)  # fmt: skip
async def test_what_an_event_waited_for_a_node_that_took_nothing_is_its_lag(
    db: Database, leaps: tuple[float, ...], lag: float, in_parts: bool
) -> None:
    """The wait of an event alone is none, nor is that of one that comes a while afterwards."""
    clock, keys = Leaping(), ring()
    db.observer = watch = Lags()
    async with inbox() as box:
        await add_webhook(db, keys, box.url)
        if in_parts:
            await db.write(run, CONDITIONS)
        worker, sender = worker_for(db, keys, clock)
        task = asyncio.create_task(worker.run())
        await watch.until("tick")
        for number, leap in enumerate(leaps):
            if number:
                await watch.until("tick", watch.counts["tick"] + 2)
            clock.ahead += leap
        if len(leaps) > 1:
            await watch.until("tick", watch.counts["tick"] + 2)
        for number in range(4):
            await db.write(make, f"r{number}")
        await watch.until("delivery_finished", 4)
        await worker.drain(1.0)
        await sender.close()
        await task
    assert lag - 1 <= watch.lags[0] < lag + SLACK


async def test_a_claim_in_parts_tells_the_wait_of_the_event_too(db: Database) -> None:
    await add_webhook(db, ring(), URL)
    await db.write(make, "r0")
    await db.write(cycle.fan_out_and_look, NOTHING)
    assert await db.read(rows, "select 1 as one from deliveries where state = 'ready'")
    taken = await db.write(cycle.claim_due, Capacity("node", "claim", 9, 0, 0, {}, 1_000))
    [attempt] = [delivery.attempt for delivery in taken.claimed]
    assert attempt.waited_us >= 60 * SECOND > SLACK * SECOND > attempt.lag_us
