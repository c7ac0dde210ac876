"""Keep PostgreSQL's plans on indexes when its statistics are out of date.

Statistics that were collected on an empty table make the planner read and sort a whole table that
now has a million rows. A prepared statement keeps such a plan until there are new statistics.
"""

from outbox.database.transaction import Tx

WHOLE_TABLES = ("enable_seqscan", "enable_bitmapscan", "enable_hashjoin", "enable_mergejoin")
"""The settings that let a plan read whole tables, or all rows of a range before a limit applies."""
BY_INDEX = "; ".join(f"set local {name} = off" for name in (*WHOLE_TABLES, "enable_sort"))

BY_SOME_INDEX = "; ".join(
    (
        "set local enable_seqscan = off",
        "set local enable_bitmapscan = on",
        "set local enable_sort = on",
    )
)

BY_HASH = "set local enable_sort = off"


async def by_hash(tx: Tx) -> None:
    """Make this transaction add up groups in memory: by sorting, wide rows would go to disk."""
    if tx.engine == "postgres":
        await tx.run(BY_HASH)


async def by_index(tx: Tx) -> None:
    """Make this transaction read rows by index and in index order where an index exists."""
    if tx.engine == "postgres":
        await tx.run(BY_INDEX)


async def by_some_index(tx: Tx) -> None:
    """Make this transaction read rows by index, through a bitmap where the index has no order."""
    if tx.engine == "postgres":
        await tx.run(BY_SOME_INDEX)
