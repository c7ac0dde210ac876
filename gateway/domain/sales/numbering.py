"""Numbers of documents: one series per owner and kind, without gaps and without repeats."""

from outbox.database.transaction import Tx

_TAKE = """
insert into counters (owner_id, series, n) values ($1, $2, 1)
on conflict (owner_id, series) do update set n = counters.n + 1
returning n
"""


async def take(tx: Tx, owner_id: str, series: str, prefix: str) -> str:
    """The next number of a series, such as INV-000001.

    Whoever takes one makes all others of the series wait until the end of the transaction, so it
    is the last lock that a unit takes. A unit that fails gives its number back with the rest.
    """
    row = await tx.one(_TAKE, owner_id, series)
    assert row is not None, "an upsert returns its row"
    return f"{prefix}-{row[0]:06d}"
