"""A transaction that stops before one of its statements, so that another comes in between."""

import asyncio
from collections.abc import Sequence
from typing import Any, Literal

from outbox.database.transaction import Insert, Row, Tx


class Paused:
    """Passes everything to `tx`; before the first statement with `text` it waits for `go`.

    An INSERT that the unit puts off waits before the next statement, or at `end`.

    For PostgreSQL: on SQLite nobody else writes meanwhile.
    """

    def __init__(self, tx: Tx, text: str, reached: asyncio.Event, go: asyncio.Event) -> None:
        self._tx = tx
        self._text = text
        self._reached = reached
        self._go = go
        self._put_off = False
        self.engine: Literal["sqlite", "postgres"] = tx.engine
        self.now = tx.now
        self.wake = tx.wake
        self.changed = tx.changed
        self.claims = tx.claims

    async def _wait(self, sql: str) -> None:
        if (self._put_off or self._text in sql) and not self._reached.is_set():
            self._reached.set()
            await self._go.wait()

    def new_id(self) -> str:
        return self._tx.new_id()

    async def one(self, sql: str, *args: Any) -> Row | None:
        await self._wait(sql)
        return await self._tx.one(sql, *args)

    async def all(self, sql: str, *args: Any) -> list[Row]:
        await self._wait(sql)
        return await self._tx.all(sql, *args)

    async def run(self, sql: str, *args: Any) -> int:
        await self._wait(sql)
        return await self._tx.run(sql, *args)

    async def many(self, sql: str, rows: Sequence[Sequence[Any]]) -> list[Row]:
        await self._wait(sql)
        return await self._tx.many(sql, rows)

    def later(self, insert: Insert, row: Sequence[Any]) -> None:
        self._tx.wake = self.wake
        self._put_off = self._put_off or self._text == f"insert into {insert.table}"
        self._tx.later(insert, row)

    async def end(self) -> None:
        """Wait before what the unit has put off is written, if it has not waited yet."""
        await self._wait("")
