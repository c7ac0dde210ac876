"""Measure the difference between this node's wall clock and the database server's."""

from __future__ import annotations

from outbox.clock import Clock
from outbox.database.transaction import Database, Tx
from outbox.durations import SECOND

WARN_SECONDS = 2.0
MOST_SECONDS = 60.0
"""Above this difference nothing is sent: receivers refuse signatures with such timestamps."""
WALL = "select cast(extract(epoch from clock_timestamp()) * 1000000 as bigint) as wall"


async def measure(db: Database, clock: Clock) -> float:
    """Return seconds that this node is ahead of the server, less the round-trip time.

    A database that is not shared is on this node: 0. Raise DatabaseUnavailable.
    """
    if not db.shared:
        return 0.0
    before = clock.wall()
    began = clock.monotonic()
    server = await db.read(_server_wall)
    way_us = (clock.monotonic() - began) * SECOND
    ahead = before + way_us / 2 - server
    certain = max(abs(ahead) - way_us / 2, 0.0) / SECOND
    return certain if ahead > 0 else -certain


async def _server_wall(tx: Tx) -> int:
    """Return the server's wall clock, microseconds UTC."""
    row = await tx.one(WALL)
    assert row is not None
    return int(row["wall"])
