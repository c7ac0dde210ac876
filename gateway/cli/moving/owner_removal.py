"""Delete all rows of one owner, children first, in small transactions."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Any

from gateway.cli.moving.moved_rows import TABLES
from gateway.domain.product_ownership import OWNERSHIP
from outbox.database.exclusive import Exclusive
from outbox.queue.upkeep import owner_rows

Step = Callable[[], AbstractAsyncContextManager[object]]
# The full-text index of SQLite has the terms of deleted rows until its parts are merged.
_MERGE = "/*sqlite insert into product_index (product_index) values ('optimize')*/"


async def forget(database: Exclusive, owner_id: str, step: Step = nullcontext) -> int:
    """Delete the rows of an owner; return how many. It may be ended and repeated at any time.

    Each transaction is within a `step`.
    """
    total = 0
    # Triggers may make rows again, of tables that are done.
    while deleted := sum(
        [await _forget(database, table, owner_id, step) for table in TABLES[::-1]]
    ):
        total += deleted
    if database.engine == "sqlite":
        async with database.transaction() as tx:
            await tx.run(_MERGE)
    return total


async def _forget(database: Exclusive, table: str, owner_id: str, step: Step) -> int:
    """Delete the rows of one table in the order of its key, so that each row is read once."""
    total, more = 0, True
    after: tuple[Any, ...] = ()
    while more:
        async with step(), database.transaction() as tx:
            key = (await database.shape(table)).key
            deleted, after = await owner_rows.delete_slice(
                tx, OWNERSHIP, table, key, owner_id, after
            )
        total += deleted
        more = len(after) > 0 and deleted >= owner_rows.SLICE
    return total
