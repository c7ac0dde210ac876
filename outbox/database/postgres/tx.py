"""`Tx` on PostgreSQL."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from outbox.database.deferred import Deferred
from outbox.database.postgres.fate import marking
from outbox.database.postgres.hosts import Connection
from outbox.database.postgres.together import Statements, Witness, together
from outbox.database.sql import translate
from outbox.database.transaction import Insert, Row
from outbox.ids import Ids


class NotAlone(BaseException):
    """A unit that was expected to send one query sends more; no unit catches this."""


class PostgresTx:
    """`Tx` on one connection; its transaction begins with the unit's first statement.

    So a unit that only calls `later` needs none, and neither does one that sends a single query:
    a statement is a transaction by itself.
    """

    __slots__ = (
        "_alone", "_begin", "_connection", "_ids", "asked", "begun", "changed", "marked", "now",
        "put_off", "wake", "witness",
    )  # fmt: skip
    engine: Literal["sqlite", "postgres"] = "postgres"

    def __init__(
        self, connection: Connection, ids: Ids, now: int, begin: str = "", *, alone: bool = False
    ) -> None:
        """Begin with the statement `begin`, empty inside a transaction.

        With `alone` the unit is expected to send one query; the second one raises NotAlone.
        """
        self._connection = connection
        self._ids = ids
        self._begin = begin
        self._alone = alone
        self.begun = not begin
        self.asked = False
        self.now = now
        self.put_off = Deferred()
        self.marked: Row | None = None
        """The mark of the transaction (see outbox.database.postgres.fate), if it is known."""
        self.witness: Witness | None = None
        self.wake = False
        self.changed: set[str] = set()

    def new_id(self) -> str:
        return self._ids.new(self.now)

    def later(self, insert: Insert, row: Sequence[Any]) -> None:
        self.put_off.add(insert, row)

    async def write(self, statements: Statements) -> None:
        """Write rows of `later`, and learn the mark of the transaction with them."""
        await self._begins()
        self.witness = self.witness or statements.witness
        *before, (text, values) = statements.texts
        for other, some in before:
            await self._connection.execute(other, *some)
        self.marked = await self._connection.fetchrow(marking(text), *values)

    async def _begins(self) -> None:
        if not self.begun:
            self.begun = True
            await self._connection.execute(self._begin)

    async def _before(self, text: str) -> None:
        """Begin, unless this is the query of a unit that is `alone`; write what it must find."""
        if self.asked:
            raise NotAlone
        if self._alone and not self.begun and text.startswith("select"):
            self.asked = True
            return
        await self._begins()
        if self.put_off and self.put_off.concern(text):
            await self.write(together(self.put_off))

    async def one(self, sql: str, *args: Any) -> Row | None:
        text = translate(sql, "postgres")
        await self._before(text)
        row: Row | None = await self._connection.fetchrow(text, *args)
        return row

    async def all(self, sql: str, *args: Any) -> list[Row]:
        text = translate(sql, "postgres")
        await self._before(text)
        rows: list[Row] = await self._connection.fetch(text, *args)
        return rows

    async def run(self, sql: str, *args: Any) -> int:
        text = translate(sql, "postgres")
        await self._before(text)
        status: str = await self._connection.execute(text, *args)
        count = status.rpartition(" ")[2]
        return int(count) if count.isdigit() else 0

    async def many(self, sql: str, rows: Sequence[Sequence[Any]]) -> list[Row]:
        if not rows:
            return []
        text = translate(sql, "postgres")
        await self._before(text)
        if "returning" not in text:
            await self._connection.executemany(text, rows)
            return []
        found: list[Row] = await self._connection.fetchmany(text, rows)
        return found
