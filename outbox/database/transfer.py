"""Read a whole database on one snapshot, and fill a new one all at once, on either engine.

The tables and their columns come from the schema itself, so that a later migration needs no change
here.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Concatenate, Literal, Protocol

from outbox.clock import Clock
from outbox.database.database_urls import is_sqlite, sqlite_file, typed_file
from outbox.database.transaction import Engine, P, Row, SynchronousCommit, T, Tx
from outbox.errors import CannotStart
from outbox.ids import Ids

Kind = Literal["integer", "number", "text", "boolean", "bytes"]
Values = Sequence[Any]
"""One row, in the order of its table's columns."""
Sources = Sequence[tuple[str, Path]]
"""The components of the schema, with the folders of their migrations."""

LEFT_BEHIND = frozenset({"schema_migrations", "nodes"})
"""Tables that stay: migrations write the first, and the second has the processes of a database."""
OWN_COLUMNS = frozenset({("events", "xid"), ("events", "due_at")})
"""Columns that one engine alone has; their values mean nothing in another database."""

KINDS: Mapping[str, Kind] = {
    "bigint": "integer", "integer": "integer", "smallint": "integer",
    "double precision": "number", "real": "number",
    "text": "text", "boolean": "boolean", "bytea": "bytes",
}  # fmt: skip
"""The types of our columns on both engines."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table."""

    name: str
    kind: Kind


@dataclass(frozen=True, slots=True)
class Table:
    """A table of a snapshot.

    `rows` is an estimate. `last` is the highest number that its generated column ever had, None
    without such a column.
    """

    name: str
    columns: tuple[Column, ...]
    rows: int
    last: int | None = None

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)


@dataclass(frozen=True, slots=True)
class Applied:
    """A migration that a database has."""

    component: str
    number: int
    name: str
    checksum: str


class Snapshot(Protocol):
    """One state of a database, whatever others write meanwhile."""

    engine: Engine
    tables: Sequence[Table]
    migrations: Sequence[Applied]

    @property
    def notes(self) -> Sequence[str]:
        """Sentences about values that could not be read as they are."""

    async def query(self, sql: str, *args: Any) -> Sequence[Row]:
        """Return the rows of a statement in the texts of outbox.database.sql."""

    async def by_index(self) -> None:
        """Read by index where one exists, whatever the statistics say."""

    def stream(self, sql: str, size: int, *args: Any) -> AsyncGenerator[Sequence[Row], None]:
        """Return the rows of a statement in batches of `size`; close it before the end."""

    def rows(self, table: Table) -> AsyncGenerator[Sequence[Values], None]:
        """Return all rows of a table, in batches of about a megabyte; close it before the end."""


class Filling(Protocol):
    """A new database that nobody sees before `commit`; without it, nothing stays of it."""

    engine: Engine

    @property
    def notes(self) -> Sequence[str]:
        """Sentences about values that could not be stored as they are."""

    async def run(
        self, unit: Callable[Concatenate[Tx, P], Awaitable[T]], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run `unit` in a transaction of the new database."""

    async def begin(self, tables: Sequence[Table]) -> None:
        """Set indexes, triggers and foreign keys aside, and empty these tables.

        Raise CannotStart when the schema lacks one of their columns.
        """

    async def fill(self, table: Table, rows: Sequence[Values]) -> None:
        """Add rows."""

    async def end(self, tables: Mapping[Table, int]) -> None:
        """Put back what `begin` set aside, and check keys and the number of rows of each table."""

    async def commit(self, before: Callable[[], None] | None = None) -> None:
        """Let others see the new database. `before` runs when nothing else can fail.

        Raise CannotStart when nothing is committed, OutcomeUnknown when that is not known. Once
        `before` has run, it ends in one of these ways or normally, also when it is cancelled.
        """


@dataclass(frozen=True, slots=True)
class Place:
    """A database: its URL, and on PostgreSQL how to reach it."""

    url: str
    clock: Clock
    ids: Ids
    direct_url: str = ""
    synchronous_commit: SynchronousCommit = "on"

    @property
    def engine(self) -> Engine:
        return "sqlite" if is_sqlite(self.url) else "postgres"

    @property
    def path(self) -> Path:
        """The file of an SQLite database, behind symbolic links."""
        return sqlite_file(self.url)

    @property
    def typed(self) -> Path:
        """The path of that file as it was typed."""
        return typed_file(self.url)


def kind_of(table: str, column: str, declared: str) -> Kind:
    """Return the kind of a column of this type. Raise CannotStart for an unknown type."""
    kind = KINDS.get(declared.lower())
    if kind is None:
        raise CannotStart(f"the column {table}.{column} has the type {declared}, unknown here")
    return kind
