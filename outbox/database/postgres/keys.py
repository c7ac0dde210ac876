"""Read the primary key of a table."""

from __future__ import annotations

from outbox.database.transaction import Tx

KEY = """
select a.attname from pg_index i
join pg_attribute a on a.attrelid = i.indrelid and a.attnum = any (i.indkey)
where i.indrelid = to_regclass($1) and i.indisprimary
order by array_position(i.indkey, a.attnum)
"""


async def key_of(tx: Tx, table: str) -> tuple[str, ...]:
    """Return the columns of the primary key; none without one."""
    return tuple(row["attname"] for row in await tx.all(KEY, table))
