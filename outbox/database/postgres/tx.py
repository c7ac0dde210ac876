"""`Tx` on PostgreSQL."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Literal

from outbox.database.claims import Claim
from outbox.database.deferred import Deferred
from outbox.database.postgres.commit_outcome import marking
from outbox.database.postgres.deferred_rows import Statement, Witness, together
from outbox.database.postgres.hosts import Connection
from outbox.database.sql import translate
from outbox.database.transaction import Insert, Row
from outbox.ids import Ids

Acquire = Callable[[], Awaitable[Connection]]


class NotAlone(BaseException):
    """A unit that was expected to send one query sends more; no unit catches this."""


class PostgresTx:
    """`Tx` on one connection; its transaction begins with the unit's first statement.

    So a unit that only calls `later` needs none, nor a connection, and a unit that sends a single
    query needs no transaction: a statement is a transaction by itself.
    """

    __slots__ = (
        "_acquire", "_alone", "_begin", "_connection", "_ids", "_newest", "_statement", "asked",
        "begun", "changed", "claims", "marked", "now", "put_off", "wake", "witness",
    )  # fmt: skip
    engine: Literal["sqlite", "postgres"] = "postgres"

    def __init__(
        self,
        ids: Ids,
        now: int,
        connection: Connection | None = None,
        *,
        acquire: Acquire | None = None,
        begin: str = "",
        alone: bool = False,
        statement: Callable[..., Awaitable[list[Row]]] | None = None,
    ) -> None:
        """Use `connection`, or what `acquire` returns; run `begin` on it unless that is empty.

        With `alone` the unit is expected to send one query; the second one raises NotAlone. With
        `statement`, this runs the unit's only call of `all`, which commits by itself.
        """
        self._connection: Connection = connection
        self._acquire = acquire
        self._ids = ids
        self._newest = ""
        self._begin = begin
        self._alone = alone
        self._statement = statement
        self.begun = not begin
        self.asked = False
        self.now = now
        self.put_off = Deferred()
        self.marked: Row | None = None
        """The mark of the transaction (see `commit_outcome`), if it is known."""
        self.witness: Witness | None = None
        self.wake = False
        self.changed: set[str] = set()
        self.claims: list[Claim] = []

    def new_id(self) -> str:
        self._newest = self._ids.new(self.now, self._newest)
        return self._newest

    def later(self, insert: Insert, row: Sequence[Any]) -> None:
        self.put_off.add(insert, row)

    async def write(self, statement: Statement) -> None:
        """Write rows of `later`, and learn the mark of the transaction with them."""
        await self._begins()
        self.witness = self.witness or statement.witness
        self.marked = await self._connection.fetchrow(marking(statement.text), *statement.values)

    async def _begins(self) -> None:
        if not self.begun:
            if self._acquire is not None:
                self._connection = await self._acquire()
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
            await self.write(await together(self._connection, self.put_off))

    async def one(self, sql: str, *args: Any) -> Row | None:
        text = translate(sql, "postgres")
        await self._before(text)
        row: Row | None = await self._connection.fetchrow(text, *args)
        return row

    async def all(self, sql: str, *args: Any) -> list[Row]:
        text = translate(sql, "postgres")
        if self._statement is not None:
            return await self._statement(text, *args)
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
        returned: list[Row] = await self._connection.fetchmany(text, rows)
        return returned
