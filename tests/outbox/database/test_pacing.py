"""A job does as much as others do not feel, and rests only for them."""

from __future__ import annotations

import asyncio

import pytest

from outbox.database.pacing import (
    FRESH_SECONDS,
    LONGEST_REST,
    MOST_TIMES,
    SETTLED_SECONDS,
    JobPace,
    Meter,
    upper,
)
from outbox.database.transaction import Database, Tx
from tests.support.clocks import Stopped
from tests.support.drain import drain, inbox, make, ring

EVERY, ALONE = 0.004, 0.002
"""Seconds between others' writes, and the time of one when nothing delays it."""


class World:
    """A writer for whom a row of a step takes as long as is said, and others who wait for it."""

    def __init__(self, row: float, *, others: bool, fixed: float = 0.0, after: float = 0.0) -> None:
        self.clock = Stopped()
        self.meter = Meter(self.clock)
        self.row, self.fixed, self.after = row, fixed, after
        self.others = others
        self.took: list[float] = []
        self.slept = 0.0
        self.done = 0
        self._next = EVERY
        self._busy_until = 0.0
        self.pace = JobPace(self.meter, 200, clock=self.clock, sleep=self._pass)

    async def step(self) -> None:
        async with self.pace.step() as amount:
            self.done += amount
            ends = self.clock.now + self.fixed + amount * self.row
            self._busy_until = ends + amount * self.after
            self._move(ends)

    async def _pass(self, seconds: float) -> None:
        self.slept += seconds
        self._move(self.clock.now + seconds)

    def _move(self, until: float) -> None:
        """Let time pass; others begin at their times and end before a step, or after it."""
        while self.others and self._next <= until:
            ended = max(self._busy_until, self._next) + ALONE
            self.clock.now = max(self.clock.now, ended)
            self.took.append(ended - self._next)
            self.meter.note(self._next, ended)
            self._next += EVERY
        self.clock.now = max(self.clock.now, until)


async def test_steps_become_as_small_as_others_need() -> None:
    world = World(0.0001, others=True)
    for _ in range(40):
        await world.step()
    world.took, world.done = [], 0
    for _ in range(200):
        await world.step()
    assert 1 < world.pace.amount < 60
    assert upper(world.took) <= ALONE * MOST_TIMES * 1.2
    assert world.done > 200 * 4, "it goes on by more than the smallest step"


async def test_a_step_that_cannot_be_smaller_rests_longer_and_goes_on() -> None:
    world = World(0.0001, others=True, fixed=0.01)
    for _ in range(300):
        await world.step()
    assert (world.pace.amount, world.done > 300) == (1, True)
    # Few of the others meet a step.
    assert upper(world.took) <= ALONE * MOST_TIMES
    assert world.slept <= 300 * LONGEST_REST


async def test_when_others_are_gone_a_job_goes_on_at_full_speed() -> None:
    world = World(0.0001, others=True, fixed=0.01)
    for _ in range(50):
        await world.step()
    world.others = False
    for _ in range(200):
        await world.step()
    slept = world.slept
    for _ in range(10):
        await world.step()
    assert (world.pace.amount, world.slept) == (200, slept)


@pytest.mark.parametrize(("beside", "hurts"), [(0.0021, False), (0.009, True)])
def test_only_what_is_felt_counts(beside: float, hurts: bool) -> None:
    clock = Stopped()
    meter = Meter(clock)
    assert meter.hurts() is None
    meter.note(0.0, 0.002)
    meter.begin()
    assert meter.hurts() is None
    meter.note(0.002, 0.002 + beside)
    meter.end()
    assert meter.hurts() is hurts


def test_a_write_soon_after_a_step_is_beside_it() -> None:
    clock = Stopped()
    meter = Meter(clock)
    meter.note(0.0, 0.002)
    meter.begin()
    clock.now = 1.0
    meter.end()
    meter.note(1.0 + SETTLED_SECONDS / 2, 2.0)
    assert meter.hurts()


async def test_what_a_job_leaves_behind_is_not_taken_for_the_time_alone() -> None:
    """Each row of a step delays others for as long after it, as its deliveries do."""
    world = World(0.00002, others=True, after=0.0002)
    for _ in range(100):
        await world.step()
    world.took = []
    for _ in range(200):
        await world.step()
    assert upper(world.took) <= ALONE * MOST_TIMES * 1.2


async def test_others_are_measured_again_without_a_job_every_few_seconds() -> None:
    world = World(0.0001, others=True)
    measured = 0
    began = world.clock.now
    while world.clock.now - began < FRESH_SECONDS * 5:
        await world.step()
        slept = world.slept
        await world.step()
        measured += world.slept - slept > LONGEST_REST
    assert 2 <= measured <= 6


async def test_the_writes_of_others_are_measured_and_those_of_jobs_are_not(db: Database) -> None:
    async def unit(tx: Tx) -> None:
        await tx.one("select 1 as n from outbox_state")

    noted: list[float] = []
    db.meter.note = lambda began, now: noted.append(now - began)  # type: ignore[method-assign]
    await db.write(unit)
    assert noted == [], "nothing is measured while no job runs"
    # Tasks that began before are not the job's.
    go = asyncio.Event()

    async def other() -> None:
        await go.wait()
        await db.write(unit)

    task = asyncio.create_task(other())
    async with JobPace(db.meter, 1, clock=db.clock).step():
        await db.write(unit)
        assert noted == []
        go.set()
        await task
        assert len(noted) == 1


async def test_what_the_drain_writes_is_not_what_others_wait_for(db: Database) -> None:
    noted: list[float] = []
    async with inbox() as box, drain(db, ring()) as running:
        await running.webhook(box.url)
        db.meter.jobs += 1
        db.meter.note = lambda began, now: noted.append(now - began)  # type: ignore[method-assign]
        await db.write(make, "one")
        await running.watch.until("delivery_finished", 1)
    assert len(noted) == 1
