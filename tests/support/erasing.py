"""Erases persons beside a server: an erasure moves on unit by unit, and each one is counted."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, cast

import pytest

from gateway.domain.contacts import person_erasures
from gateway.domain.contacts.person_erasures import Erasure, Person
from gateway.domain.privacy import progress
from gateway.domain.privacy.progress import Ahead
from outbox.database.transaction import Database, Row, Tx
from outbox.ids import is_id

NOBODY = Person(wide=True)


async def begun(
    tx: Tx, owner_id: str, person: Person = NOBODY, record_id: str | None = None
) -> str:
    """Store the erasure of a person; return its id."""
    record_id = record_id or tx.new_id()
    return (await person_erasures.add(tx, owner_id, "contact", record_id, person)).id


async def now(db: Database, erasure_id: str) -> Erasure:
    found = await db.read(person_erasures.one, erasure_id)
    assert found is not None
    return found


async def units(db: Database, erasure_id: str) -> AsyncIterator[Erasure]:
    """Move an erasure on until its events are next; yield it after each unit."""
    ahead = Ahead()
    while (erasure := await now(db, erasure_id)).stage not in ("log", "files", "done"):
        ahead = await progress.advance(db, erasure_id, ahead)
        yield erasure


async def dropped(db: Database, owner_id: str, text: str) -> int:
    """Erase a person with this email, or whose contact has this id; return the lines that went."""
    whose = NOBODY if is_id(text) else Person(emails=(text,), wide=True)
    erasure_id = await db.write(begun, owner_id, whose, text if is_id(text) else None)
    async for _ in units(db, erasure_id):
        pass
    return (await now(db, erasure_id)).erased.get("importLines", 0)


@dataclass
class Done:
    """What one transaction asked the database for, and got."""

    kind: str
    statements: int = 0
    rows: int = 0
    bytes: int = 0


@contextmanager
def counted(db: Database, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Done]]:
    """List the work of each transaction meanwhile; `inside` tells whether one writes."""
    done: list[Done] = []

    def counting(kind: str, run: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def counted_run(*args: Any, **kwargs: Any) -> Any:
            first = 1 if kind == "scan" else 0
            unit = args[first]

            async def counted_unit(tx: Tx, *rest: Any, **named: Any) -> Any:
                done.append(Done(kind))
                token = inside.set(kind == "write")
                try:
                    return await unit(_Counting(tx, done[-1]), *rest, **named)
                finally:
                    inside.reset(token)

            return await run(*args[:first], counted_unit, *args[first + 1 :], **kwargs)

        return counted_run

    with monkeypatch.context() as patch:
        for kind in ("read", "scan", "write"):
            patch.setattr(db, kind, counting(kind, getattr(db, kind)))
        yield done


inside: ContextVar[bool] = ContextVar("inside", default=False)


class _Counting:
    """Passes everything to a transaction, and counts it."""

    def __init__(self, tx: Tx, done: Done) -> None:
        self._tx = tx
        self._done = done

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tx, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in ("_tx", "_done"):
            object.__setattr__(self, name, value)
        else:
            setattr(self._tx, name, value)

    async def all(self, sql: str, *args: Any) -> list[Row]:
        rows = await self._tx.all(sql, *args)
        self._count([tuple(cast("Any", row)) for row in rows])
        return rows

    async def one(self, sql: str, *args: Any) -> Row | None:
        row = await self._tx.one(sql, *args)
        self._count([] if row is None else [tuple(cast("Any", row))])
        return row

    async def run(self, sql: str, *args: Any) -> int:
        self._count([args])
        return await self._tx.run(sql, *args)

    def _count(self, rows: Sequence[Sequence[Any]]) -> None:
        self._done.statements += 1
        self._done.rows += len(rows)
        self._done.bytes += sum(
            len(value) for row in rows for value in row if isinstance(value, str | bytes)
        )
