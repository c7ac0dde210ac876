"""Pages of the SQLite file that nothing uses any more go back to the disk, a few at a time.

PostgreSQL has its autovacuum for this.
"""

from __future__ import annotations

from outbox.database.transaction import Database, Tx

STEP = 64
# What stays free for rows to come: moving pages costs more than keeping some.
KEPT = 256
KEPT_SHARE = 0.1


async def give_back(db: Database) -> None:
    """Shrink the file in small units while more is free than need be."""
    if db.engine == "sqlite":
        while await db.write(shrink):
            pass


async def shrink(tx: Tx) -> bool:
    """Give STEP pages back; False when enough were given."""
    free, pages = [
        int(row[0])
        for name in ("freelist_count", "page_count")
        for row in await tx.all(f"pragma {name}")
    ]
    if free - STEP < max(KEPT, pages * KEPT_SHARE):
        return False
    # Each row that it would return is one page's work, so all are asked for.
    await tx.all(f"pragma incremental_vacuum({STEP})")
    return True
