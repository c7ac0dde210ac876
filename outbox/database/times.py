"""The time by which times to live end: that of the clock that is behind.

A wall clock that is ahead for a moment must not remove what nobody can bring back. The due clock
does not jump, but on SQLite it stays behind when a wall clock that was wrong is set forward.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from outbox.database.transaction import Tx


async def earlier(tx: Tx) -> int:
    """Return the smaller of the wall clock and the due clock, in microseconds UTC."""
    row = await tx.one("select due_now() as due")
    assert row is not None
    return min(tx.now, int(row["due"]))


async def by_earlier(tx: Tx, unit: Callable[[Tx, int], Awaitable[int]], limit: int) -> int:
    """Run a unit that deletes what is past its time, up to `limit` rows, by that clock."""
    tx.now = await earlier(tx)
    return await unit(tx, limit)
