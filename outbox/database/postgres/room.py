"""Fewer connections than a pool may have: its units wait for an open one.

While the server lets nobody in, a unit without a connection waits until another returns one, and a
new one is tried once in a while. A pool without any tries repeatedly, and the pool that has most
gives one of its own up for it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import suppress

import asyncpg
import structlog

from outbox.database.postgres.faults import LOST, is_full
from outbox.database.postgres.hosts import Connection

REST_SECONDS = 5.0
"""After a refusal, seconds before a pool with open connections tries another one."""
AGAIN_SECONDS = 0.2
"""The same for a pool without any."""
GIVEN_SECONDS = 1.0
"""Seconds between two connections that are given up: the first may be taken by now."""
PATIENCE = 6.0
"""Seconds that a unit without a deadline waits while its pool has no connection."""
SAID_SECONDS = 60.0

log = structlog.get_logger("outbox")


class House:
    """What the pools of one process have of one server."""

    def __init__(self) -> None:
        self._rooms: list[Room] = []
        self._said: dict[type, float] = {}
        self._gave = float("-inf")

    def room(self, *, waits: bool) -> Room:
        """Return the room of a new pool; without `waits` its units can do without it."""
        self._rooms.append(Room(self, waits))
        return self._rooms[-1]

    def tell(self, error: asyncpg.PostgresError) -> None:
        """Log why the server refuses a connection, each reason once a minute."""
        now = asyncio.get_running_loop().time()
        if now - self._said.get(type(error), float("-inf")) >= SAID_SECONDS:
            self._said[type(error)] = now
            log.warning("connection_refused", error=str(error))

    def needs(self) -> None:
        """Let the pool with most connections give one up for somebody who has none."""
        now = asyncio.get_running_loop().time()
        largest = max(self._rooms, key=lambda room: room.size, default=None)
        if largest is not None and largest.size > 1 and now - self._gave >= GIVEN_SECONDS:
            self._gave = now
            largest.give(now)


class Room:
    """How many connections one pool can have now."""

    def __init__(self, house: House, waits: bool) -> None:
        self.refusal: asyncpg.PostgresError | None = None
        """What the server has said to the last connection, if it let it not in."""
        self._house = house
        self._waits = waits
        self._pool: asyncpg.Pool | None = None
        self._again_at = 0.0
        self._owes = False
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._giving: asyncio.Task[None] | None = None

    @property
    def size(self) -> int:
        """Return the number of open connections."""
        return 0 if self._pool is None else self._pool.get_size()

    async def acquire(self, pool: asyncpg.Pool, seconds: float | None) -> Connection:
        """Return a connection of the pool. Raise TimeoutError, or the error of connecting."""
        self._pool = pool
        if self.refusal is None and _has_ready(pool):
            # It comes at once: a deadline would cost more than all else.
            return await pool.acquire()
        loop = asyncio.get_running_loop()
        began = loop.time()
        end = None if seconds is None else began + seconds
        late = False
        while True:
            tries = self.refusal is None or loop.time() >= self._again_at
            if tries or (pool.get_idle_size() and (late or not self._waiting)):
                # One tries at a time.
                self._again_at = loop.time() + REST_SECONDS
                left = None if end is None else max(end - loop.time(), 0.0)
                try:
                    connection = await pool.acquire(timeout=left)
                except asyncpg.PostgresError as error:
                    if not is_full(error):
                        raise
                    self._refused(error, loop.time())
                    patient = self._waits and (end is not None or loop.time() < began + PATIENCE)
                    if not patient and not self.size:
                        raise
                else:
                    if tries and self.refusal is not None:
                        self.refusal = None
                        while self._waiting:
                            self.left()
                    return connection
            late = await self._freed(end)

    def came_back(self, connection: Connection) -> None:
        """Close a connection that is owed, before the pool takes it back."""
        if self._owes and self.size > 1:
            self._owes = False
            connection.terminate()

    def left(self) -> None:
        """Let the next unit take the connection that the pool has taken back."""
        while self._waiting:
            waiter = self._waiting.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return

    def give(self, now: float) -> None:
        """Close one connection, now or when it comes back, and open none for a while."""
        assert self._pool is not None
        self._again_at = now + 2 * REST_SECONDS
        if self.refusal is None:
            self.refusal = asyncpg.TooManyConnectionsError("no connection is free")
        if not self._pool.get_idle_size():
            self._owes = True
        elif self._giving is None or self._giving.done():
            self._giving = asyncio.get_running_loop().create_task(self._close_one(self._pool))

    async def _close_one(self, pool: asyncpg.Pool) -> None:
        with suppress(*LOST, asyncpg.PostgresError):
            connection = await pool.acquire(timeout=GIVEN_SECONDS)
            connection.terminate()
            await pool.release(connection)

    def _refused(self, error: asyncpg.PostgresError, now: float) -> None:
        self.refusal = error
        if self.size:
            self._again_at = now + REST_SECONDS
        else:
            self._again_at = now + AGAIN_SECONDS
            if self._waits:
                self._house.needs()

    async def _freed(self, end: float | None) -> bool:
        """Wait until a connection is free, or another may be tried. Raise TimeoutError."""
        loop = asyncio.get_running_loop()
        waiter = loop.create_future()
        self._waiting.append(waiter)
        try:
            async with asyncio.timeout_at(min(self._again_at, end or self._again_at)):
                await waiter
        except BaseException as error:
            if waiter.done() and not waiter.cancelled():
                self.left()
            with suppress(ValueError):
                self._waiting.remove(waiter)
            if isinstance(error, TimeoutError) and (end is None or loop.time() < end):
                return False
            raise
        return True


def _has_ready(pool: asyncpg.Pool) -> bool:
    """Return whether the next connection of the pool is open, so that it comes at once."""
    # In the order in which the pool takes them.
    for holder in reversed(pool._queue._queue):
        if holder.is_connected():
            return bool(holder._generation == pool._generation)
    return False
