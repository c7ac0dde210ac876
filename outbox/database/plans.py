"""Plans that stay narrow on PostgreSQL, whatever its statistics say.

They are of some earlier moment: taken while a table was empty, they make it read and sort all of a
table that has grown to a million rows since.
"""

from outbox.database.transaction import Tx

BY_INDEX = """
set local enable_seqscan = off; set local enable_bitmapscan = off; set local enable_sort = off;
set local enable_hashjoin = off; set local enable_mergejoin = off
"""


async def by_index(tx: Tx) -> None:
    """Let this transaction reach rows by an index, in its order, wherever there is one."""
    if tx.engine == "postgres":
        await tx.run(BY_INDEX)
