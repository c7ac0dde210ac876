"""A database that counts the units and the statements that reach it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from outbox.database.transaction import Database, Purpose
from outbox.observer import Observer

in_background: ContextVar[bool] = ContextVar("in_background", default=False)
"""Whether this is a duty that a server began as it started; `serving` sets it."""


class Counted:
    """The database `db`; `units` and `statements` have what was read since `reset`.

    With `of_requests` they leave out what duties in the background read and write.
    """

    def __init__(
        self,
        db: Database,
        written: list[tuple[str, list[str]]] | None = None,
        *,
        of_requests: bool = False,
    ) -> None:
        self._db = db
        self._of_requests = of_requests
        self.units = 0
        self.statements: list[str] = []
        self.written = [] if written is None else written
        """The name and the statements of each unit of `write`, also of those on `apart`."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._db, name)

    @property
    def observer(self) -> Observer:
        return self._db.observer

    @observer.setter
    def observer(self, observer: Observer) -> None:
        self._db.observer = observer

    def reset(self) -> None:
        self.units = 0
        self.statements.clear()
        self.written.clear()

    def apart(self, purpose: Purpose) -> Counted:
        return Counted(self._db.apart(purpose), self.written, of_requests=self._of_requests)

    async def write(self, unit: Callable[..., Awaitable[Any]], *args: Any, **kwargs: Any) -> Any:
        if self._of_requests and in_background.get():
            return await self._db.write(unit, *args, **kwargs)

        async def counting(tx: Any, *args: Any, **kwargs: Any) -> Any:
            statements: list[str] = []
            self.written.append((unit.__name__, statements))
            return await unit(CountedTx(tx, statements), *args, **kwargs)

        return await self._db.write(counting, *args, **kwargs)

    async def read(self, unit: Callable[..., Awaitable[Any]], *args: Any, **kwargs: Any) -> Any:
        with self._counting(unit) as counting:
            return await self._db.read(counting, *args, **kwargs)

    async def scan(
        self, owner: str, unit: Callable[..., Awaitable[Any]], /, *args: Any, **kwargs: Any
    ) -> Any:
        with self._counting(unit) as counting:
            return await self._db.scan(owner, counting, *args, **kwargs)

    @contextmanager
    def _counting(
        self, unit: Callable[..., Awaitable[Any]]
    ) -> Iterator[Callable[..., Awaitable[Any]]]:
        """Count a unit once, as it ran at last."""
        if self._of_requests and in_background.get():
            yield unit
            return
        statements = list[str]()

        async def counting(tx: Any, *args: Any, **kwargs: Any) -> Any:
            statements.clear()
            return await unit(CountedTx(tx, statements), *args, **kwargs)

        try:
            yield counting
        finally:
            self.units += 1
            self.statements += statements


class CountedTx:
    """A transaction that notes its statements, then runs them."""

    def __init__(self, tx: Any, statements: list[str]) -> None:
        object.__setattr__(self, "_tx", tx)
        object.__setattr__(self, "_statements", statements)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._tx, name, value)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tx, name)

    async def one(self, sql: str, *args: Any) -> Any:
        self._statements.append(sql)
        return await self._tx.one(sql, *args)

    async def all(self, sql: str, *args: Any) -> Any:
        self._statements.append(sql)
        return await self._tx.all(sql, *args)

    async def run(self, sql: str, *args: Any) -> Any:
        self._statements.append(sql)
        return await self._tx.run(sql, *args)

    async def many(self, sql: str, rows: Any) -> Any:
        if rows:
            self._statements.append(sql)
        return await self._tx.many(sql, rows)
