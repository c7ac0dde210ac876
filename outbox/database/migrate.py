"""Apply migrations: numbered files that each run once and never change.

An SQL file runs in one transaction. A Python file has a function `async def step(tx) -> bool`, for
what SQL cannot compute: it does one batch per transaction, finds by itself what is left to do, and
returns whether there is more.
"""

import hashlib
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Literal

from outbox.database.sql import translate
from outbox.database.transaction import Database, Engine, Tx
from outbox.errors import CannotStart

_NAME = re.compile(r"(\d{4})_\w+\.(?:sql|py)")
_TRIGGER = re.compile(r"\s*create trigger\b.*\bbegin\b", re.S | re.I)
_TABLE = re.compile(r"^(?:create table(?: if not exists)?|alter table \w+ rename to) (\w+)", re.M)
_FUNCTION = re.compile(r"^create function (\w+)", re.M)
_LEDGER = """
create table if not exists schema_migrations (
  component text not null,
  number bigint not null,
  name text not null,
  checksum text not null,
  applied_at bigint not null,
  primary key (component, number)
)
"""


@dataclass(frozen=True, slots=True)
class Migration:
    """One migration file of a component."""

    component: str
    number: int
    name: str
    text: str
    step: Callable[[Tx], Awaitable[bool]] | None = None
    """Of a Python file, in place of statements."""

    @property
    def checksum(self) -> str:
        return hashlib.sha256(self.text.encode()).hexdigest()

    def statements(self, engine: Engine) -> list[str]:
        """Return the statements for `engine`. A statement ends with `;` at the end of a line."""
        if self.step is not None:
            return []
        found: list[str] = []
        lines: list[str] = []
        for line in translate(self.text, engine).splitlines():
            lines.append(line)
            text = "\n".join(lines)
            if line.rstrip().endswith(";") and not _open(text):
                found.append(text.strip().removesuffix(";"))
                lines = []
        return found + ["\n".join(lines)] * bool("".join(lines).strip())


def _open(text: str) -> bool:
    """Return whether `text` ends inside a quoted function or a trigger body."""
    body = _TRIGGER.match(text) is not None and not text.rstrip().lower().endswith("\nend;")
    return body or text.count("$$") % 2 == 1


def read_migrations(component: str, folder: Path) -> list[Migration]:
    """Return the migrations of a folder in order. Raise CannotStart for gaps or invalid names."""
    found: list[Migration] = []
    for path in sorted((*folder.glob("*.sql"), *folder.glob("*.py"))):
        match = _NAME.fullmatch(path.name)
        if match is None or int(match[1]) != len(found) + 1:
            raise CannotStart(f"the migration {path.name} is misnamed or out of sequence")
        text = path.read_text(encoding="utf-8")
        step = _step(path) if path.suffix == ".py" else None
        found.append(Migration(component, int(match[1]), path.stem, text, step))
    return found


def _step(path: Path) -> Callable[[Tx], Awaitable[bool]]:
    spec = spec_from_file_location(f"migration_{path.stem}", path)
    assert spec is not None, path
    assert spec.loader is not None, path
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    step: Callable[[Tx], Awaitable[bool]] = module.step
    return step


async def migrate(db: Database, sources: Sequence[tuple[str, Path]]) -> list[str]:
    """Bring the schema up to date; return the names of the applied migrations.

    Several processes may run this at the same time, and it may run again after a kill: each SQL
    file, and each batch of a Python file, is one transaction. Raise CannotStart when the schema is
    newer than this program or when an applied file has changed.
    """
    db = db.apart("migration")
    await db.write(_prepare)
    applied: list[str] = []
    for component, folder in sources:
        migrations = read_migrations(component, folder)
        newest = await db.read(_newest, component)
        if newest > len(migrations):
            raise CannotStart(
                f"the database schema is newer than this program ({component} {newest:04d}, "
                f"known up to {len(migrations):04d}); run the newer program"
            )
        for migration in migrations:
            while (outcome := await db.write(_apply, migration)) == "left":
                pass
            applied += [migration.name] * (outcome == "applied")
    return applied


async def pending(db: Database, sources: Sequence[tuple[str, Path]]) -> list[str]:
    """Return the names of migrations that are not applied yet."""
    db = db.apart("migration")
    await db.write(_prepare)
    names = []
    for component, folder in sources:
        newest = await db.read(_newest, component)
        names += [m.name for m in read_migrations(component, folder) if m.number > newest]
    return names


def created(sources: Sequence[tuple[str, Path]], engine: Engine) -> tuple[set[str], set[str]]:
    """Return the names of all tables and functions that migrations have ever created."""
    texts = [translate(m.text, engine) for source in sources for m in read_migrations(*source)] + [
        _LEDGER
    ]
    tables, functions = (
        {name for text in texts for name in re.findall(pattern, text)}
        for pattern in (_TABLE, _FUNCTION)
    )
    return tables, functions


async def migrate_at_once(
    tx: Tx, sources: Sequence[tuple[str, Path]], upto: Mapping[str, int] | None = None
) -> None:
    """Apply all missing migrations in one transaction, or those up to a number per component."""
    await _prepare(tx)
    for component, folder in sources:
        migrations = read_migrations(component, folder)
        for migration in migrations if upto is None else migrations[: upto.get(component, 0)]:
            while await _apply(tx, migration) == "left":
                pass


_LOCK = "select pg_advisory_xact_lock(7201964)"


async def _prepare(tx: Tx) -> None:
    if tx.engine == "postgres":
        # `create table if not exists` alone can fail when two processes run it at once.
        await tx.run(_LOCK)
    await tx.run(_LEDGER)


async def _newest(tx: Tx, component: str) -> int:
    row = await tx.one(
        "select coalesce(max(number), 0) as newest from schema_migrations where component = $1",
        component,
    )
    return int(row["newest"]) if row else 0


async def _apply(tx: Tx, migration: Migration) -> Literal["applied", "left", "known"]:
    """Apply `migration`, or its next batch, unless it is applied already."""
    if tx.engine == "postgres":
        await tx.run(_LOCK)
    row = await tx.one(
        "select checksum from schema_migrations where component = $1 and number = $2",
        migration.component, migration.number,
    )  # fmt: skip
    if row is not None:
        if row["checksum"] != migration.checksum:
            raise CannotStart(
                f"the migration {migration.name} was changed after it had been applied; "
                "restore the file"
            )
        return "known"
    if migration.step is not None and await migration.step(tx):
        return "left"
    for statement in migration.statements(tx.engine):
        await tx.run(statement)
    await tx.run(
        "insert into schema_migrations (component, number, name, checksum, applied_at)"
        " values ($1, $2, $3, $4, $5)",
        migration.component, migration.number, migration.name, migration.checksum, tx.now,
    )  # fmt: skip
    return "applied"
