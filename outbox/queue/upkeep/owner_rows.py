"""Delete the rows of one owner in slices, in the order of their key."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from outbox.database.ownership import Ownership, of_owner
from outbox.database.transaction import Tx
from outbox.events import event_index

SLICE = 1_000
Key = tuple[Any, ...]


async def delete_slice(
    tx: Tx, ownership: Ownership, table: str, key: Sequence[str], owner_id: str, after: Key
) -> tuple[int, Key]:
    """Delete the next rows behind the key `after`; return how many, and the last key.

    Each row is read once. Without a key, or when less than SLICE rows were left, none is left.
    """
    condition, names = f"({of_owner(ownership, table)})", ", ".join(key)
    if not key:
        return await tx.run(f"delete from {table} where {condition}", owner_id), ()
    if after:
        condition += f" and ({names}) > ({_places(2, after)})"
    rows = await tx.all(
        f"select {names} from {table} where {condition} order by {names} limit {SLICE}",
        owner_id,
        *after,
    )
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
    await event_index.renew(tx, [row["seq"] for row in seqs if row["seq"] is not None])
    return len(rows), last


def _places(first: int, values: Sequence[Any]) -> str:
    return ", ".join(f"${first + number}" for number in range(len(values)))
