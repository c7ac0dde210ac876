"""A database that counts the units and the statements that reach it."""

from collections.abc import Awaitable, Callable
from typing import Any

from outbox.database.transaction import Database


class Counted:
    """The database `db`; `units` and `statements` have what ran since `reset`."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self.units = 0
        self.statements: list[str] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._db, name)

    def reset(self) -> None:
        self.units = 0
        self.statements.clear()

    async def read(self, unit: Callable[..., Awaitable[Any]], *args: Any, **kwargs: Any) -> Any:
        return await self._db.read(self._counting(unit), *args, **kwargs)

    async def scan(
        self, owner: str, unit: Callable[..., Awaitable[Any]], /, *args: Any, **kwargs: Any
    ) -> Any:
        return await self._db.scan(owner, self._counting(unit), *args, **kwargs)

    def _counting(self, unit: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def counting(tx: Any, *args: Any, **kwargs: Any) -> Any:
            self.units += 1
            return await unit(CountedTx(tx, self.statements), *args, **kwargs)

        return counting


class CountedTx:
    """A transaction that notes its statements, then runs them."""

    def __init__(self, tx: Any, statements: list[str]) -> None:
        self._tx = tx
        self._statements = statements

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tx, name)

    async def one(self, sql: str, *args: Any) -> Any:
        self._statements.append(sql)
        return await self._tx.one(sql, *args)

    async def all(self, sql: str, *args: Any) -> Any:
        self._statements.append(sql)
        return await self._tx.all(sql, *args)
