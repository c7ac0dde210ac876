"""Apply migrations, each once; outbox.database.migration_files reads them.

Migrations in SQL that follow one another are one transaction, each batch of a Python file another.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from outbox.database import locks
from outbox.database.migration_files import Migration, read_migrations
from outbox.database.sql import translate
from outbox.database.transaction import Database, Engine, Tx
from outbox.errors import CannotStart

_TABLE = re.compile(r"^(?:create table(?: if not exists)?|alter table \w+ rename to) (\w+)", re.M)
# A later form of a function may be made of the text of the one `before`, under another name.
_FUNCTION = re.compile(r"(?:^create function |before, '[^']*', ')(\w+)", re.M)
_LEDGER = """
create table if not exists schema_migrations (
  component text not null,
  number bigint not null,
  name text not null,
  checksum text not null,
  applied_at bigint not null,
  additive boolean not null default false,
  primary key (component, number)
)
"""
_LEDGER_COLUMNS = """
select name from /*sqlite pragma_table_info('schema_migrations')*/
/*postgres (select attname as name from pg_attribute
  where attrelid = to_regclass('schema_migrations') and attnum > 0 and not attisdropped) columns*/
"""
_WIDEN_LEDGER = "alter table schema_migrations add column additive boolean not null default false"
# Locks are named after the schema from the start, or from the first migration of a release with
# this view while no node runs: nodes of a release without it take the numbers as they are.
_UNNAMED = """
select current_schema() <> 'public' and has_schema_privilege(current_schema(), 'CREATE')
  and to_regclass(quote_ident(current_schema()) || '.own_locks') is null as unnamed
"""
_ALIVE = "select 1 as one from nodes where alive_until > due_now() limit 1"
_NAME = "create view own_locks as select cast(current_schema() as text) as name"


@dataclass(frozen=True, slots=True)
class Plan:
    """What a database needs: missing migrations in order, and checksums in the form of today."""

    missing: Sequence[Migration]
    rewritten: Sequence[Migration]
    columns: frozenset[str]
    """Of the ledger, empty without one."""
    names: bool = False
    """Whether locks get the name of the schema."""

    @property
    def is_empty(self) -> bool:
        return not self.missing and not self.rewritten and not self.names


async def migrate(db: Database, sources: Sequence[tuple[str, Path]]) -> list[str]:
    """Bring the schema up to date; return the names of the applied migrations.

    All components are checked before the first change, and a refusal changes nothing. Migrations in
    SQL that follow one another are one transaction, each batch of a Python file is another; after a
    kill or a failure between them, the next run continues. Several processes may run this at once.

    Raise CannotStart when the schema is newer than this program or when an applied file differs.
    """
    db = db.apart("migration")
    components = [read_migrations(*source) for source in sources]
    applied: list[str] = []
    # Most starts change nothing, so they need no lock.
    if (await db.read(_plan, components)).is_empty:
        return applied
    more = True
    while more:
        names, more = await db.write(_advance, components)
        applied += names
    return applied


async def pending(db: Database, sources: Sequence[tuple[str, Path]]) -> list[str]:
    """Return the names of migrations that are not applied yet. Raise CannotStart like `migrate`."""
    components = [read_migrations(*source) for source in sources]
    plan = await db.apart("migration").read(_plan, components)
    return [migration.name for migration in plan.missing]


def created(sources: Sequence[tuple[str, Path]], engine: Engine) -> tuple[set[str], set[str]]:
    """Return the names of all tables and functions that migrations have ever created."""
    texts = [translate(m.text, engine) for source in sources for m in read_migrations(*source)]
    tables, functions = (
        {name for text in (*texts, _LEDGER) for name in re.findall(pattern, text)}
        for pattern in (_TABLE, _FUNCTION)
    )
    return tables, functions


async def migrate_at_once(
    tx: Tx, sources: Sequence[tuple[str, Path]], upto: Mapping[str, int] | None = None
) -> None:
    """Apply all missing migrations in one transaction, or those up to a number per component."""
    components = [
        read_migrations(component, folder)[: None if upto is None else upto.get(component, 0)]
        for component, folder in sources
    ]
    plan = await _begin(tx, components)
    for migration in plan.missing:
        while await _apply(tx, migration):
            pass


async def _advance(tx: Tx, components: Sequence[Sequence[Migration]]) -> tuple[list[str], bool]:
    """Apply the next migrations; return their names and whether more are left."""
    plan = await _begin(tx, components)
    names: list[str] = []
    for migration in plan.missing:
        if migration.step is not None and names:
            return names, True
        if await _apply(tx, migration):
            return names, True
        names.append(migration.name)
    return names, False


async def _begin(tx: Tx, components: Sequence[Sequence[Migration]]) -> Plan:
    """Return the plan of this transaction, in which nobody else migrates, with a ledger ready."""
    if tx.engine == "postgres":
        # `create table if not exists` alone can fail when two processes run it at once.
        await tx.run(f"select pg_advisory_xact_lock(schema_lock({locks.SCHEMA}))")
    plan = await _plan(tx, components)
    if not plan.is_empty:
        await tx.run(_LEDGER)
        if plan.columns and "additive" not in plan.columns:
            await tx.run(_WIDEN_LEDGER)
        if plan.names:
            await tx.run(_NAME)
        for migration in plan.rewritten:
            await tx.run(
                "update schema_migrations set checksum = $3 where component = $1 and number = $2",
                migration.component,
                migration.number,
                migration.checksum,
            )
    return plan


async def _plan(tx: Tx, components: Iterable[Sequence[Migration]]) -> Plan:
    """Compare the ledger with the files of all components. Raise CannotStart; change nothing."""
    columns = frozenset(str(row["name"]) for row in await tx.all(_LEDGER_COLUMNS))
    missing: list[Migration] = []
    rewritten: list[Migration] = []
    for migrations in components:
        component = migrations[0].component if migrations else ""
        checksums = await _applied(tx, component, len(migrations), columns)
        for migration in migrations:
            checksum = checksums.get(migration.number)
            if checksum is None:
                missing.append(migration)
            elif not migration.is_of(checksum):
                raise CannotStart(
                    f"the migration {component} {migration.name} was changed after it had been "
                    "applied to this database, and nothing was changed now; run the release that "
                    "applied it, or restore the file"
                )
            elif checksum != migration.checksum:
                rewritten.append(migration)
    return Plan(missing, rewritten, columns, await _names(tx, bool(columns)))


async def _names(tx: Tx, has_ledger: bool) -> bool:
    if tx.engine == "sqlite":
        return False
    row = await tx.one(_UNNAMED)
    if row is None or not row["unnamed"]:
        return False
    return not has_ledger or await tx.one(_ALIVE) is None


async def _applied(
    tx: Tx, component: str, known: int, columns: frozenset[str]
) -> Mapping[int, str]:
    """Return the checksums of the applied migrations by number. Raise CannotStart."""
    if not columns:
        return {}
    rows = await tx.all(
        "select number, checksum from schema_migrations where component = $1 order by number",
        component,
    )
    checksums = {int(row["number"]): str(row["checksum"]) for row in rows}
    newest = max(checksums, default=0)
    if newest > known and not await _is_additive(tx, component, known, newest, columns):
        raise CannotStart(
            f"the database schema is newer than this program ({component} {newest:04d}, "
            f"known up to {known:04d}); run the newer program"
        )
    if len(checksums) != newest:
        lacking = next(number for number in range(1, newest) if number not in checksums)
        raise CannotStart(
            f"the database has the migration {component} {newest:04d} but not {lacking:04d}; "
            "restore the database from a backup"
        )
    return checksums


async def _is_additive(
    tx: Tx, component: str, known: int, newest: int, columns: frozenset[str]
) -> bool:
    """Return whether this program works beside all migrations of a newer release."""
    if "additive" not in columns:
        return False
    rows = await tx.all(
        "select number from schema_migrations where component = $1 and number > $2 and additive",
        component,
        known,
    )
    return len(rows) == newest - known


async def _apply(tx: Tx, migration: Migration) -> bool:
    """Apply `migration`, or its next batch; return whether more of it is left."""
    if migration.step is not None and await migration.step(tx):
        return True
    for statement in migration.statements(tx.engine):
        await tx.run(statement)
    await tx.run(
        "insert into schema_migrations (component, number, name, checksum, applied_at, additive)"
        " values ($1, $2, $3, $4, $5, $6)",
        migration.component, migration.number, migration.name, migration.checksum, tx.now,
        migration.additive,
    )  # fmt: skip
    return False
