"""Read a whole SQLite file on one snapshot, beside a running server.

The connection belongs to aiosqlite and reads in pieces; it neither writes nor checkpoints.
"""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncGenerator, AsyncIterator, Collection, Sequence
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import aiosqlite

from outbox.database.sizes import Batches
from outbox.database.sql import translate
from outbox.database.sqlite.file import BUSY_MILLISECONDS
from outbox.database.sqlite.refusals import must_be_a_file
from outbox.database.transaction import Engine, Row
from outbox.database.transfer import (
    LEFT_BEHIND,
    OWN_COLUMNS,
    Applied,
    Column,
    Place,
    Table,
    Values,
    kind_of,
)
from outbox.errors import CannotStart

BEGIN = "begin"
NOT_UTF_8 = "Could not decode"
_TABLES = "select name from sqlite_master where type = 'table'"
_MIGRATIONS = """
select component, number, name, checksum from schema_migrations order by component, number
"""


class SqliteSnapshot:
    """`Snapshot` on one read transaction."""

    engine: Engine = "sqlite"

    def __init__(self, connection: aiosqlite.Connection) -> None:
        self._connection = connection
        self.tables: Sequence[Table] = ()
        self.migrations: Sequence[Applied] = ()
        self.notes: list[str] = []

    async def read_schema(self, own: Collection[str]) -> None:
        """Read which tables and migrations there are. Raise CannotStart."""
        names = {str(name) for (name,) in await self._all(_TABLES)}
        if "schema_migrations" not in names:
            return
        self.migrations = [Applied(*row) for row in await self._all(_MIGRATIONS)]
        last = dict(await self._all("select name, seq from sqlite_sequence"))
        tables = []
        for name in sorted(names.intersection(own) - LEFT_BEHIND):
            columns = tuple(
                Column(str(column), kind_of(name, column, declared))
                for _, column, declared, _, _, _ in await self._all(f"pragma table_info({name})")
                if (name, column) not in OWN_COLUMNS
            )
            [(rows,)] = await self._all(f"select count(*) from {name}")
            [(text,)] = await self._all("select sql from sqlite_master where name = ?", name)
            counted = "autoincrement" in str(text).lower()
            tables.append(Table(name, columns, rows, last.get(name, 0) if counted else None))
        self.tables = tables

    async def query(self, sql: str, *args: Any) -> Sequence[Row]:
        try:
            return await self._query(sql, *args)
        except sqlite3.OperationalError as error:
            if not str(error).startswith(NOT_UTF_8):
                raise
            self._connection.text_factory = _readable
            return await self._query(sql, *args)
        finally:
            self._connection.text_factory = str

    async def by_index(self) -> None:
        """Do nothing: SQLite plans without statistics."""

    async def stream(self, sql: str, size: int, *args: Any) -> AsyncGenerator[Sequence[Row], None]:
        async with self._connection.execute(translate(sql, "sqlite"), args) as cursor:
            cursor.row_factory = sqlite3.Row
            while True:
                self._connection.text_factory = _readable
                batch = list(await cursor.fetchmany(size))
                self._connection.text_factory = str
                if not batch:
                    break
                yield batch

    async def rows(self, table: Table) -> AsyncGenerator[Sequence[Values], None]:
        done = 0
        try:
            async with aclosing(self._rows(table, 0)) as batches:
                async for batch in batches:
                    done += len(batch)
                    yield batch
        except sqlite3.OperationalError as error:
            if not str(error).startswith(NOT_UTF_8):
                raise
            # As the server reads it, too; the order of one snapshot does not change.
            self._connection.text_factory = _readable
            async with aclosing(self._rows(table, done)) as batches:
                async for batch in batches:
                    yield batch
            self._connection.text_factory = str
            self.notes.append(
                f"{table.name} has text that is not UTF-8; replacement characters stand in for it"
            )

    async def _rows(self, table: Table, done: int) -> AsyncGenerator[Sequence[Values], None]:
        sql = f"select {', '.join(table.names)} from {table.name} limit -1 offset {done}"
        async with self._connection.execute(sql) as cursor:

            async def fetch(rows: int) -> Sequence[Values]:
                return list(await cursor.fetchmany(rows))

            batches = Batches(fetch)
            while batch := await batches.next():
                yield batch

    async def _query(self, sql: str, *args: Any) -> Sequence[Row]:
        cursor = await self._connection.execute(translate(sql, "sqlite"), args)
        cursor.row_factory = sqlite3.Row
        return list(await cursor.fetchall())

    async def _all(self, sql: str, *args: Any) -> list[Any]:
        return list(await self._connection.execute_fetchall(sql, args))


def _readable(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")


@asynccontextmanager
async def open_snapshot(place: Place, own: Collection[str]) -> AsyncIterator[SqliteSnapshot]:
    """Open a snapshot of the file. Raise CannotStart."""
    file = place.path
    if not file.exists():
        raise CannotStart(f"there is no database {file}; correct database.url")
    must_be_a_file(place.typed)
    try:
        async with aiosqlite.connect(
            address(file), uri=True, isolation_level=None, timeout=BUSY_MILLISECONDS / 1000
        ) as connection:
            await connection.execute("pragma query_only = on")
            await connection.execute(BEGIN)
            snapshot = SqliteSnapshot(connection)
            await snapshot.read_schema(own)
            yield snapshot
    except sqlite3.Error as error:
        raise CannotStart(f"cannot read the database {file}: {error}") from error


def address(file: Path) -> str:
    """Return the URI of an existing file."""
    return f"file:{quote(str(file))}?mode=rw"
