"""A database whose units report the buffers of each statement (PostgreSQL).

The statements stay unchanged: the server counts buffers per table and index of its own transaction,
and the difference around a statement belongs to that statement.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from outbox.database.transaction import Database, Tx

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

    async def _noted(self, name: str, sql: str, *args: Any) -> Any:
        """Run a statement; note its buffers, and the rows returned or changed."""
        began = time.perf_counter()
        found = await getattr(self._tx, name)(sql, *args)
        seconds, now = time.perf_counter() - began, await self._blocks()
        rows = len(found) if isinstance(found, list) else int(found is not None)
        rows = found if name == "run" else rows
        self._unit.statements.append(
            Statement(" ".join(sql.split()), now - self._before, seconds, rows)
        )
        self._before = now
        return found

    async def one(self, sql: str, *args: Any) -> Any:
        return await self._noted("one", sql, *args)

    async def all(self, sql: str, *args: Any) -> Any:
        return await self._noted("all", sql, *args)

    async def run(self, sql: str, *args: Any) -> Any:
        return await self._noted("run", sql, *args)

    async def many(self, sql: str, rows: Sequence[Sequence[Any]]) -> Any:
        return await (self._noted("many", sql, rows) if rows else self._tx.many(sql, rows))


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
