"""Hold the lock of a server on an SQLite file, for transactions of any length."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager, closing
from typing import Any

from outbox.database.exclusive import Shape
from outbox.database.sizes import Batches
from outbox.database.sql import translate
from outbox.database.sqlite.file import File
from outbox.database.sqlite.unit_thread import SqliteTx
from outbox.database.transaction import Engine, Tx
from outbox.database.transfer import OWN_COLUMNS, Column, Place, Table, Values, kind_of
from outbox.errors import CannotStart


class SqliteExclusive:
    """`Exclusive` on one connection."""

    engine: Engine = "sqlite"

    def __init__(self, connection: sqlite3.Connection, place: Place) -> None:
        self._connection = connection
        self._place = place

    async def must_be_alone(self) -> None:
        """Do nothing: the lock is ours."""

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Tx]:
        self._connection.execute("begin immediate")
        try:
            tx = SqliteTx(self._connection, self._place.ids, self._place.clock.wall())
            yield tx
            tx.end()
            self._connection.execute("commit")
        finally:
            if self._connection.in_transaction:
                self._connection.execute("rollback")

    async def shape(self, table: str) -> Shape:
        rows = self._connection.execute(f"pragma table_info({table})").fetchall()
        key = tuple(row["name"] for row in sorted(rows, key=lambda row: row["pk"]) if row["pk"])
        generated = next(
            (row["name"] for row in rows if row["pk"] and row["type"].lower() == "integer"), None
        )
        columns = tuple(
            Column(row["name"], kind_of(table, row["name"], row["type"]))
            for row in rows
            if row["name"] != generated and (table, row["name"]) not in OWN_COLUMNS
        )
        return Shape(Table(table, columns, 0), key, generated)

    async def rows(self, sql: str, *args: Any) -> AsyncGenerator[Sequence[Values], None]:
        with closing(self._connection.execute(translate(sql, "sqlite"), args)) as cursor:

            async def fetch(count: int) -> Sequence[Values]:
                return [tuple(row) for row in cursor.fetchmany(count)]

            batches = Batches(fetch)
            while batch := await batches.next():
                yield batch

    def fitted(self, table: Table, rows: Sequence[Values]) -> Sequence[Values]:
        return rows


@asynccontextmanager
async def open_exclusive(place: Place) -> AsyncIterator[SqliteExclusive]:
    """Lock the file. Raise CannotStart while a server uses it, or when it was copied."""
    file = File(place.typed, place.clock, True, "full")
    file.lock()
    try:
        file.must_not_be_copied()
        file.prepare()
        with closing(file.connect()) as connection:
            # As the server reads it, too.
            connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
            yield SqliteExclusive(connection, place)
    except sqlite3.Error as error:
        raise CannotStart(f"{place.path}: {error}") from error
    finally:
        file.release()
