"""Fill a new SQLite file beside the old one, and put it in its place when it is complete."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager, closing, suppress
from pathlib import Path
from typing import Any, Concatenate

import aiosqlite

from outbox import private_files
from outbox.database import sqlite
from outbox.database.sqlite.file import File, copied_mark
from outbox.database.sqlite.snapshot import address
from outbox.database.transaction import Engine, P, T, Tx
from outbox.database.transfer import Place, Sources, Table, Values
from outbox.errors import CannotStart, DatabaseUnavailable

COMPANIONS = ("-wal", "-shm", "-journal")
_ASIDE = """
select name, type, sql from sqlite_master
where type in ('index', 'trigger') and sql is not null order by type, name
"""
# Tables that are stored, without virtual ones and what stores their content.
_STORED = "select name from pragma_table_list where schema = 'main' and type = 'table'"
_TEXT_INDEXES = """
select name from sqlite_master
where type = 'table' and sql like 'create virtual table % using fts5%content=%'
"""
# The file is thrown away unless it becomes complete, so nothing has to survive a crash before.
_FAST = (
    "journal_mode = delete", "locking_mode = exclusive", "journal_mode = off", "synchronous = off",
    "foreign_keys = off", "cache_size = -262144",
)  # fmt: skip


class SqliteFilling:
    """`Filling` of a file that takes the place of another one."""

    engine: Engine = "sqlite"

    def __init__(self, place: Place, new: Path) -> None:
        self.notes: list[str] = []
        self._place = place
        self._new = new
        self._connection: aiosqlite.Connection | None = None
        self._aside: list[tuple[str, str, str]] = []

    async def run(
        self, unit: Callable[Concatenate[Tx, P], Awaitable[T]], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        place = self._place
        db = await sqlite.open(
            self._new, clock=place.clock, ids=place.ids, serving=False, synchronous="normal"
        )
        try:
            return await db.write(unit, *args, **kwargs)
        finally:
            await db.close()

    async def begin(self, tables: Sequence[Table]) -> None:
        self._connection = await aiosqlite.connect(self._new, isolation_level=None)
        for pragma in _FAST:
            await self._all(f"pragma {pragma}")
        for table in tables:
            existing = {str(row[1]) for row in await self._all(f"pragma table_info({table.name})")}
            if missing := [name for name in table.names if name not in existing]:
                raise CannotStart(f"the schema has no column {table.name}.{missing[0]}")
        self._aside = await self._all(_ASIDE)
        await self._all("begin")
        for name, kind, _ in self._aside:
            await self._all(f"drop {kind} {name}")
        for table in tables:
            await self._all(f"delete from {table.name}")

    async def fill(self, table: Table, rows: Sequence[Values]) -> None:
        assert self._connection is not None
        places = ", ".join("?" for _ in table.columns)
        cursor = await self._connection.executemany(
            f"insert into {table.name} ({', '.join(table.names)}) values ({places})", rows
        )
        await cursor.close()

    async def end(self, tables: Mapping[Table, int]) -> None:
        for _, _, text in self._aside:
            await self._all(text)
        for (name,) in await self._all(_TEXT_INDEXES):
            await self._all(f"insert into {name} ({name}) values ('rebuild')")
        for table, count in tables.items():
            [(stored,)] = await self._all(f"select count(*) from {table.name}")
            if stored != count:
                raise CannotStart(f"{table.name} has {stored} rows instead of {count}")
            if table.last is not None:
                await self._all(f"delete from sqlite_sequence where name = '{table.name}'")
                await self._all(
                    f"insert into sqlite_sequence (name, seq) values ('{table.name}', {table.last})"
                )
        if broken := await self._all("pragma foreign_key_check"):
            raise CannotStart(
                f"a row of {broken[0][0]} names a row of {broken[0][2]} that is missing"
            )
        await self._all("commit")
        await self.close()

    async def commit(self, before: Callable[[], None] | None = None) -> None:
        file = self._place.path
        # What SQLite has closed is in the file itself; the rename must not come to the disk first.
        _sync(self._new)
        with closing(_retired(file)):
            if before is not None:
                before()
            os.replace(self._new, file)
            for name in (file, self._place.typed):
                copied_mark(name).unlink(missing_ok=True)
        _sync(file.parent)

    async def close(self) -> None:
        """Close the connection of `begin`."""
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()

    async def _all(self, sql: str) -> list[Any]:
        assert self._connection is not None
        return list(await self._connection.execute_fetchall(sql))


@asynccontextmanager
async def open_filling(
    place: Place, sources: Sources, *, unowned: Collection[str] | None
) -> AsyncIterator[SqliteFilling]:
    """Begin a new file, with the lock of the server. Raise CannotStart."""
    file = place.path
    file.parent.mkdir(private_files.FOLDER, parents=True, exist_ok=True)
    lock = File(place.typed, place.clock, True, "full")
    lock.lock()
    try:
        if file.exists() and unowned is not None:
            _must_be_empty(file, unowned)
        # The lock is ours, so this is what an ended process has left.
        new = file.with_name(f"{file.name}.new")
        _remove(new)
        private_files.make(new)
        filling = SqliteFilling(place, new)
        try:
            yield filling
        except sqlite3.Error as error:
            raise CannotStart(f"cannot write {new}: {error}; {file} is unchanged") from error
        except DatabaseUnavailable as error:
            raise CannotStart(f"cannot write {new}: {error}; {file} is unchanged") from error
        finally:
            await filling.close()
            _remove(new)
    finally:
        lock.release()


def _must_be_empty(file: Path, unowned: Collection[str]) -> None:
    """Raise CannotStart when somebody has stored anything in the file, beside these tables."""
    try:
        with closing(sqlite3.connect(address(file), uri=True)) as connection:
            names = [
                name
                for (name,) in connection.execute(_STORED)
                if not name.startswith("sqlite_") and name not in unowned
            ]
            has_rows = any(
                connection.execute(f"select 1 from {name} limit 1").fetchone() for name in names
            )
    except sqlite3.Error as error:
        raise CannotStart(
            f"{file} is damaged ({error}); --overwrite replaces it and keeps it beside"
        ) from error
    if has_rows:
        raise CannotStart(f"the database {file} has data; --overwrite replaces all of it")


def _retired(file: Path) -> sqlite3.Connection:
    """Return a connection that keeps others out of the old file, which is one file from now on.

    A log that stayed beside the new file would be replayed into it.
    """
    if not file.exists():
        return sqlite3.connect(":memory:")
    connection = sqlite3.connect(address(file), uri=True, timeout=1, isolation_level=None)
    try:
        connection.execute("pragma journal_mode = delete")
        connection.execute("begin exclusive")
    except sqlite3.OperationalError as error:
        connection.close()
        raise CannotStart(f"another process uses {file}: {error}; end it first") from error
    except sqlite3.DatabaseError:
        connection.close()
        for ending in ("", *COMPANIONS):
            with suppress(FileNotFoundError):
                os.replace(f"{file}{ending}", f"{file}.damaged{ending}")
        return sqlite3.connect(":memory:")
    return connection


def _remove(file: Path) -> None:
    for ending in ("", *COMPANIONS):
        Path(f"{file}{ending}").unlink(missing_ok=True)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
