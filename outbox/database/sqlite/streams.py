"""Read the rows of one query of an SQLite file for a slow reader, on a connection of its own.

The connection belongs to aiosqlite and neither writes nor checkpoints. The snapshot of a stream
keeps the WAL from being reset, so a stream has a limit of time.
"""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiosqlite

from outbox.clock import Clock
from outbox.database.sizes import STREAMED_BYTES, Batches
from outbox.database.sql import translate
from outbox.database.sqlite.file import BUSY_MILLISECONDS
from outbox.database.sqlite.snapshot import address
from outbox.database.sqlite.unit_thread import fault_of
from outbox.database.streaming import Close, Streaming
from outbox.database.transaction import Values


class Streams:
    """The streams of one file."""

    def __init__(self, file: Path, clock: Clock) -> None:
        self._file = file
        self._streaming = Streaming(clock, self._query)
        self._open: set[aiosqlite.Connection] = set()
        self.fetching = 0
        """How many threads read rows now."""

    def rows(
        self, owner: str, sql: str, args: Sequence[Any]
    ) -> AsyncGenerator[Sequence[Values], None]:
        """Yield the rows; see Database.stream."""
        return self._streaming.rows(owner, sql, args)

    @asynccontextmanager
    async def _query(self, sql: str, args: Sequence[Any]) -> AsyncIterator[tuple[Batches, Close]]:
        try:
            async with aiosqlite.connect(
                address(self._file),
                uri=True,
                isolation_level=None,
                timeout=BUSY_MILLISECONDS / 1000,
            ) as connection:
                self._open.add(connection)
                try:
                    await connection.execute("pragma query_only = on")
                    await connection.execute("pragma temp_store = memory")
                    cursor = await connection.execute(translate(sql, "sqlite"), args)

                    async def fetch(count: int) -> Sequence[Values]:
                        self.fetching += 1
                        try:
                            return list(await cursor.fetchmany(count))
                        finally:
                            self.fetching -= 1

                    # Without its cursor the connection has no snapshot.
                    yield Batches(fetch, STREAMED_BYTES), cursor.close
                finally:
                    self._open.discard(connection)
                    # A statement of a caller that has gone may still search.
                    await connection.interrupt()
        except sqlite3.Error as error:
            raise fault_of(error) from error

    async def close(self) -> None:
        """Interrupt what is open; its reader gets DatabaseUnavailable."""
        for connection in list(self._open):
            await connection.interrupt()
