"""Who streams rows to slow readers, on both engines: places, and what gives way to those that wait.

What fits into SPOOLED_BYTES is read at once, so that its reader keeps no place and no snapshot;
where all places are taken, it is read in a place of its own that no reader can keep.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from math import ceil
from typing import Any

from outbox.clock import Clock
from outbox.database.fair_limit import Crowded
from outbox.database.sizes import Batches, Rows
from outbox.database.transaction import Values
from outbox.database.unit_limits import STREAM_SECONDS, spool_places, stream_places
from outbox.errors import DatabaseUnavailable

SPOOLED_BYTES = 2**19
"""So much of a stream is read ahead; with the rows of one batch more, at most."""
SLOW_SECONDS = 10.0
BRISK_RATE = 65_536
"""A reader that lets a stream wait for SLOW_SECONDS, and takes fewer bytes a second, gives way
when others wait."""
LOOK_SECONDS = 0.5

Close = Callable[[], Awaitable[object]]
Open = Callable[[str, Sequence[Any]], AbstractAsyncContextManager[tuple[Batches, Close]]]
"""Runs a query; its first result is its rows, the second ends it while nobody reads it."""


class _Turn:
    """A stream that has a place, and how long its reader has let it wait."""

    def __init__(self, owner: str, now: float) -> None:
        self.owner = owner
        self.end = now + STREAM_SECONDS
        self.gone = False
        self.close: Close | None = None
        self._given = 0
        self._taken = 0
        self._waited = 0.0
        self._since: float | None = None

    def give(self, size: int, now: float) -> None:
        """Note that the reader gets so many bytes."""
        self._given, self._since = size, now

    def given(self, now: float) -> None:
        """Note that the reader has taken them."""
        self._taken += self._given
        self._waited += now - (self._since or now)
        self._since = None

    def slow_in(self, now: float) -> float:
        """Return the seconds until the stream has to give way, 0 when it has to."""
        if self._since is None:
            return SLOW_SECONDS
        waited = self._waited + now - self._since
        return max(0.0, SLOW_SECONDS - waited, self._taken / BRISK_RATE - waited)


class Streaming:
    """The streams of one database; `open_query` runs their queries."""

    def __init__(self, clock: Clock, open_query: Open) -> None:
        self._clock = clock
        self._query = open_query
        self._places = stream_places()
        self._spools = spool_places()
        # The one that began first gives way first.
        self._turns: dict[_Turn, None] = {}

    async def rows(
        self, owner: str, sql: str, args: Sequence[Any]
    ) -> AsyncGenerator[Sequence[Values], None]:
        """Yield the rows; see Database.stream."""
        if not self._places.take_free(owner):
            async with self._spools.place(owner), self._query(sql, args) as (batches, _):
                read, whole = await _read_ahead(batches)
            if whole:
                for _, batch in read:
                    yield batch
                return
            del read
            await self._wait(owner)
        turn, now = _Turn(owner, self._clock.monotonic()), self._clock.monotonic
        self._turns[turn] = None
        try:
            async with self._query(sql, args) as (batches, turn.close):
                read, whole = await _read_ahead(batches)
                while read and not whole:
                    for size, batch in read:
                        if now() > turn.end:
                            raise DatabaseUnavailable("busy", "a stream took too long")
                        turn.give(size, now())
                        yield batch
                        turn.given(now())
                        if turn.gone:
                            raise DatabaseUnavailable("busy", "a slow stream gave way to others")
                    batch = await batches.next()
                    read = [(batches.size, batch)] if batch else []
        finally:
            self._leave(turn)
        for _, batch in read:
            yield batch

    def _leave(self, turn: _Turn) -> None:
        if turn in self._turns:
            del self._turns[turn]
            self._places.leave(turn.owner)

    async def _wait(self, owner: str) -> None:
        """Wait for a place, for which slow streams of others give way. Raise Crowded."""
        waiter = asyncio.ensure_future(self._places.take(owner))
        try:
            while not waiter.done():
                await self._make_room(owner)
                await asyncio.wait({waiter}, timeout=LOOK_SECONDS)
            waiter.result()
        except Crowded as crowded:
            crowded.seconds = self._free_in(owner)
            raise
        except BaseException:
            if not waiter.cancel() and not waiter.cancelled() and waiter.exception() is None:
                self._places.leave(owner)
            raise

    async def _make_room(self, owner: str) -> None:
        now = self._clock.monotonic()
        if any(turn.owner == owner for turn in self._turns):
            # It waits for its own stream, whoever else gives way.
            return
        for turn in self._turns:
            if not turn.slow_in(now):
                turn.gone = True
                self._leave(turn)
                if turn.close is not None:
                    await turn.close()
                return

    def _free_in(self, owner: str) -> int:
        """Return the seconds until a place should be free for an owner."""
        now = self._clock.monotonic()
        own = [turn.end - now for turn in self._turns if turn.owner == owner]
        return max(1, ceil(min(own or (turn.slow_in(now) for turn in self._turns), default=1)))


async def _read_ahead(batches: Batches) -> tuple[list[tuple[int, Rows]], bool]:
    """Return the first batches, each with its bytes, and whether they are all."""
    read: list[tuple[int, Rows]] = []
    while sum(size for size, _ in read) < SPOOLED_BYTES:
        batch = await batches.next()
        if not batch:
            return read, True
        read.append((batches.size, batch))
    return read, False
