"""Use a PostgreSQL database for a move beside the servers that use it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from functools import wraps
from typing import Any, Concatenate

import asyncpg

from outbox.clock import Clock
from outbox.database import locks
from outbox.database.exclusive import Shape
from outbox.database.postgres.exclusive import PostgresExclusive
from outbox.database.postgres.guards import MOVER, WAIT_MILLISECONDS
from outbox.database.postgres.snapshot import connected
from outbox.database.postgres.tx import PostgresTx
from outbox.database.sql import translate
from outbox.database.transaction import P, T, Tx
from outbox.database.transfer import Kind, Place, Values
from outbox.errors import CannotStart

REST_SECONDS = 0.05
TRIES = 200
_LOCK = translate(f"select pg_try_advisory_lock(own_lock({locks.MOVE}))", "postgres")
_SNAPSHOT = "begin isolation level repeatable read read only"
_SET = f"select set_config('{MOVER}', $1, false)"
_TELL = translate("select pg_notify(own_channel(), $1)", "postgres")
_REFERENCED = """
select exists (select 1 from pg_constraint where confrelid = to_regclass($1) and contype = 'f')
"""
_BUSY = (asyncpg.LockNotAvailableError, asyncpg.DeadlockDetectedError, asyncpg.SerializationError)
TYPES: dict[Kind, str] = {
    "integer": "bigint", "number": "double precision", "text": "text", "boolean": "boolean",
    "bytes": "bytea",
}  # fmt: skip


class MoveConnection(PostgresExclusive):
    """One connection of a move; servers may use the database."""

    begin = "begin"

    def __init__(self, connection: Any, place: Place, tries: int) -> None:
        super().__init__(connection, place)
        self._tries = tries
        self.clock: Clock = place.clock
        self._shapes: dict[str, Shape] = {}
        self._referenced: dict[str, bool] = {}

    async def must_be_alone(self) -> None:
        """Do nothing: the database is shared."""

    def new_id(self) -> str:
        """Return a new id."""
        return self._place.ids.new(self.clock.wall())

    async def moves(self, move_id: str) -> None:
        """Let the guards of this move know the session."""
        await self._connection.fetchval(_SET, move_id)

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator[Tx]:
        """Read in one state of the database, whatever others write meanwhile."""
        await self._connection.execute(_SNAPSHOT)
        try:
            yield PostgresTx(self._place.ids, self._place.clock.wall(), self._connection)
        finally:
            await self._connection.execute("rollback")

    async def step(
        self, unit: Callable[Concatenate[Tx, P], Awaitable[T]], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run `unit` in a transaction, again while a lock is not free. Raise CannotStart."""

        async def once() -> T:
            async with self.transaction() as tx:
                return await unit(tx, *args, **kwargs)

        return await self.patiently(once)

    async def fitting(
        self, unit: Callable[Concatenate[Tx, P], Awaitable[T]], *args: P.args, **kwargs: P.kwargs
    ) -> T | None:
        """Run `unit` as a step; return None when a row needs one that is missing, or replaces one.

        Nothing is stored then.
        """
        try:
            return await self.step(unit, *args, **kwargs)
        except asyncpg.IntegrityConstraintViolationError:
            return None

    async def turn(
        self, unit: Callable[Concatenate[Tx, P], Awaitable[T]], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run a unit that changes where an owner is; its commit lets the servers know.

        Nothing changes when it returns False.
        """

        @wraps(unit)
        async def told(tx: Tx) -> T:
            done = await unit(tx, *args, **kwargs)
            if done is not False:
                await self.tell("owners")
            return done

        done = await self.step(told)
        if done is not False:
            await self.tell("work")
        return done

    async def patiently(self, work: Callable[[], Awaitable[T]]) -> T:
        """Run `work`, again while a lock is not free. Raise CannotStart."""
        for _ in range(self._tries):
            try:
                return await work()
            except _BUSY:
                await asyncio.sleep(REST_SECONDS)
        raise CannotStart("PostgreSQL: other transactions hold their locks for long; try again")

    async def execute(self, statements: Iterable[str]) -> None:
        """Run statements that change the schema in one short transaction."""
        texts = tuple(statements)

        async def unit(tx: Tx) -> None:
            for text in texts:
                await self._connection.execute(text)

        await self.step(unit)

    async def tell(self, what: str) -> None:
        """Send a signal to the servers: see outbox.database.postgres.signals."""
        await self._connection.fetchval(_TELL, what)

    async def fill(self, table: str, names: Sequence[str], rows: Sequence[Values]) -> None:
        """Add rows to a table; inside a transaction."""
        await self._connection.copy_records_to_table(table, records=rows, columns=names)

    async def shape(self, table: str) -> Shape:
        if table not in self._shapes:
            self._shapes[table] = await super().shape(table)
        return self._shapes[table]

    async def key(self, table: str) -> tuple[str, ...]:
        """Return the columns that name a row in both databases; none when no columns do."""
        shape = await self.shape(table)
        return ("id",) if shape.generated in shape.key else shape.key

    async def is_referenced(self, table: str) -> bool:
        """Return whether rows of another table refer to rows of this one."""
        if table not in self._referenced:
            self._referenced[table] = await self._connection.fetchval(_REFERENCED, table)
        return self._referenced[table]

    async def among(self, table: str) -> str:
        """Return the condition, in SQL, that the key of a row is in the JSON array $1."""
        kinds = {column.name: column.kind for column in (await self.shape(table)).table.columns}
        key: Sequence[str] = await self.key(table)
        values = ", ".join(
            f"cast(value ->> {place} as {TYPES[kinds[name]]})" for place, name in enumerate(key)
        )
        return (
            f"({', '.join(key)}) in (select {values}"
            " from json_array_elements(cast($1 as json)) as items(value))"
        )


@asynccontextmanager
async def open_beside(place: Place, tries: int = TRIES) -> AsyncIterator[MoveConnection]:
    """Connect for a move; a step begins up to `tries` times while others hold its locks.

    Raise CannotStart while another move uses the database.
    """
    async with connected(place) as connection:
        if not await connection.fetchval(_LOCK):
            raise CannotStart("another move uses this PostgreSQL database; wait for its end")
        # A plan from before its table was filled would walk it for each page of keys.
        await connection.execute(
            f"set lock_timeout = {WAIT_MILLISECONDS}; set plan_cache_mode = force_custom_plan"
        )
        yield MoveConnection(connection, place, tries)
