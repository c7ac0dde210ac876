"""The lease and the clock of a node, and the effects of foreign locks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from outbox.clock import SystemClock
from outbox.database.transaction import Database, Tx
from outbox.ids import Ids
from outbox.queue.state import lanes
from outbox.worker import lease, live_nodes, skew
from outbox.worker.journal import Log
from outbox.worker.lease import Lease
from tests.support.drain import Counted, drain, inbox, make, ring
from tests.support.lines import WAITS

POSTGRES = pytest.mark.parametrize("db_url", ["postgres"], indirect=True)


class Shifted(SystemClock):
    """A clock with an offset in its wall time."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def wall(self) -> int:
        return super().wall() + round(self.seconds * 1_000_000)


@asynccontextmanager
async def leased(db: Database, clock: SystemClock) -> AsyncIterator[tuple[Lease, Counted]]:
    """Keep a lease until the block ends; the counts include "joined" and "lost"."""
    db.observer = watch = Counted()
    joined = Lease(
        db, clock=clock, ids=Ids(), journal=Log(), waits=WAITS,
        joined=watch.joined, lost=watch.lost,
    )  # fmt: skip
    task = asyncio.create_task(joined.run())
    try:
        await watch.until("joined")
        yield joined, watch
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@POSTGRES
@pytest.mark.parametrize(
    ("seconds", "sends"), [(0.0, True), (1.0, True), (-30.0, True), (3600.0, False), (-61.5, False)]
)
async def test_a_node_whose_clock_is_more_than_a_minute_off_sends_nothing(
    db: Database, seconds: float, sends: bool
) -> None:
    async with leased(db, Shifted(seconds)) as (joined, watch):
        assert joined.skew == pytest.approx(seconds, abs=0.5)
        assert watch.counts["clock_skew"] == 1
        assert (joined.objection() is None) == sends


@POSTGRES
async def test_a_clock_that_is_set_right_lets_the_node_send_again(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lease, "RENEW_SECONDS", 0.2)
    monkeypatch.setattr(lease, "LOOK_SECONDS", 0.3)
    clock = Shifted(3600.0)
    async with inbox() as box, drain(db, ring(), clock) as running:
        await running.watch.until("clock_skew", 2)
        await running.webhook(box.url)
        await db.write(make, "r1")
        await running.watch.until("clock_skew", 4)
        assert box.got == []
        clock.seconds = 0.0
        await box.until(1)


@POSTGRES
async def test_a_jump_counts_before_the_clocks_are_compared_again(db: Database) -> None:
    clock = Shifted(0.0)
    async with leased(db, clock) as (joined, watch):
        clock.seconds = -7200.0
        assert joined.objection() == lease.ASTRAY
        clock.seconds = 30.0
        assert joined.objection() is None
        assert watch.counts["clock_skew"] == 1


@POSTGRES
async def test_the_round_trip_time_is_not_skew(db: Database) -> None:
    class Slow(SystemClock):
        """As if the reply took ten seconds more on the way back."""

        calls = 0

        def monotonic(self) -> float:
            self.calls += 1
            return super().monotonic() + 10.0 * (self.calls - 1)

    assert await skew.measure(db, Slow()) == 0


@POSTGRES
async def test_a_lease_that_was_lost_comes_back_under_a_new_name(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lease, "RENEW_SECONDS", 0.2)
    monkeypatch.setattr(lease, "LOOK_SECONDS", 0.3)
    async with leased(db, SystemClock()) as (joined, watch):
        old = joined.node_id

        async def expire(tx: Tx) -> None:
            await tx.run("update nodes set alive_until = 0")

        await db.write(expire)
        await watch.until("lost")
        await watch.until("joined", 2)
        assert joined.node_id != old
        assert joined.objection() is None
        assert not await db.write(live_nodes.renew, old)


@POSTGRES
async def test_a_renewal_that_hangs_past_the_lease_ends_it(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a timer of its own: the reply to the renewal may never come."""
    monkeypatch.setattr(lease, "LEASE_SECONDS", 1.0)
    monkeypatch.setattr(lease, "RENEW_SECONDS", 0.1)
    monkeypatch.setattr(lease, "LOOK_SECONDS", 0.3)
    async with leased(db, SystemClock()) as (_, watch):
        locked, go_on = asyncio.Event(), asyncio.Event()

        async def lock(tx: Tx) -> None:
            await tx.run("lock table nodes in access exclusive mode")
            locked.set()
            await go_on.wait()

        holding = asyncio.create_task(db.write(lock))
        await locked.wait()
        await watch.until("lost")
        go_on.set()
        await asyncio.gather(holding, return_exceptions=True)


@POSTGRES
async def test_a_locked_lane_delays_only_its_webhook(db: Database) -> None:
    async with inbox() as box, drain(db, ring()) as running:
        held = await running.webhook(f"{box.url}/held")
        await running.webhook(f"{box.url}/free")
        await db.write(make, "r0")
        await running.watch.until("delivery_finished", 2)
        locked, go_on = asyncio.Event(), asyncio.Event()

        async def stranger(tx: Tx) -> None:
            await lanes.lock(tx, [held])
            locked.set()
            await go_on.wait()

        stranger_holds = asyncio.create_task(db.apart("migration").write(stranger))
        await locked.wait()
        for number in range(5):
            await db.write(make, f"r{number + 1}")
            await box.until(number + 2, "/free")
        await running.watch.until("delivery_finished", 7)
        go_on.set()
        await stranger_holds
        await running.watch.until("delivery_finished", 12)
        assert len([got for got in box.got if got.path == "/held"]) == 6
