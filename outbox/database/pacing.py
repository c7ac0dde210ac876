"""How much a job may do at once, so that it does not delay the writes of others.

Each process measures how long the writes of clients take while a step of a job runs or what it has
made is delivered, and how long they take when all jobs have rested for a while, which they do every
few seconds. Steps are judged together, until enough others have written, as their deliveries may
take much longer than they do. If they delay others, the next ones are smaller, and when these are
as small as they can be, the rests between them longer. Where nobody else writes, a job neither
rests nor does less than it can. Work is counted in rows, never in a rate.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from math import inf
from typing import Protocol

from outbox.clock import Clock

MOST_TIMES = 1.4
"""Others may take so many times as long beside a step as without."""
SHORTEST = 0.001
"""A delay of less than this (seconds) is none: it is within what a write varies by."""
KEPT = 256
"""Times of others that are compared."""
UPPER = 0.95
"""The share of others that took at most the time that is compared."""
ENOUGH = 40
"""Steps are judged after so many writes of others, or sooner, when three of them were slow."""
JUDGED_SECONDS = 0.5
"""After so long steps are judged by fewer writes."""
SETTLED_SECONDS = 0.3
"""A write that begins so soon after a step may wait for what the step has made.

It is longer than each rest but those that measure others.
"""
FRESH_SECONDS = 10.0
"""Times of others without a job are compared for so long; then they are measured again."""
QUIET_SECONDS = 1.0
"""When nobody has written for so long, nobody does."""
LONGEST_REST = 0.25
"""Seconds; between steps a job rests no longer, unless others are measured."""
MEASURING_REST = 0.6
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
        self.latest = -inf
        """When a write of others ended last."""
        self._clock = clock
        self._steps = 0
        self._ended = -inf
        """When the last step of a job ended."""
        self._measured_at = -inf
        self._alone: deque[float] = deque(maxlen=KEPT)
        self._beside: deque[tuple[float, float]] = deque(maxlen=KEPT)
        """When a write ended, and how long it took."""

    def note(self, began: float, now: float) -> None:
        """Note a write that `began` then and has ended `now`, unless it belongs to a job."""
        self.latest = now
        if self._steps or began < self._ended + SETTLED_SECONDS:
            self._beside.append((now, now - began))
        else:
            self._alone.append(now - began)
            self._measured_at = now

    def begin(self) -> float:
        """Note that a step begins, and return when."""
        self._steps += 1
        return self._clock.monotonic()

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

    def hurts(self, since: float) -> bool | None:
        """Return whether others were delayed since a step began then.

        None when too few of them have ended since, or there is none to compare.
        """
        times = [took for ended, took in self._beside if ended >= since]
        if not times or not self._alone:
            return None
        alone = upper(self._alone)
        most = max(alone + SHORTEST, alone * MOST_TIMES)
        slow, allowed = sum(took > most for took in times), 1.0 - UPPER
        if slow > max(len(times), ENOUGH) * allowed:
            return True
        if len(times) < ENOUGH and self._clock.monotonic() - since < JUDGED_SECONDS:
            return None
        return slow > len(times) * allowed


def upper(times: Sequence[float] | deque[float]) -> float:
    """Return the time that UPPER of them do not exceed."""
    ordered = sorted(times)
    return ordered[min(int(len(ordered) * UPPER), len(ordered) - 1)]


class Measured(Protocol):
    """What a job needs of a Meter; a job of a process without others has that of the servers."""

    jobs: int

    def begin(self) -> float: ...
    def end(self) -> None: ...
    @property
    def anyone(self) -> bool: ...
    @property
    def lacks(self) -> bool: ...
    def hurts(self, since: float) -> bool | None: ...


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
        self.amount = self.least
        self._felt: float = inf
        """The amount of the last steps that others felt."""
        self.shares = 1.0
        """How many times as long as a step the rest after it is, while others write."""
        self._meter = meter
        self._clock = clock
        self._sleep = sleep
        self._since: float | None = None
        """When the first step began that is not judged."""
        self._alone = False
        """Whether nobody else wrote beside the last step."""
        self._ended = -inf

    @contextmanager
    def running(self) -> Iterator[None]:
        """Let others be measured during the block, also while the job waits for its rate."""
        self._meter.jobs += 1
        try:
            yield
        finally:
            self._meter.jobs -= 1

    @asynccontextmanager
    async def step(self) -> AsyncIterator[int]:
        """Judge the last steps, give the amount of the next, which runs in the block, and rest."""
        meter = self._meter
        hurts = None if self._since is None else meter.hurts(self._since)
        if hurts is not None:
            last, self._since = self.amount, None
            self.judge(hurts)
            if self.amount < last:
                # What it has made must not count as that of the next step.
                await self._sleep(LONGEST_REST)
        with self.running():
            began = meter.begin()
            if began - self._ended > QUIET_SECONDS:
                # Others may have come.
                self._begin_small()
            token = working.set(True)
            try:
                yield self.amount
            finally:
                working.reset(token)
                meter.end()
                await self._rest(began)
                self._ended = self._clock.monotonic()

    async def _rest(self, began: float) -> None:
        took = self._clock.monotonic() - began
        if not self._meter.anyone:
            # Others that come wait for one large step at most.
            self.amount, self._alone = min(self.amount * 2, self.most), True
            await self._sleep(0)
            return
        if self._alone:
            self._alone = False
            self._begin_small()
        if self._since is None:
            self._since = began
        await self._sleep(min(took * self.shares, LONGEST_REST))
        if self._meter.lacks:
            await self._sleep(MEASURING_REST)

    def _begin_small(self) -> None:
        self.amount, self.shares, self._felt = self.least, 1.0, inf

    def judge(self, hurts: bool) -> None:
        """Set the next amount and rest by whether the last steps delayed others."""
        if not hurts:
            # Slowly, near what was felt: the next write that meets too large a step waits for it.
            if self.shares > 1.0:
                self.shares = max(self.shares / 1.25, 1.0)
            else:
                more = self.amount if self.amount * 4 <= self._felt else max(self.amount // 8, 1)
                self.amount = min(self.amount + more, self.most)
        elif self.amount > self.least:
            self._felt, self.amount = self.amount, max(self.amount // 2, self.least)
        else:
            self.shares = min(self.shares * 2, MOST_SHARES)
