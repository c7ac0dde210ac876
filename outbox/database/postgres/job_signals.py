"""Paces a job of another process by what the servers of its databases measure.

The job sends `step` before each of its steps and `rest` after it. A server takes both as the ends
of a step of its own (see outbox.database.pacing), and answers `felt` or `unfelt` while others write
there, and `unmeasured` when the job must rest for long first. Where no server answers, nobody
writes, and the job does not rest.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress

import asyncpg

from outbox.clock import Clock
from outbox.database.pacing import QUIET_SECONDS, Meter
from outbox.database.postgres.faults import LOST
from outbox.database.postgres.hosts import Connection
from outbox.database.postgres.snapshot import connected
from outbox.database.sql import translate
from outbox.database.transfer import Place
from outbox.errors import CannotStart

STEP, REST, FELT, UNFELT, UNMEASURED = "step", "rest", "felt", "unfelt", "unmeasured"
KINDS = (STEP, REST, FELT, UNFELT, UNMEASURED)
ANSWER_SECONDS = 0.02
"""After so long most writes that began during a step have ended."""
FORGET_SECONDS = 5.0
"""A job that has sent nothing for so long has ended."""
_CHANNEL = translate("select own_channel()", "postgres")
_SEND = "select pg_notify($1, $2)"


class HeardJob:
    """The job of another process, in a server: its steps are noted in `meter`."""

    def __init__(self, meter: Meter, answer: Callable[[str], None]) -> None:
        self._meter = meter
        self._answer = answer
        self._end: asyncio.TimerHandle | None = None
        self._steps = False
        self._since: float | None = None
        """When the first step began that is not judged."""

    def heard(self, kind: str) -> None:
        """Note a signal; those of other servers change nothing."""
        if kind not in (STEP, REST):
            return
        loop = asyncio.get_running_loop()
        if self._end is None:
            self._meter.jobs += 1
        else:
            self._end.cancel()
        self._end = loop.call_later(FORGET_SECONDS, self.forget)
        if kind == STEP and not self._steps:
            self._steps = True
            began = self._meter.begin()
            if self._since is None:
                self._since = began
        elif kind == REST and self._steps:
            self._rest()
            loop.call_later(ANSWER_SECONDS, self._judge)

    def forget(self) -> None:
        """Stop measuring for a job that has ended."""
        if self._end is not None:
            self._end.cancel()
            self._end = None
            self._meter.jobs -= 1
            self._rest()

    def _rest(self) -> None:
        if self._steps:
            self._steps = False
            self._meter.end()

    def _judge(self) -> None:
        if self._meter.anyone:
            # A job of an earlier release takes no notice of the first, so it needs the second too.
            if self._meter.lacks:
                self._answer(UNMEASURED)
            hurts = None if self._since is None else self._meter.hurts(self._since)
            if hurts is not None:
                self._since = None
            self._answer(FELT if hurts else UNFELT)


class ServersMeter:
    """What the servers of some databases measure beside a job of this process.

    Takes the place of outbox.database.pacing.Meter for a JobPace.
    """

    def __init__(self, connections: Sequence[Connection], clock: Clock) -> None:
        self.jobs = 0
        self.lacks = False
        """Whether a server must measure others without the job."""
        self._connections = connections
        self._clock = clock
        self._heard_at = float("-inf")
        self._felt: bool | None = None
        self._said: asyncio.Queue[str] = asyncio.Queue()

    def begin(self) -> float:
        """Tell the servers that a step begins, and return when."""
        self._felt, self.lacks = None, False
        self._said.put_nowait(STEP)
        return self._clock.monotonic()

    def end(self) -> None:
        """Tell the servers that a step has ended."""
        self._said.put_nowait(REST)

    @property
    def anyone(self) -> bool:
        """Whether a server has answered lately, which it does while others write."""
        return self._clock.monotonic() - self._heard_at < QUIET_SECONDS

    def hurts(self, since: float) -> bool | None:
        """Return whether a server felt the last step; None when none has answered yet."""
        return self._felt

    async def run(self) -> None:
        """Send and hear, until it is cancelled. Without a connection the job goes on alone."""
        try:
            channels = [await each.fetchval(_CHANNEL) for each in self._connections]
            for each, channel in zip(self._connections, channels, strict=True):
                await each.add_listener(channel, self._heard)
            while True:
                kind = await self._said.get()
                for each, channel in zip(self._connections, channels, strict=True):
                    await each.execute(_SEND, channel, kind)
        except (*LOST, asyncpg.PostgresError):
            self._heard_at = float("-inf")

    def _heard(self, _: object, pid: int, channel: str, payload: str) -> None:
        if payload == UNMEASURED:
            self.lacks = True
        elif payload in (FELT, UNFELT):
            self._heard_at = self._clock.monotonic()
            self._felt = bool(self._felt) or payload == FELT


@asynccontextmanager
async def servers_meter(places: Sequence[Place], clock: Clock) -> AsyncIterator[ServersMeter]:
    """Let the servers of these databases measure what the steps of a job cost, in the block.

    A server without a connection to spare measures nothing.
    """
    async with AsyncExitStack() as stack:
        connections = []
        for place in places:
            with suppress(CannotStart):
                connections.append(await stack.enter_async_context(connected(place)))
        meter = ServersMeter(connections, clock)
        task = asyncio.create_task(meter.run(), name="job-signals")
        try:
            yield meter
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
