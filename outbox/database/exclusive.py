"""A database that no server uses: transactions of any length, and what its tables are like.

The drivers have one class each.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Protocol

from outbox.database.transaction import Engine, Tx
from outbox.database.transfer import Table, Values


@dataclass(frozen=True, slots=True)
class Shape:
    """A table without its generated column: by this column its rows are in their order."""

    table: Table
    key: tuple[str, ...]
    """The columns of its primary key; none without one."""
    generated: str | None


class Exclusive(Protocol):
    """The one connection to a database without servers."""

    engine: Engine

    async def must_be_alone(self) -> None:
        """Raise CannotStart when a server uses the database."""

    def transaction(self) -> AbstractAsyncContextManager[Tx]:
        """Begin a transaction; it is committed at the end of the block, unless that fails."""

    async def shape(self, table: str) -> Shape:
        """Return what a table is like; inside a transaction."""

    def rows(self, sql: str, *args: Any) -> AsyncGenerator[Sequence[Values], None]:
        """Return the rows of a statement inside a transaction, in batches of about a megabyte."""

    def fitted(self, table: Table, rows: Sequence[Values]) -> Sequence[Values]:
        """Return rows as this database stores them. Raise CannotStart for a value it cannot."""
