"""How far this node's wall clock is from the database server's."""

from __future__ import annotations

from outbox.clock import Clock
from outbox.database.transaction import Database
from outbox.worker import nodes

WARN_SECONDS = 2.0
MOST_SECONDS = 60.0
"""Past it nothing is sent: receivers refuse signatures that are minutes off."""


async def measure(db: Database, clock: Clock) -> float:
    """Seconds that this node is ahead of the server, 0 on SQLite; raises DatabaseUnavailable.

    What the way to the server and back may explain is taken off.
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
