"""How much a job may do at once, so that it does not delay the writes of others.

Each process measures how long the writes of clients take while a step of a job runs or what it has
made is delivered, and how long they take when all jobs have rested for a while, which they do every
few seconds. A step that delays them makes the next one smaller, and when it is as small as it can
be, the rest before it longer. Where nobody else writes, a job neither rests nor does less than it
can. Work is counted in rows, never in a rate.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import Protocol

from outbox.clock import Clock

MOST_TIMES = 1.4
"""Others may take so many times as long beside a step as without."""
SHORTEST = 0.001
"""A delay of less than this (seconds) is none: it is within what a write varies by."""
KEPT = 64
"""Times of others that are compared."""
UPPER = 0.9
"""The share of others that took at most the time that is compared."""
SETTLED_SECONDS = 0.05
"""A write that begins so soon after a step may wait for what the step has made."""
FRESH_SECONDS = 10.0
"""Times of others without a job are compared for so long; then they are measured again."""
QUIET_SECONDS = 1.0
"""When nobody has written for so long, nobody does."""
LONGEST_REST = 0.25
"""Seconds; so long all jobs rest to measure others without them."""
MOST_SHARES = 16.0
"""A job rests up to so many times as long as its step took."""

working: ContextVar[bool] = ContextVar("working", default=False)
"""Whether this is a step of a job or the drain, whose writes are not those of clients."""
Sleep = Callable[[float], Awaitable[None]]


class Meter:
    """The times of others' writes in this process, while jobs run. `jobs` counts these."""

    def __init__(self, clock: Clock) -> None:
        self.jobs = 0
        self.latest = float("-inf")
        """When a write of others ended last."""
        self._clock = clock
        self._steps = 0
        self._ended = float("-inf")
        """When the last step of a job ended."""
        self._measured_at = float("-inf")
        self._alone: deque[float] = deque(maxlen=KEPT)
        self._beside: deque[float] = deque(maxlen=KEPT)

    def note(self, began: float, now: float) -> None:
        """Note a write that `began` then and has ended `now`, unless it belongs to a job."""
        self.latest = now
        if self._steps or began < self._ended + SETTLED_SECONDS:
            self._beside.append(now - began)
        else:
            self._alone.append(now - began)
            self._measured_at = now

    def begin(self) -> None:
        """Note that a step begins."""
        if not self._steps:
            self._beside.clear()
        self._steps += 1

    def end(self) -> None:
        """Note that a step has ended."""
        self._steps -= 1
        self._ended = self._clock.monotonic()

    @property
    def anyone(self) -> bool:
        """Whether others write."""
        return self._clock.monotonic() - self.latest < QUIET_SECONDS

    @property
    def lacks(self) -> bool:
        """Whether others must be measured without a job, as they never were, or not lately."""
        return self._clock.monotonic() - self._measured_at >= FRESH_SECONDS

    def hurts(self) -> bool | None:
        """Return whether the last step delayed others; None when it met none, or none to compare.

        It is asked after the rest, so that the writes that began during the step have ended.
        """
        if not self._beside or not self._alone:
            return None
        beside, alone = upper(self._beside), upper(self._alone)
        return beside - alone > SHORTEST and beside > alone * MOST_TIMES


def upper(times: Sequence[float] | deque[float]) -> float:
    """Return the time that UPPER of them do not exceed."""
    ordered = sorted(times)
    return ordered[min(int(len(ordered) * UPPER), len(ordered) - 1)]


class Measured(Protocol):
    """What a job needs of a Meter; a job of a process without others has that of the servers."""

    jobs: int

    def begin(self) -> None: ...
    def end(self) -> None: ...
    @property
    def anyone(self) -> bool: ...
    @property
    def lacks(self) -> bool: ...
    def hurts(self) -> bool | None: ...


class JobPace:
    """The pace of one job: the `amount` of its next step, from `least` to `most`."""

    def __init__(
        self,
        meter: Measured,
        most: int,
        least: int = 1,
        *,
        clock: Clock,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self.most = most
        self.least = min(least, most)
        self.amount = max(most // 4, self.least)
        self.shares = 1.0
        """How many times as long as a step the rest after it is, while others write."""
        self._meter = meter
        self._clock = clock
        self._sleep = sleep

    @asynccontextmanager
    async def step(self) -> AsyncIterator[int]:
        """Give the amount of a step, which runs in the block; then rest, and judge what it cost."""
        meter, began = self._meter, self._clock.monotonic()
        meter.jobs += 1
        meter.begin()
        token = working.set(True)
        try:
            yield self.amount
        finally:
            working.reset(token)
            meter.end()
            try:
                await self._rest(self._clock.monotonic() - began)
            finally:
                meter.jobs -= 1

    async def _rest(self, took: float) -> None:
        if not self._meter.anyone:
            # Others that come wait for one large step at most.
            self.amount, self.shares = min(self.amount * 2, self.most), 1.0
            await self._sleep(0)
            return
        await self._sleep(min(took * self.shares, LONGEST_REST))
        if self._meter.lacks:
            await self._sleep(LONGEST_REST)
        self.judge(self._meter.hurts())

    def judge(self, hurts: bool | None) -> None:
        """Set the next amount and rest by whether the last step delayed others."""
        if not hurts:
            # Slowly: the next write that meets a step that is too large has waited for it.
            if self.shares > 1.0:
                self.shares = max(self.shares / 1.25, 1.0)
            elif hurts is False:
                self.amount = min(self.amount + max(self.amount // 8, 1), self.most)
        elif self.amount > self.least:
            self.amount = max(self.amount // 2, self.least)
        else:
            self.shares = min(self.shares * 2, MOST_SHARES)
