"""Keep PostgreSQL's plans on indexes when its statistics are out of date.

Statistics that were collected on an empty table make the planner read and sort a whole table that
now has a million rows.
"""

from outbox.database.transaction import Tx

BY_INDEX = """
set local enable_seqscan = off; set local enable_bitmapscan = off; set local enable_sort = off;
set local enable_hashjoin = off; set local enable_mergejoin = off
"""

BY_HASH = "set local enable_sort = off"


async def by_hash(tx: Tx) -> None:
    """Make this transaction add up groups in memory: by sorting, wide rows would go to disk."""
    if tx.engine == "postgres":
        await tx.run(BY_HASH)


async def by_index(tx: Tx) -> None:
    """Make this transaction read rows by index and in index order where an index exists."""
    if tx.engine == "postgres":
        await tx.run(BY_INDEX)
