"""What backup, restore and copy share: the schema of a snapshot, and filling a new database."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from operator import attrgetter
from typing import Any

from gateway.cli.data.progress_bar import Progress
from gateway.server.startup import SOURCES
from outbox.database.migrate import created, migrate_at_once
from outbox.database.migration_files import read_migrations
from outbox.database.transaction import Engine
from outbox.database.transfer import LEFT_BEHIND, Applied, Filling, Snapshot, Table
from outbox.errors import CannotStart
from outbox.queue.upkeep import queue_transfer

Batches = AsyncGenerator[tuple[Table, Sequence[Sequence[Any]]], None]
"""Rows with their tables. Whoever ends early closes it, while its database is still open."""


def own_tables(engine: Engine) -> set[str]:
    """Return the names of all tables that have ever been ours."""
    tables, _ = created(SOURCES, engine)
    return tables


def must_be_known(migrations: Sequence[Applied], where: str) -> dict[str, int]:
    """Return the last migration of each component.

    Raise CannotStart when this program does not know one of them. `where` has them.
    """
    if not migrations:
        raise CannotStart(f"{where} is empty")
    known = {
        (component, migration.number): migration
        for component, folder in SOURCES
        for migration in read_migrations(component, folder)
    }
    for applied in migrations:
        migration = known.get((applied.component, applied.number))
        if migration is None:
            raise CannotStart(
                f"{where} has the migration {applied.component} {applied.name}, which is newer "
                "than this program; use the newer program"
            )
        if not migration.is_of(applied.checksum):
            raise CannotStart(
                f"{where} has another migration {applied.component} {applied.name} than this "
                "program"
            )
    in_order = sorted(migrations, key=attrgetter("number"))
    return {applied.component: applied.number for applied in in_order}


def must_be_ours(tables: Sequence[Table], engine: Engine, where: str) -> None:
    """Raise CannotStart when `where` names a table that was never ours: it becomes part of SQL."""
    names = [table.name for table in tables]
    if strange := sorted(set(names) - own_tables(engine) | set(names) & LEFT_BEHIND):
        raise CannotStart(f"{where} has the table {strange[0]!r}, which is not one of a backup")
    if len(set(names)) < len(names) or not all(table.columns for table in tables):
        raise CannotStart(f"{where} has a table twice or without columns; use another backup")


async def departing(source: Snapshot) -> Batches:
    """Return all rows of a snapshot as they travel."""
    leaving = await queue_transfer.departure(source)
    for table in source.tables:
        async with aclosing(source.rows(table)) as batches:
            async for rows in batches:
                yield table, leaving.of(table, rows)


async def fill(
    new: Filling,
    tables: Sequence[Table],
    upto: Mapping[str, int],
    batches: Batches,
    seen: Callable[[Table, int], None],
    progress: Progress,
) -> int:
    """Make `new` a database with these rows, up to but without its commit; return how many.

    It gets the schema of the rows first, and what is new in this program afterwards. `seen` gets
    the number of rows after each batch.
    """
    await new.run(migrate_at_once, SOURCES, upto)
    await new.begin(tables)
    counts = dict.fromkeys(tables, 0)
    total = 0
    async with aclosing(batches):
        async for table, rows in batches:
            await new.fill(table, rows)
            counts[table] += len(rows)
            total += len(rows)
            seen(table, total)
    progress.step("indexes and keys")
    await new.end(counts)
    await new.run(migrate_at_once, SOURCES)
    await new.run(queue_transfer.arrive)
    return total
