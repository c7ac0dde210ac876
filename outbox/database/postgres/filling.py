"""Fill a PostgreSQL database in one transaction: others see all of it or nothing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, Concatenate

import asyncpg

from outbox.database import locks
from outbox.database.migrate import created
from outbox.database.postgres.commit_outcome import (
    CommitOutcomes,
    Mark,
    commit,
    let_go,
    mark,
    unknown,
)
from outbox.database.postgres.deferred_rows import together
from outbox.database.postgres.faults import breaks_off
from outbox.database.postgres.hosts import Connection
from outbox.database.postgres.limits import UNHURRIED_OUTCOME_SECONDS
from outbox.database.postgres.server import Server
from outbox.database.postgres.snapshot import COLUMNS, TABLES, connected
from outbox.database.postgres.tx import PostgresTx
from outbox.database.sql import translate
from outbox.database.transaction import Engine, P, T, Tx
from outbox.database.transfer import Kind, Place, Sources, Table, Values
from outbox.errors import CannotStart

# The lock of outbox.database.migrate: a node that starts meanwhile waits for the end.
_LOCK = translate(f"select pg_advisory_xact_lock(schema_lock({locks.SCHEMA}))", "postgres")
# A schema without locks of its own may have nodes of a release that names all sessions alike.
OTHERS = """
select count(*) from pg_stat_activity
where datname = current_database() and pid <> pg_backend_pid()
  and (application_name = current_setting('application_name') or application_name = 'carteiro'
    and to_regclass(quote_ident(current_schema()) || '.own_locks') is null
    and to_regclass(quote_ident(current_schema()) || '.schema_migrations') is not null)
"""
# A transaction that somebody forgot must not stop this one without a word.
_SETTINGS = """
set local lock_timeout = '10s'; set local maintenance_work_mem = '256MB'
"""
# The indexes of primary and unique keys stay: what hangs on them would have to go too.
_INDEXES = """
select ci.relname as name, pg_get_indexdef(i.indexrelid) as made
from pg_index i join pg_class ci on ci.oid = i.indexrelid join pg_class ct on ct.oid = i.indrelid
where ct.relnamespace = current_schema()::regnamespace and ct.relname = any ($1)
  and not exists (select 1 from pg_constraint where conindid = i.indexrelid)
order by ci.relname
"""
_FOREIGN = """
select t.relname as "table", c.conname as name, pg_get_constraintdef(c.oid) as made
from pg_constraint c join pg_class t on t.oid = c.conrelid
where c.contype = 'f' and t.relnamespace = current_schema()::regnamespace and t.relname = any ($1)
order by c.conname
"""
_TRIGGERS = """
select distinct t.relname as "table" from pg_trigger g join pg_class t on t.oid = g.tgrelid
where not g.tgisinternal and t.relnamespace = current_schema()::regnamespace
  and t.relname = any ($1)
order by t.relname
"""
NUL = "\0"
STAND_IN = "\N{REPLACEMENT CHARACTER}"
TYPES: dict[Kind, tuple[type, ...]] = {
    "integer": (int,), "number": (int, float), "text": (str,), "boolean": (bool, int),
    "bytes": (bytes,),
}  # fmt: skip


class Fitting:
    """Changes rows of one table; `replaced` counts the texts that lost a NUL."""

    def __init__(self, table: Table) -> None:
        self.replaced = 0
        self._table = table
        kinds = [column.kind for column in table.columns]
        self._booleans = [place for place, kind in enumerate(kinds) if kind == "boolean"]
        self._types = [TYPES[kind] for kind in kinds]

    def fit(self, rows: Sequence[Values]) -> list[tuple[Any, ...]]:
        """Return rows that COPY takes. Raise CannotStart for a value of a wrong type."""
        return [self._row(row) for row in rows]

    def _row(self, row: Values) -> tuple[Any, ...]:
        changed = list(row)
        for place in self._booleans:
            if changed[place] is not None:
                changed[place] = bool(changed[place])
        for place, value in enumerate(changed):
            if value is None:
                continue
            if not isinstance(value, self._types[place]):
                raise CannotStart(self._wrong(place, value))
            if type(value) is str and NUL in value:
                changed[place] = value.replace(NUL, STAND_IN)
                self.replaced += 1
        return tuple(changed)

    def _wrong(self, place: int, value: object) -> str:
        column = self._table.columns[place]
        return (
            f"{self._table.name}.{column.name} has a value of the type {type(value).__name__}, "
            f"which PostgreSQL cannot store as {column.kind}"
        )


class Structure:
    """What slows loading down, or would count rows that are counted already."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._again: list[str] = []

    async def set_aside(self, tables: Sequence[str]) -> None:
        """Drop or disable it."""
        for row in await self._connection.fetch(_FOREIGN, tables):
            await self._connection.execute(
                f"alter table {row['table']} drop constraint {row['name']}"
            )
            self._again.append(
                f"alter table {row['table']} add constraint {row['name']} {row['made']}"
            )
        # A foreign key needs no index of ours, so the indexes can come back first.
        for row in await self._connection.fetch(_INDEXES, tables):
            await self._connection.execute(f"drop index {row['name']}")
            self._again.insert(0, row["made"])
        for row in await self._connection.fetch(_TRIGGERS, tables):
            await self._connection.execute(f"alter table {row['table']} disable trigger user")
            self._again.append(f"alter table {row['table']} enable trigger user")

    async def put_back(self) -> None:
        """Create or enable it again; a foreign key without its row fails here."""
        for statement in self._again:
            await self._connection.execute(statement)


class PostgresFilling:
    """`Filling` of a database whose former tables this transaction has dropped."""

    engine: Engine = "postgres"

    def __init__(self, connection: Connection, place: Place) -> None:
        self._connection = connection
        self._place = place
        self._structure = Structure(connection)
        self._fitting: dict[str, Fitting] = {}

    @property
    def notes(self) -> list[str]:
        return [
            f"{table} had {fitting.replaced} texts with the character NUL, which PostgreSQL cannot "
            "store; replacement characters stand in for it"
            for table, fitting in self._fitting.items()
            if fitting.replaced
        ]

    async def run(
        self, unit: Callable[Concatenate[Tx, P], Awaitable[T]], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        tx = PostgresTx(self._place.ids, self._place.clock.wall(), self._connection)
        result = await unit(tx, *args, **kwargs)
        if tx.put_off:
            await tx.write(await together(self._connection, tx.put_off))
        return result

    async def begin(self, tables: Sequence[Table]) -> None:
        for table in tables:
            existing = {row["name"] for row in await self._connection.fetch(COLUMNS, table.name)}
            if missing := [name for name in table.names if name not in existing]:
                raise CannotStart(f"the schema has no column {table.name}.{missing[0]}")
            self._fitting[table.name] = Fitting(table)
        await self._structure.set_aside([table.name for table in tables])
        await self._connection.execute(f"truncate {', '.join(table.name for table in tables)}")

    async def fill(self, table: Table, rows: Sequence[Values]) -> None:
        fitting = self._fitting[table.name]
        try:
            await self._connection.copy_records_to_table(
                table.name, records=fitting.fit(rows), columns=table.names
            )
        except (asyncpg.DataError, OverflowError) as error:
            # SQLite stores any number in any column.
            raise CannotStart(
                f"PostgreSQL cannot store a value of {table.name}: {error}"
            ) from error

    async def end(self, tables: Mapping[Table, int]) -> None:
        await self._structure.put_back()
        for table, count in tables.items():
            stored = await self._connection.fetchval(f"select count(*) from {table.name}")
            if stored != count:
                raise CannotStart(f"{table.name} has {stored} rows instead of {count}")
            if table.last is not None:
                await self._continue(table.name, table.last)
        # Statistics of empty tables would mislead the first plans.
        await self._connection.execute(f"analyze {', '.join(table.name for table in tables)}")

    async def commit(self, before: Callable[[], None] | None = None) -> None:
        marked = await mark(self._connection)
        if before is not None:
            before()
        # An interrupted COMMIT may take place all the same, so it goes on.
        ending = asyncio.create_task(self._committed(marked))
        try:
            took_place = await asyncio.shield(ending)
        except asyncio.CancelledError:
            took_place = await self._known(ending)
        if not took_place:
            raise CannotStart("the connection to PostgreSQL was lost; nothing is stored")

    async def _committed(self, marked: Mark) -> bool:
        try:
            if await commit(self._connection):
                return True
        except Exception as error:
            if not breaks_off(error):
                raise
        return await self._took_place(marked)

    async def _known(self, ending: asyncio.Task[bool]) -> bool:
        """Return how a COMMIT ends; raise OutcomeUnknown when it takes long, or when cancelled."""
        try:
            async with asyncio.timeout(UNHURRIED_OUTCOME_SECONDS):
                return await asyncio.shield(ending)
        except (TimeoutError, asyncio.CancelledError):
            ending.cancel()
        with suppress(asyncio.CancelledError):
            await let_go(self._connection)
        raise unknown()

    async def _took_place(self, marked: Mark) -> bool:
        place = self._place
        server = Server(place.url, place.direct_url, place.synchronous_commit)
        deadline = asyncio.get_running_loop().time() + UNHURRIED_OUTCOME_SECONDS
        return await CommitOutcomes(server).committed(marked, deadline)

    async def _continue(self, table: str, last: int) -> None:
        """Let the generated column of a table go on after `last`."""
        for row in await self._connection.fetch(COLUMNS, table):
            if row["generated"]:
                sequence = await self._connection.fetchval(
                    "select pg_get_serial_sequence($1, $2)", table, row["name"]
                )
                await self._connection.execute(
                    "select setval(cast(cast($1 as text) as regclass), $2, $3)",
                    sequence,
                    max(last, 1),
                    last > 0,
                )


@asynccontextmanager
async def open_filling(
    place: Place, sources: Sources, *, unowned: Collection[str] | None
) -> AsyncIterator[PostgresFilling]:
    """Begin the transaction and drop our former tables. Raise CannotStart."""
    async with connected(place) as connection:
        await connection.execute("begin")
        await connection.execute(_SETTINGS)
        await connection.execute(_LOCK)
        if others := await connection.fetchval(OTHERS):
            raise CannotStart(
                f"{others} sessions of Carteiro use this PostgreSQL database; stop all its servers "
                "first"
            )
        tables, functions = created(sources, "postgres")
        existing = {row["name"] for row in await connection.fetch(TABLES)}
        ours = sorted(existing & (tables | {"schema_migrations"}))
        stored = () if unowned is None else [name for name in ours if name not in unowned]
        if full := await _first_with_rows(connection, stored):
            raise CannotStart(
                f"the PostgreSQL database has data, in {full} for example; choose an empty one, or "
                "replace all data of this one by `carteiro restore --overwrite`"
            )
        if ours:
            await connection.execute(f"drop table {', '.join(ours)}")
        for name in sorted(functions):
            await connection.execute(f"drop function if exists {name}")
        yield PostgresFilling(connection, place)


async def _first_with_rows(connection: Connection, tables: Sequence[str]) -> str | None:
    for table in tables:
        if await connection.fetchval(f"select true from {table} limit 1"):
            return table
    return None
