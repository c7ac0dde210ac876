"""A connection of a pool for the time of one unit."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

import asyncpg

from outbox.database.postgres.faults import LOST, breaks_off
from outbox.database.postgres.hosts import Connection, is_gone
from outbox.database.postgres.limits import Times
from outbox.errors import DatabaseUnavailable

ROLLBACK_SECONDS = 1.0


class Pooled:
    """A connection that is acquired when it is first needed, and released at the block's end.

    When the block raises an error, the open transaction is rolled back.
    """

    __slots__ = ("_open", "_pool", "_size", "_times", "connection")

    def __init__(
        self, open_pool: Callable[[], Awaitable[asyncpg.Pool]], size: int, times: Times
    ) -> None:
        """Acquire within `times` from the pool, which has up to `size` connections."""
        self._open = open_pool
        self._size = size
        self._times = times
        self._pool: asyncpg.Pool | None = None
        self.connection: Connection | None = None

    async def acquire(self) -> Connection:
        """Return the connection. Raise DatabaseUnavailable when none becomes free in time."""
        if self.connection is None:
            self._pool = pool = await self._open()
            try:
                self.connection = await pool.acquire(
                    timeout=self._times.acquire(asyncio.get_running_loop().time())
                )
            except TimeoutError:
                if pool.get_idle_size() == 0 and pool.get_size() == self._size:
                    raise DatabaseUnavailable("busy", "PostgreSQL: no connection is free") from None
                raise
        return self.connection

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
            with suppress(*LOST):
                await asyncio.shield(self._pool.release(self.connection))


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
