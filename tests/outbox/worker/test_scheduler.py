"""Periodic duties run, survive their own errors, and follow a wall clock that jumps."""

import asyncio

import pytest

from outbox.clock import SystemClock
from outbox.errors import DatabaseUnavailable
from outbox.worker.scheduler import Scheduler
from tests.support.clocks import Wall


@pytest.mark.slow
async def test_a_duty_runs_again_after_it_failed() -> None:
    runs = 0
    third = asyncio.Event()

    async def duty() -> None:
        nonlocal runs
        runs += 1
        if runs == 1:
            raise DatabaseUnavailable("busy", "not now")
        if runs == 2:
            raise RuntimeError("a fault of ours")
        third.set()

    scheduler = Scheduler(SystemClock())
    scheduler.every(0.5, "duty", duty)
    scheduler.start()
    await third.wait()
    scheduler.stop()


@pytest.mark.parametrize("days", [-30, 30])
async def test_a_wall_clock_that_jumps_a_month_does_not_stop_the_duties(days: int) -> None:
    clock = Wall()
    ran = asyncio.Event()

    async def duty() -> None:
        ran.set()

    scheduler = Scheduler(clock)
    scheduler.every(3600, "hourly", duty)
    scheduler.start()
    before = scheduler.next_runs()["hourly"]
    clock.offset = days * 86_400_000_000
    scheduler.follow_clock()
    after = scheduler.next_runs()["hourly"]
    assert abs((after - before).days - days) <= 1
    scheduler.stop()
    assert not ran.is_set()
