"""Use a PostgreSQL database alone, for transactions of any length."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from outbox.database import locks
from outbox.database.exclusive import Shape
from outbox.database.postgres.deferred_rows import together
from outbox.database.postgres.filling import OTHERS, Fitting
from outbox.database.postgres.hosts import Connection
from outbox.database.postgres.keys import KEY
from outbox.database.postgres.snapshot import COLUMNS, connected
from outbox.database.postgres.tx import PostgresTx
from outbox.database.sizes import Batches
from outbox.database.sql import translate
from outbox.database.transaction import Engine, Tx
from outbox.database.transfer import OWN_COLUMNS, Column, Place, Table, Values, kind_of
from outbox.errors import CannotStart

# The lock of outbox.database.migrate.
_LOCK = translate(f"select pg_try_advisory_lock(schema_lock({locks.SCHEMA}))", "postgres")


class PostgresExclusive:
    """`Exclusive` on one connection."""

    engine: Engine = "postgres"
    begin = "begin isolation level repeatable read"

    def __init__(self, connection: Connection, place: Place) -> None:
        self._connection = connection
        self._place = place

    async def must_be_alone(self) -> None:
        if others := await self._connection.fetchval(OTHERS):
            raise CannotStart(
                f"{others} sessions of Carteiro use this PostgreSQL database; stop all its servers "
                "first"
            )

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Tx]:
        await self._connection.execute(self.begin)
        try:
            tx = PostgresTx(self._place.ids, self._place.clock.wall(), self._connection)
            yield tx
            if tx.put_off:
                await tx.write(await together(self._connection, tx.put_off))
            await self._connection.execute("commit")
        finally:
            if self._connection.is_in_transaction():
                await self._connection.execute("rollback")

    async def shape(self, table: str) -> Shape:
        described = await self._connection.fetch(COLUMNS, table)
        columns = tuple(
            Column(row["name"], kind_of(table, row["name"], row["type"]))
            for row in described
            if not row["generated"] and (table, row["name"]) not in OWN_COLUMNS
        )
        key = tuple(row["attname"] for row in await self._connection.fetch(KEY, table))
        generated = next((row["name"] for row in described if row["generated"]), None)
        return Shape(Table(table, columns, 0), key, generated)

    async def rows(self, sql: str, *args: Any) -> AsyncGenerator[Sequence[Values], None]:
        cursor = await self._connection.cursor(translate(sql, "postgres"), *args)

        async def fetch(count: int) -> Sequence[Values]:
            return [tuple(row) for row in await cursor.fetch(count)]

        batches = Batches(fetch)
        while batch := await batches.next():
            yield batch

    def fitted(self, table: Table, rows: Sequence[Values]) -> Sequence[Values]:
        return Fitting(table).fit(rows)


@asynccontextmanager
async def open_exclusive(place: Place) -> AsyncIterator[PostgresExclusive]:
    """Connect and take the lock of migrations. Raise CannotStart while servers use the database."""
    async with connected(place) as connection:
        if not await connection.fetchval(_LOCK):
            raise CannotStart("another command changes this PostgreSQL database; wait for its end")
        alone = PostgresExclusive(connection, place)
        await alone.must_be_alone()
        yield alone
