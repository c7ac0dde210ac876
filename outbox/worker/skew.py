"""Measure the difference between this node's wall clock and the database server's."""

from __future__ import annotations

from outbox.clock import Clock
from outbox.database.transaction import Database
from outbox.worker import nodes

WARN_SECONDS = 2.0
MOST_SECONDS = 60.0
"""Above this difference nothing is sent: receivers refuse signatures with such timestamps."""


async def measure(db: Database, clock: Clock) -> float:
    """Return seconds that this node is ahead of the server, 0 on SQLite; raise DatabaseUnavailable.

    The round-trip time is subtracted.
    """
    before = clock.wall()
    began = clock.monotonic()
    server = await db.read(nodes.server_wall)
    way_us = (clock.monotonic() - began) * 1_000_000
    if server is None:
        return 0.0
    ahead = before + way_us / 2 - server
    certain = max(abs(ahead) - way_us / 2, 0.0) / 1_000_000
    return certain if ahead > 0 else -certain
