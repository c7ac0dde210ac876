"""Counts the work that units of a database do: rows that PostgreSQL reads, steps of SQLite."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from outbox import database
from outbox.clock import SystemClock
from outbox.database.sqlite.file import File
from outbox.database.transaction import Database, Tx
from outbox.ids import Ids

EVERY = 20
"""Steps of SQLite between two calls that count them."""
_READ = """
select sum(seq_tup_read + coalesce(idx_tup_fetch, 0)) as rows from pg_stat_xact_user_tables
"""


class Worked:
    """A database that notes the work of each unit of `write`, by the unit's name."""

    def __init__(self, db: Database, steps: list[int]) -> None:
        self._db = db
        self._steps = steps
        self.units: list[tuple[str, int]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._db, name)

    def most(self) -> int:
        """Return the work of the unit that did most since the last call."""
        found = max(work for _, work in self.units)
        self.units.clear()
        return found

    async def write(self, unit: Callable[..., Awaitable[Any]], *args: Any, **kwargs: Any) -> Any:
        async def counting(tx: Tx, *args: Any, **kwargs: Any) -> Any:
            before = await self._work(tx)
            result = await unit(tx, *args, **kwargs)
            self.units.append((unit.__name__, await self._work(tx) - before))
            return result

        return await self._db.write(counting, *args, **kwargs)

    async def _work(self, tx: Tx) -> int:
        if tx.engine == "sqlite":
            return self._steps[0]
        row = await tx.one(_READ)
        assert row is not None
        return int(row["rows"])


@asynccontextmanager
async def worked(url: str) -> AsyncIterator[Worked]:
    """Open a database that serves, and count what its writer does."""
    steps = [0]
    connect = File.connect

    def opened(self: File, writable: bool = True) -> sqlite3.Connection:
        connection = connect(self, writable)
        if writable:
            connection.set_progress_handler(lambda: steps.__setitem__(0, steps[0] + EVERY), EVERY)
        return connection

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(File, "connect", opened)
        db = await database.open(url, clock=SystemClock(), ids=Ids(), serving=True)
        try:
            yield Worked(db, steps)
        finally:
            await db.close()
