"""Numbers documents: one series per owner and kind, without gaps and repeats."""

from outbox.database.transaction import Tx

_TAKE = """
insert into counters (owner_id, series, n) values ($1, $2, 1)
on conflict (owner_id, series) do update set n = counters.n + 1
returning n
"""


async def take(tx: Tx, owner_id: str, series: str, prefix: str) -> str:
    """Take the next number of a series, such as INV-000001.

    It locks the series until the transaction ends, so a unit takes it as its last lock. A rollback
    also returns the number.
    """
    row = await tx.one(_TAKE, owner_id, series)
    assert row is not None, "an upsert returns its row"
    return f"{prefix}-{row[0]:06d}"
