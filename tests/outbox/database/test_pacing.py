"""A job does as much as others do not feel, and rests only for them."""

from __future__ import annotations

import asyncio
from itertools import pairwise

import pytest

from outbox.database.pacing import (
    ENOUGH,
    FRESH_SECONDS,
    JUDGED_SECONDS,
    LONGEST_REST,
    MEASURING_REST,
    MOST_TIMES,
    QUIET_SECONDS,
    SETTLED_SECONDS,
    SHORTEST,
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
    for _ in range(400):
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
    world.others = True
    while world.pace.amount > 1:
        await world.step()
    assert world.pace.shares == 1.0, "they are not those who felt it"


@pytest.mark.parametrize(
    ("alone", "writes", "slow", "beside", "passed", "hurts"),
    [
        (0.002, ENOUGH, 2, 0.009, 0.1, False),
        (0.002, ENOUGH, ENOUGH, 0.002 + SHORTEST * 0.9, 0.1, False),
        (0.01, ENOUGH, ENOUGH, 0.01 * MOST_TIMES * 0.9, 0.1, False),
        (0.002, 3, 3, 0.009, 0.1, True),
        (0.002, 200, 9, 0.009, 0.1, False),
        (0.002, ENOUGH - 1, 2, 0.009, 0.1, None),
        (0.002, 5, 1, 0.009, JUDGED_SECONDS, True),
        (0.002, 5, 0, 0.009, JUDGED_SECONDS, False),
        (0.002, 0, 0, 0.009, JUDGED_SECONDS, None),
    ],
    ids=[
        "two", "by less than a millisecond", "by less than MOST_TIMES", "three", "a share",
        "too few", "one of few", "none of few", "nobody",
    ],
)  # fmt: skip
def test_steps_are_judged_by_enough_writes(
    alone: float, writes: int, slow: int, beside: float, passed: float, hurts: bool | None
) -> None:
    clock = Stopped()
    meter = Meter(clock)
    for at in range(20):
        meter.note(at, at + alone)
    meter.begin()
    meter.note(clock.now, clock.now + 1.0)
    clock.now += 1.1
    since = meter.begin()
    for nth in range(writes):
        meter.note(since, since + (beside if nth < slow else alone))
    clock.now += passed
    assert meter.hurts(since) is hurts


def test_a_write_soon_after_a_step_is_beside_it() -> None:
    clock = Stopped()
    meter = Meter(clock)
    assert meter.hurts(0.0) is None
    meter.note(0.0, 0.002)
    since = meter.begin()
    clock.now = 1.0
    meter.end()
    meter.note(1.0 + SETTLED_SECONDS / 2, 2.0)
    assert meter.hurts(since)


async def test_others_that_come_meet_one_large_step_and_then_small_ones() -> None:
    world = World(0.0001, others=False)
    for _ in range(10):
        await world.step()
    assert world.pace.amount == 200
    world.others = True
    done = [world.done]
    for _ in range(4):
        await world.step()
        done.append(world.done)
    assert [after - before for before, after in pairwise(done)] == [200, 1, 1, 1]


def test_amounts_double_up_to_a_quarter_of_what_was_felt_and_rests_end_before() -> None:
    pace = JobPace(Meter(Stopped()), 200, clock=Stopped())
    seen = []
    for hurts in [True, *[False] * 11, True, False, True, False, False]:
        pace.judge(hurts)
        seen.append((pace.amount, round(pace.shares, 2)))
    assert seen == [
        (1, 2.0), (1, 1.6), (1, 1.28), (1, 1.02), (1, 1.0), (2, 1.0), (4, 1.0), (8, 1.0), (16, 1.0),
        (32, 1.0), (64, 1.0), (128, 1.0), (64, 1.0), (72, 1.0), (36, 1.0), (40, 1.0), (45, 1.0),
    ]  # fmt: skip


async def test_what_was_judged_is_not_judged_again() -> None:
    clock = Stopped()
    meter = Meter(clock)

    async def rest(seconds: float) -> None:
        clock.now += seconds

    pace = JobPace(meter, 200, clock=clock, sleep=rest)

    async def step(slow: int = 0) -> None:
        async with pace.step():
            for nth in range(ENOUGH):
                meter.note(clock.now - (0.1 if nth < slow else ALONE), clock.now)
                clock.now += EVERY

    for _ in range(20):
        meter.note(clock.now, clock.now + ALONE)
    await step(slow=3)
    await step()
    assert pace.shares == 2.0
    await step()
    assert pace.shares < 2.0


async def test_a_job_begins_small_after_a_pause() -> None:
    world = World(0.0001, others=False)
    for _ in range(10):
        await world.step()
    world.clock.now += QUIET_SECONDS * 2
    done = world.done
    await world.step()
    assert world.done - done == 1


async def test_after_steps_that_delayed_others_a_job_rests_until_what_they_made_is_sent() -> None:
    world = World(0.0001, others=True)
    for _ in range(400):
        await world.step()
    amount = slept = 0.0
    while world.pace.amount >= amount:
        amount, slept = world.pace.amount, world.slept
        await world.step()
    assert world.slept - slept > LONGEST_REST


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
        slept = world.slept
        await world.step()
        measured += world.slept - slept >= MEASURING_REST
    assert 4 <= measured <= 6


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
