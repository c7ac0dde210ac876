"""`Tx` on PostgreSQL."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from outbox.database.postgres.hosts import Connection
from outbox.database.sql import translate
from outbox.database.transaction import Insert, Row
from outbox.ids import Ids


class PostgresTx:
    """`Tx` on one connection inside one transaction."""

    __slots__ = ("_connection", "_ids", "changed", "now", "put_off", "wake")
    engine: Literal["sqlite", "postgres"] = "postgres"

    def __init__(self, connection: Connection, ids: Ids, now: int) -> None:
        self._connection = connection
        self._ids = ids
        self.now = now
        self.put_off: dict[Insert, list[Sequence[Any]]] = {}
        self.wake = False
        self.changed: set[str] = set()

    def new_id(self) -> str:
        return self._ids.new(self.now)

    def later(self, insert: Insert, row: Sequence[Any]) -> None:
        self.put_off.setdefault(insert, []).append(row)

    async def one(self, sql: str, *args: Any) -> Row | None:
        row: Row | None = await self._connection.fetchrow(translate(sql, "postgres"), *args)
        return row

    async def all(self, sql: str, *args: Any) -> list[Row]:
        rows: list[Row] = await self._connection.fetch(translate(sql, "postgres"), *args)
        return rows

    async def run(self, sql: str, *args: Any) -> int:
        status: str = await self._connection.execute(translate(sql, "postgres"), *args)
        count = status.rpartition(" ")[2]
        return int(count) if count.isdigit() else 0

    async def many(self, sql: str, rows: Sequence[Sequence[Any]]) -> list[Row]:
        if not rows:
            return []
        text = translate(sql, "postgres")
        if "returning" not in text:
            await self._connection.executemany(text, rows)
            return []
        found: list[Row] = await self._connection.fetchmany(text, rows)
        return found
