"""A database whose units report the buffers of each statement (PostgreSQL).

The statements stay unchanged: the server counts buffers per table and index of its own transaction,
and the difference around a statement belongs to that statement.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from outbox.database.transaction import Database, Row, Tx

BLOCKS = """
select sum(pg_stat_get_xact_blocks_fetched(c.oid)) as blocks
from pg_class c where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'i')
"""


@dataclass(frozen=True)
class Statement:
    """One statement of a unit: its buffers, its duration, rows returned or changed."""

    text: str
    blocks: int
    seconds: float
    rows: int


@dataclass
class Unit:
    """One transaction."""

    name: str
    statements: list[Statement] = field(default_factory=list)

    @property
    def blocks(self) -> int:
        return sum(statement.blocks for statement in self.statements)


class _Watched:
    """`Tx` that measures its statements."""

    def __init__(self, tx: Tx, unit: Unit) -> None:
        self.__dict__.update(_tx=tx, _unit=unit, _before=0)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tx, name)

    def __setattr__(self, name: str, value: Any) -> None:
        # Units set `wake` and the like; only the measurement stays here.
        if name == "_before":
            self.__dict__[name] = value
        else:
            setattr(self._tx, name, value)

    async def start(self) -> None:
        self._before = await self._blocks()

    async def _blocks(self) -> int:
        row = await self._tx.one(BLOCKS)
        return int(row["blocks"] or 0)

    async def _note(self, sql: str, began: float, rows: int) -> None:
        seconds = time.perf_counter() - began
        now = await self._blocks()
        text = " ".join(sql.split())
        self._unit.statements.append(Statement(text, now - self._before, seconds, rows))
        self._before = now

    async def one(self, sql: str, *args: Any) -> Row | None:
        began = time.perf_counter()
        row: Row | None = await self._tx.one(sql, *args)
        await self._note(sql, began, int(row is not None))
        return row

    async def all(self, sql: str, *args: Any) -> list[Row]:
        began = time.perf_counter()
        rows: list[Row] = await self._tx.all(sql, *args)
        await self._note(sql, began, len(rows))
        return rows

    async def run(self, sql: str, *args: Any) -> int:
        began = time.perf_counter()
        count: int = await self._tx.run(sql, *args)
        await self._note(sql, began, count)
        return count

    async def many(self, sql: str, rows: Sequence[Sequence[Any]]) -> list[Row]:
        began = time.perf_counter()
        found: list[Row] = await self._tx.many(sql, rows)
        if rows:
            await self._note(sql, began, len(found))
        return found


class _Measured:
    """`Database` with measured reads and writes, on any of its connections."""

    def __init__(self, db: Database, seen: list[Unit]) -> None:
        self.__dict__.update(_db=db, _seen=seen)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._db, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._db, name, value)

    def apart(self, *args: Any) -> Database:
        return measured(self._db.apart(*args), self._seen)

    async def read(self, unit: Callable[..., Awaitable[Any]], *args: Any, **kwargs: Any) -> Any:
        return await self._db.read(_watched(unit, self._seen, args, kwargs))

    async def write(self, unit: Callable[..., Awaitable[Any]], *args: Any, **kwargs: Any) -> Any:
        return await self._db.write(_watched(unit, self._seen, args, kwargs))


def _watched(
    unit: Callable[..., Awaitable[Any]], seen: list[Unit], args: Any, kwargs: Any
) -> Callable[[Tx], Awaitable[Any]]:
    async def watched(tx: Tx) -> Any:
        noted = Unit(getattr(unit, "__name__", str(unit)))
        watch = _Watched(tx, noted)
        await watch.start()
        result = await unit(cast(Tx, watch), *args, **kwargs)
        seen.append(noted)
        return result

    return watched


def measured(db: Database, seen: list[Unit]) -> Database:
    """Return `db` with every unit recorded in `seen`, those that scan excepted."""
    return cast(Database, _Measured(db, seen))
