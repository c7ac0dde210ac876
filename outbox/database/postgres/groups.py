"""Group commit: one statement writes the rows of several units, and commits by itself.

A unit that only puts rows off waits while another group is on its way, and then goes with all that
wait. So the server runs one statement, flushes once and answers once for many units. One group at a
time is faster than two, also with a COMMIT that takes 10 ms: two wait for each other's locks. When
a group lasts, the next goes on another connection: the first may be lost.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from outbox.clock import sleep_until_set
from outbox.database.deferred import Deferred
from outbox.database.postgres.commit_outcome import unknown
from outbox.database.postgres.limits import Times
from outbox.errors import OutcomeUnknown

UNITS = 32
"""Most units of a group."""
LENGTH = 1024 * 1024
"""A group whose texts and bytes are as long takes no further unit."""
APART_SECONDS = 1.0
"""Seconds without groups after one has failed, so that a bad unit seldom delays others."""
SLOW_SECONDS = 1.0
"""Seconds of a group after which the next no longer waits for its end."""
CONNECTIONS = 2
"""Most groups on their way; all but one of them are slow."""

MANY = 8
"""Units that wait for a group are so many when requests come as fast as they are answered."""
TURN_SECONDS = 0.05
"""The longest time that a group of many units waits for the drain."""

Write = Callable[[Deferred, Times], Awaitable[None]]
"""Writes rows at once. Raises OutcomeUnknown, or another error when nothing is written."""


class Turns:
    """The units of the drain of this process that are under way.

    Where writes come as fast as they are answered, they would take the whole event loop, and
    deliveries would fall behind. So each large group lets the turn of the drain end first.
    """

    def __init__(self) -> None:
        self._under_way = 0
        self._over = asyncio.Event()

    def __enter__(self) -> None:
        """Note that a unit of the drain runs during the block."""
        self._under_way += 1
        self._over.clear()

    def __exit__(self, *_: object) -> None:
        self._under_way -= 1
        if not self._under_way:
            self._over.set()

    async def over(self) -> None:
        """Wait until none is under way, or for TURN_SECONDS."""
        if self._under_way:
            await sleep_until_set(self._over, TURN_SECONDS)


@dataclass(frozen=True, slots=True)
class _Member:
    rows: Deferred
    times: Times
    written: asyncio.Future[bool]


class Groups:
    """The groups of one process."""

    def __init__(self, write: Write, turns: Turns) -> None:
        self._write = write
        self._turns = turns
        self._waiting: deque[_Member] = deque()
        self._writer: asyncio.Task[None] | None = None
        self._slow: set[asyncio.Task[None]] = set()
        """Writers of groups that last; `_writer` is none of them."""
        self._apart_until = 0.0
        """On the clock of the event loop."""

    async def write(self, rows: Deferred, times: Times) -> bool:
        """Write a copy of `rows` with others. Raise OutcomeUnknown.

        False: they are not written and will not be, so their unit may write them alone.
        """
        loop = asyncio.get_running_loop()
        if loop.time() < self._apart_until:
            return False
        member = _Member(rows, times, loop.create_future())
        self._waiting.append(member)
        self._go_on()
        return await member.written

    def _go_on(self) -> None:
        """Send the next group on its way, unless units wait for another one."""
        if self._waiting and self._writer is None and len(self._slow) < CONNECTIONS:
            self._writer = asyncio.get_running_loop().create_task(self._write_next())
            self._writer.add_done_callback(self._ended)

    def _let_pass(self) -> None:
        """Wait no longer for the group that is on its way."""
        if self._writer is not None:
            self._slow.add(self._writer)
            self._writer = None
        self._go_on()

    def _ended(self, writer: asyncio.Task[None]) -> None:
        if self._writer is writer:
            self._writer = None
        self._slow.discard(writer)
        self._go_on()

    def _group(self) -> list[_Member]:
        """Return the members of the next group, from the front of the queue."""
        now = asyncio.get_running_loop().time()
        group: list[_Member] = []
        length = 0
        while self._waiting and len(group) < UNITS and length < LENGTH:
            member = self._waiting.popleft()
            if member.written.done():
                # Its caller has been cancelled.
                continue
            if member.times.late(now + SLOW_SECONDS):
                # Its few moments would be those of the whole group.
                member.written.set_result(False)
                continue
            group.append(member)
            length += member.rows.length()
        return group

    async def _write_next(self) -> None:
        if len(self._waiting) >= MANY:
            await self._turns.over()
        group = self._group()
        if not group:
            return
        loop = asyncio.get_running_loop()
        times = min((member.times for member in group), key=lambda times: times.body or 0.0)
        slow = loop.call_later(SLOW_SECONDS, self._let_pass)
        # This stays the outcome when the task is cancelled.
        error: Exception | None = unknown()
        try:
            await self._write(Deferred.of(member.rows for member in group), times)
            error = None
        except OutcomeUnknown as caught:
            error = caught
        except Exception as caught:  # noqa: BLE001 - each unit meets it again, when it writes alone
            error = caught
            self._part(loop.time() + APART_SECONDS)
        finally:
            slow.cancel()
            _answer(group, error)

    def _part(self, until: float) -> None:
        """Let the units that wait write alone, and those that come before `until`."""
        self._apart_until = until
        for member in self._waiting:
            if not member.written.done():
                member.written.set_result(False)
        self._waiting.clear()


def _answer(group: list[_Member], error: Exception | None) -> None:
    for member in group:
        if member.written.done():
            # Its caller has been cancelled.
            continue
        if isinstance(error, OutcomeUnknown):
            # Each has one of its own: raising changes an exception.
            member.written.set_exception(unknown())
        else:
            member.written.set_result(error is None)
