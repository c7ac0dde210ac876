"""Run a unit to its end on a connection, and provide its transaction."""

from __future__ import annotations

import asyncio
import contextvars
import sqlite3
from collections.abc import Awaitable, Callable, Sequence
from operator import methodcaller
from typing import Any, Literal, TypeVar

from outbox.database.claims import Claim
from outbox.database.deferred import Deferred
from outbox.database.sql import insert_text, inserts, translate
from outbox.database.transaction import Row, is_brief
from outbox.errors import DatabaseFault, DatabaseUnavailable, UnitError
from outbox.ids import Ids

T = TypeVar("T")
NEVER: tuple[float, Callable[[], float] | None] = (0.0, None)

# Primary result codes of sqlite.org/rescode.html, mapped to the closed list of outbox.errors.
_FAULTS: dict[int, DatabaseFault] = {
    sqlite3.SQLITE_BUSY: "busy",
    sqlite3.SQLITE_LOCKED: "busy",
    sqlite3.SQLITE_FULL: "full",
    sqlite3.SQLITE_NOMEM: "io",
    sqlite3.SQLITE_INTERRUPT: "io",
    sqlite3.SQLITE_IOERR: "io",
    sqlite3.SQLITE_CANTOPEN: "io",
    sqlite3.SQLITE_READONLY: "io",
    sqlite3.SQLITE_CORRUPT: "corrupt",
    sqlite3.SQLITE_NOTADB: "corrupt",
}
ADVICE: dict[DatabaseFault, str] = {
    "busy": "; another program keeps its lock: end that program, or try again"
}


def fault_of(error: BaseException) -> BaseException:
    """Return the error for the caller: engine faults by name, everything else unchanged."""
    if isinstance(error, sqlite3.Error):
        kind = _FAULTS.get(getattr(error, "sqlite_errorcode", 0) & 0xFF)
        if kind is not None:
            return DatabaseUnavailable(kind, f"SQLite: {error}{ADVICE.get(kind, '')}")
    return error


# Decodes text that may no longer be valid UTF-8.
_readable = methodcaller("decode", "utf-8", "replace")


class TookTooLong(BaseException):
    """Ends a unit on the event loop; it runs again on the thread."""


class SqliteTx:
    """`Tx` on one connection; its methods never suspend, so a unit runs to its end in one step."""

    __slots__ = (
        "_batch", "_clock", "_connection", "_ids", "_latest", "_newest", "_put_off", "changed",
        "claims", "later", "now", "wake", "wrote",
    )  # fmt: skip
    engine: Literal["sqlite", "postgres"] = "sqlite"

    def __init__(
        self,
        connection: sqlite3.Connection,
        ids: Ids,
        now: int,
        batch: Batch | None = None,
        latest: tuple[float, Callable[[], float]] | None = None,
    ) -> None:
        """Rows of `later` join those of the `batch`, if there is one, when the unit has ended.

        No statement begins after the first of `latest` by the clock that is the second:
        TookTooLong ends the unit.
        """
        self._latest, self._clock = latest or NEVER
        self._connection = connection
        self._ids = ids
        self._newest = ""
        self._batch = batch
        self._put_off = put_off = Deferred()
        self.later = put_off.add
        self.now = now
        self.wake = False
        self.changed: set[str] = set()
        self.claims: list[Claim] = []
        self.wrote = False
        """Whether a statement ran that may have changed data."""

    def new_id(self) -> str:
        self._newest = self._ids.new(self.now, self._newest)
        return self._newest

    def end(self) -> None:
        """Pass the rows of `later` on, at the end of the unit."""
        if not self._put_off.rows:
            return
        if self._batch is not None:
            self._batch.rows.take(self._put_off)
        else:
            self._write_put_off()

    def _write_put_off(self) -> None:
        self.wrote = True
        write(self._connection, self._put_off)

    def _before(self, text: str) -> None:
        """Write the rows that the statement must find. Raise TookTooLong."""
        if self._clock is not None and self._clock() > self._latest:
            raise TookTooLong
        batch = self._batch
        if batch is not None and batch.rows.rows and batch.rows.concern(text):
            batch.write(self._connection)
        if self._put_off.rows and self._put_off.concern(text):
            self._write_put_off()

    async def one(self, sql: str, *args: Any) -> Row | None:
        return self._fetch(translate(sql, "sqlite"), args, _first)

    async def all(self, sql: str, *args: Any) -> list[Row]:
        return self._fetch(translate(sql, "sqlite"), args, sqlite3.Cursor.fetchall)

    async def run(self, sql: str, *args: Any) -> int:
        text = translate(sql, "sqlite")
        self._before(text)
        self.wrote = True
        return self._connection.execute(text, args).rowcount

    async def many(self, sql: str, rows: Sequence[Sequence[Any]]) -> list[Row]:
        text = translate(sql, "sqlite")
        self._before(text)
        self.wrote = True
        # executemany rejects statements that return rows, and only those contain `returning`.
        if "returning" not in text:
            self._connection.executemany(text, rows)
            return []
        rows_of_all: list[Row] = []
        for row in rows:
            rows_of_all.extend(self._fetch(text, row, sqlite3.Cursor.fetchall))
        return rows_of_all

    def _fetch(self, text: str, args: Sequence[Any], take: Callable[[sqlite3.Cursor], T]) -> T:
        """Return the rows of `text`, even when stored text is damaged.

        One value that is not valid UTF-8 would fail every row read with it, such as a claim for all
        webhooks. It is read with a replacement character instead, and checked where it is used.
        """
        self._before(text)
        if text.startswith("select"):
            try:
                return take(self._connection.execute(text, args))
            except sqlite3.OperationalError as error:
                if not str(error).startswith("Could not decode"):
                    raise
        else:
            self.wrote = True
        # A write must not run a second time, and few writes return text.
        self._connection.text_factory = _readable
        try:
            return take(self._connection.execute(text, args))
        finally:
            self._connection.text_factory = str


class Batch:
    """Units that share a transaction, and the rows that they have put off."""

    __slots__ = ("done", "end", "failed", "rows", "sound")

    def __init__(self, end: float) -> None:
        self.end = end
        """When no more units join, on the monotonic clock."""
        self.done: list[Job] = []
        """The jobs that have run and are not answered."""
        self.rows = Deferred()
        self.failed = False
        """Writing the rows failed; the unit that ran meanwhile is not to blame."""
        self.sound = True
        """Each unit either succeeded or wrote nothing, so COMMIT may follow."""

    def write(self, connection: sqlite3.Connection) -> None:
        """Write the rows, so that the statements behind them see them."""
        try:
            write(connection, self.rows)
        except BaseException:
            self.failed = True
            raise


def write(connection: sqlite3.Connection, rows: Deferred) -> None:
    """Write rows of `later`, many with each statement."""
    for insert, some in rows.drain():
        if len(some) == 1:
            # As most transactions have it of each table.
            text = insert_text(insert.table, insert.columns, 1, insert.conflict)
            connection.execute(translate(text, "sqlite"), some[0])
            continue
        for text, values in inserts(insert.table, insert.columns, some, insert.conflict):
            connection.execute(translate(text, "sqlite"), values)


def _first(cursor: sqlite3.Cursor) -> Row | None:
    row: Row | None = cursor.fetchone()
    # An unfinished statement keeps its snapshot; closing the cursor resets it.
    cursor.close()
    return row


class Job:
    """One call of `read` or `write` whose transaction has not begun."""

    __slots__ = (
        "abandoned", "args", "began", "brief", "changed", "context", "error", "future", "kwargs",
        "owner", "result", "told", "unit", "wake",
    )  # fmt: skip

    def __init__(
        self,
        unit: Callable[..., Awaitable[Any]],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        future: asyncio.Future[Any],
        began: float,
    ) -> None:
        self.unit = unit
        self.args = args
        self.kwargs = kwargs
        self.future = future
        self.began = began
        """The time of the call, on the monotonic clock."""
        brief = getattr(unit, "brief", None)
        self.brief: bool = is_brief(unit) if brief is None else brief
        self.owner = ""
        """Whose turn a read takes."""
        self.context = contextvars.copy_context()
        self.result: Any = None
        self.error: BaseException | None = None
        self.wake = False
        self.told = False
        """The drain knows of its work already."""
        self.changed: set[str] = set()
        self.abandoned = False
        """The caller no longer waits; a scan then ends."""

    def step(self, tx: SqliteTx) -> None:
        """Run the unit with `tx`, then pass on the rows of `later`. Raise the unit's error."""
        self.error = None
        self.context.run(self._step, tx)
        tx.end()
        self.wake = tx.wake
        self.changed = tx.changed

    def _step(self, tx: SqliteTx) -> None:
        coroutine: Any = self.unit(tx, *self.args, **self.kwargs)
        try:
            coroutine.send(None)
        except StopIteration as stop:
            self.result = stop.value
        else:
            coroutine.close()
            name = getattr(self.unit, "__qualname__", self.unit)
            raise UnitError(f"the unit {name} awaited something other than its tx")
