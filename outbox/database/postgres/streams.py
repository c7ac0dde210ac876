"""Read the rows of one query of PostgreSQL for a slow reader, on a connection of its own.

A cursor in a read transaction, on a connection without the limits of requests: a stream has a limit
of time instead, because its snapshot keeps old rows.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import asyncpg

from outbox.clock import Clock
from outbox.database.index_plans import BY_INDEX
from outbox.database.postgres.faults import LOST, fault_of
from outbox.database.postgres.hosts import Connection
from outbox.database.postgres.limits import ACQUIRE_SECONDS
from outbox.database.postgres.server import READ, Server
from outbox.database.sizes import STREAMED_BYTES, Batches
from outbox.database.sql import translate
from outbox.database.streaming import Close, Streaming
from outbox.database.transaction import Values
from outbox.errors import DatabaseUnavailable


class Streams:
    """The streams of one server."""

    def __init__(self, server: Server, clock: Clock) -> None:
        self._server = server
        self._streaming = Streaming(clock, self._query)
        self._open: set[Connection] = set()

    def rows(
        self, owner: str, sql: str, args: Sequence[Any]
    ) -> AsyncGenerator[Sequence[Values], None]:
        """Yield the rows; see Database.stream."""
        return self._streaming.rows(owner, sql, args)

    @asynccontextmanager
    async def _query(self, sql: str, args: Sequence[Any]) -> AsyncIterator[tuple[Batches, Close]]:
        connection: Connection = None
        try:
            connection = await self._server.connect(ACQUIRE_SECONDS)
            self._open.add(connection)
            # In the order of an index, so that the first row comes before all are sorted.
            await connection.execute(f"{READ}; {BY_INDEX}")
            cursor = await connection.cursor(translate(sql, "postgres"), *args)

            async def fetch(count: int) -> Sequence[Values]:
                return [tuple(row) for row in await cursor.fetch(count)]

            async def close() -> None:
                connection.terminate()

            yield Batches(fetch, STREAMED_BYTES), close
        except (*LOST, asyncpg.PostgresError) as error:
            kind = fault_of(error)
            if kind is None:
                raise
            raise DatabaseUnavailable(kind, f"PostgreSQL: {error}") from error
        finally:
            if connection is not None:
                self._open.discard(connection)
                connection.terminate()

    async def close(self) -> None:
        """Close the connections of what is open; its reader gets DatabaseUnavailable."""
        for connection in list(self._open):
            connection.terminate()
