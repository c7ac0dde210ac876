"""Return unused pages of the SQLite file to the file system, a few at a time.

On PostgreSQL, autovacuum does this.
"""

from __future__ import annotations

from outbox.database.transaction import Database, Tx

STEP = 64
# Pages kept free for new rows: moving pages costs more than keeping some.
KEPT = 256
KEPT_SHARE = 0.1


async def give_back(db: Database) -> None:
    """Shrink the file in small units while it has more free pages than it needs."""
    if db.engine == "sqlite":
        while await db.write(shrink):
            pass


async def shrink(tx: Tx) -> bool:
    """Release STEP pages; return False when enough pages are released."""
    free, pages = [
        int(row[0])
        for name in ("freelist_count", "page_count")
        for row in await tx.all(f"pragma {name}")
    ]
    if free - STEP < max(KEPT, pages * KEPT_SHARE):
        return False
    # The pragma frees one page per row that it returns, so all rows are fetched.
    await tx.all(f"pragma incremental_vacuum({STEP})")
    return True
