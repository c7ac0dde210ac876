"""A connection of a pool for the time of one unit."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import NamedTuple

import asyncpg

from outbox.database.fair_limit import FairSemaphore
from outbox.database.postgres.faults import LOST, breaks_off
from outbox.database.postgres.hosts import Connection, is_gone
from outbox.database.postgres.limits import ACQUIRE_SECONDS, Times
from outbox.database.postgres.room import Room
from outbox.errors import DatabaseUnavailable

ROLLBACK_SECONDS = 1.0


class Turn(NamedTuple):
    """The queue in which a unit waits for a connection, and the owner it runs for."""

    places: FairSemaphore
    owner: str
    text: str
    """Says that the wait was too long."""

    async def take(self) -> None:
        """Wait for a place. Raise Crowded."""
        await self.places.take(self.owner)

    def leave(self) -> None:
        """Release the place."""
        self.places.leave(self.owner)


class Pooled:
    """A connection that is acquired when it is first needed, and released at the block's end.

    When the block raises an error, the open transaction is rolled back.
    """

    __slots__ = ("_open", "_pool", "_room", "_size", "_times", "_turn", "connection")

    def __init__(
        self,
        open_pool: Callable[[], Awaitable[asyncpg.Pool]],
        size: int,
        room: Room,
        times: Times,
        turn: Turn | None = None,
    ) -> None:
        """Acquire within `times` from the pool, which has up to `size` connections.

        With a `turn`, it first waits for its place, without a connection.
        """
        self._open = open_pool
        self._size = size
        self._room = room
        self._times = times
        self._turn = turn
        self._pool: asyncpg.Pool | None = None
        self.connection: Connection | None = None

    async def acquire(self) -> Connection:
        """Return the connection. Raise DatabaseUnavailable when none becomes free in time."""
        if self.connection is None:
            if self._turn is None:
                self.connection = await self._acquire()
            else:
                if not self._turn.places.take_free(self._turn.owner):
                    await self._take(self._turn)
                try:
                    self.connection = await self._acquire()
                finally:
                    if self.connection is None:
                        self._turn.leave()
        return self.connection

    async def _acquire(self) -> Connection:
        self._pool = pool = await self._open()
        try:
            return await self._room.acquire(pool, self._left())
        except TimeoutError:
            if (refusal := self._room.refusal) is not None:
                text = f"PostgreSQL: no connection is free ({refusal})"
                raise DatabaseUnavailable("busy", text) from None
            if pool.get_idle_size() == 0 and pool.get_size() == self._size:
                raise DatabaseUnavailable("busy", "PostgreSQL: no connection is free") from None
            raise

    async def _take(self, turn: Turn) -> None:
        try:
            async with asyncio.timeout(self._left()):
                await turn.take()
        except TimeoutError:
            raise DatabaseUnavailable("busy", turn.text) from None

    def _left(self) -> float | None:
        return self._times.acquire(asyncio.get_running_loop().time())

    async def __aenter__(self) -> Pooled:
        return self

    async def __aexit__(self, _: object, error: BaseException | None, __: object) -> None:
        if self._pool is None or self.connection is None:
            return
        try:
            if error is not None:
                await _undo(self.connection, error)
        finally:
            # The connection was lost after its reply: the pool may have removed it, and the reply
            # is valid.
            try:
                self._room.came_back(self.connection)
                with suppress(*LOST):
                    if error is None:
                        await _take_back(self.connection)
                    else:
                        # It has tasks of its own, which cancellation does not reach.
                        await self._pool.release(self.connection, timeout=ACQUIRE_SECONDS)
            finally:
                self._room.left()
                if self._turn is not None:
                    self._turn.leave()


async def _take_back(connection: Connection) -> None:
    """Return a connection without a transaction to its pool.

    As `Pool.release` does, but without a task: nothing has to be waited for.
    """
    if (session := connection._con) is not None:
        session._on_release()
        await connection._holder.release(None)


async def _undo(connection: Connection, error: BaseException) -> None:
    """End the open transaction, so that the connection returns to the pool without it."""
    if is_gone(connection):
        return
    if isinstance(error, TimeoutError | asyncpg.ReadOnlySQLTransactionError) or breaks_off(error):
        # A rollback on this connection would wait as long again.
        connection.terminate()
        return
    try:
        await asyncio.shield(connection.execute("rollback", timeout=ROLLBACK_SECONDS))
    except (*LOST, asyncpg.PostgresError, asyncio.CancelledError):
        connection.terminate()
