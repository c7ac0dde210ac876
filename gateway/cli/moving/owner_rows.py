"""Delete all rows of one owner, children first, in small transactions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gateway.cli.moving.moved_rows import TABLES
from gateway.domain.ownership import OWNERSHIP
from outbox.database.exclusive import Exclusive
from outbox.database.ownership import of_owner
from outbox.database.transaction import Tx
from outbox.events import marks

SLICE = 1_000
# The full-text index of SQLite has the terms of deleted rows until its parts are merged.
_MERGE = "/*sqlite insert into product_index (product_index) values ('optimize')*/"


async def forget(database: Exclusive, owner_id: str) -> int:
    """Delete the rows of an owner; return how many. It may be ended and repeated at any time."""
    total = 0
    # Triggers may make rows again, of tables that are done.
    while deleted := sum([await _forget(database, table, owner_id) for table in TABLES[::-1]]):
        total += deleted
    if database.engine == "sqlite":
        async with database.transaction() as tx:
            await tx.run(_MERGE)
    return total


async def _forget(database: Exclusive, table: str, owner_id: str) -> int:
    """Delete the rows of one table in the order of its key, so that each row is read once."""
    total, more = 0, True
    after: tuple[Any, ...] = ()
    while more:
        async with database.transaction() as tx:
            key = (await database.shape(table)).key
            deleted, after = await _slice(tx, table, key, owner_id, after)
        total += deleted
        more = len(after) > 0 and deleted >= SLICE
    return total


async def _slice(
    tx: Tx, table: str, key: Sequence[str], owner_id: str, after: Sequence[Any]
) -> tuple[int, tuple[Any, ...]]:
    """Delete the next rows behind the key `after`; return how many, and the last key."""
    condition, names = f"({of_owner(OWNERSHIP, table)})", ", ".join(key)
    if not key:
        return await tx.run(f"delete from {table} where {condition}", owner_id), ()
    if after:
        condition += f" and ({names}) > ({_places(2, after)})"
    rows = await tx.all(
        f"select {names} from {table} where {condition} order by {names} limit {SLICE}",
        owner_id, *after,
    )  # fmt: skip
    if not rows:
        return 0, ()
    last = tuple(rows[-1][name] for name in key)
    condition += f" and ({names}) <= ({_places(2 + len(after), last)})"
    if table != "events":
        await tx.run(f"delete from {table} where {condition}", owner_id, *after, *last)
        return len(rows), last
    seqs = await tx.all(
        f"delete from events where {condition} returning seq", owner_id, *after, *last
    )
    await marks.renew(tx, [row["seq"] for row in seqs if row["seq"] is not None])
    return len(rows), last


def _places(first: int, values: Sequence[Any]) -> str:
    return ", ".join(f"${first + number}" for number in range(len(values)))
