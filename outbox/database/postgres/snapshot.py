"""Read a whole PostgreSQL database on one snapshot, beside running nodes."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager
from typing import Literal

import asyncpg

from outbox.database import index_plans, locks
from outbox.database.postgres.faults import LOST
from outbox.database.postgres.hosts import Connection
from outbox.database.postgres.server import READ, Server
from outbox.database.postgres.tx import PostgresTx
from outbox.database.sizes import Batches
from outbox.database.sql import translate
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

# No migration runs between the first look at the schema and the locks of the tables.
_STILL = translate(f"select pg_advisory_lock_shared(schema_lock({locks.SCHEMA}))", "postgres")
_GO_ON = translate(f"select pg_advisory_unlock_shared(schema_lock({locks.SCHEMA}))", "postgres")
TABLES = """
select relname as name, greatest(reltuples, 0)::bigint as rows from pg_class
where relnamespace = current_schema()::regnamespace and relkind in ('r', 'p') order by relname
"""
COLUMNS = """
select attname as name, format_type(atttypid, atttypmod) as type,
  attidentity <> '' as generated
from pg_attribute
where attrelid = to_regclass($1) and attnum > 0 and not attisdropped order by attnum
"""
_MIGRATIONS = """
select component, number, name, checksum from schema_migrations order by component, number
"""


class PostgresSnapshot:
    """`Snapshot` on one repeatable-read transaction."""

    engine: Engine = "postgres"

    def __init__(self, connection: Connection, place: Place) -> None:
        self._connection = connection
        self._tx = PostgresTx(place.ids, place.clock.wall(), connection)
        self.tables: Sequence[Table] = ()
        self.migrations: Sequence[Applied] = ()
        self.notes: list[str] = []

    async def read_schema(self, own: Collection[str]) -> None:
        """Read which tables and migrations there are, and keep them as they are.

        Raise CannotStart.
        """
        rows = {row["name"]: row["rows"] for row in await self._connection.fetch(TABLES)}
        if "schema_migrations" not in rows:
            return
        names = sorted(set(rows).intersection(own))
        await self._connection.execute(f"lock table {', '.join(names)} in access share mode")
        self.migrations = [Applied(*row) for row in await self._connection.fetch(_MIGRATIONS)]
        tables = []
        for name in names:
            if name in LEFT_BEHIND:
                continue
            described = await self._connection.fetch(COLUMNS, name)
            columns = tuple(
                Column(row["name"], kind_of(name, row["name"], row["type"]))
                for row in described
                if (name, row["name"]) not in OWN_COLUMNS
            )
            last = [await self._last(name, row["name"]) for row in described if row["generated"]]
            tables.append(Table(name, columns, rows[name], last[0] if last else None))
        self.tables = tables

    async def query(self, sql: str, *args: object) -> Sequence[Row]:
        return await self._tx.all(sql, *args)

    async def by_index(self) -> None:
        await index_plans.by_index(self._tx)

    async def stream(
        self, sql: str, size: int, *args: object
    ) -> AsyncGenerator[Sequence[Row], None]:
        cursor = await self._connection.cursor(translate(sql, "postgres"), *args)
        while batch := await cursor.fetch(size):
            yield batch

    async def rows(self, table: Table) -> AsyncGenerator[Sequence[Values], None]:
        cursor = await self._connection.cursor(f"select {', '.join(table.names)} from {table.name}")

        async def fetch(rows: int) -> Sequence[Values]:
            return [tuple(row) for row in await cursor.fetch(rows)]

        batches = Batches(fetch)
        while batch := await batches.next():
            yield batch

    async def _last(self, table: str, column: str) -> int:
        name = await self._connection.fetchval(
            "select pg_get_serial_sequence($1, $2)", table, column
        )
        row = await self._connection.fetchrow(f"select last_value, is_called from {name}")
        return int(row["last_value"]) if row["is_called"] else 0


@asynccontextmanager
async def open_snapshot(place: Place, own: Collection[str]) -> AsyncIterator[PostgresSnapshot]:
    """Open a snapshot of the database. Raise CannotStart."""
    async with connected(place, encoding=None) as connection:
        await connection.execute(_STILL)
        await connection.execute(READ)
        snapshot = PostgresSnapshot(connection, place)
        await snapshot.read_schema(own)
        await connection.execute(_GO_ON)
        yield snapshot


@asynccontextmanager
async def connected(
    place: Place, *, encoding: Literal["UTF8"] | None = "UTF8"
) -> AsyncIterator[Connection]:
    """Connect without limits and without a pooler, and drop the transaction at the end.

    Without an `encoding` each serves, to read what is there. Raise CannotStart, also for a
    connection that breaks meanwhile.
    """
    server = Server(place.url, place.direct_url, place.synchronous_commit)
    try:
        connection = await server.connect()
    except (*LOST, asyncpg.PostgresError, ValueError) as error:
        raise server.refusal(error) from error
    try:
        if encoding is not None:
            server.must_be_utf_8()
        await server.must_keep(connection)
        yield connection
    except (*LOST, asyncpg.PostgresError) as error:
        raise CannotStart(f"PostgreSQL: {error or type(error).__name__}") from error
    finally:
        connection.terminate()
