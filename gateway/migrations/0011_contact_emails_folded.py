"""Fills in `email_folded` of the contacts that were there before the column."""

import unicodedata

from outbox.database.transaction import Tx

BATCH = 1_000
_NEXT = """
select id, email from contacts where email is not null and email_folded is null
order by id limit $1
"""


async def step(tx: Tx) -> bool:
    """Fill in one batch; return whether more may be left."""
    rows = await tx.all(_NEXT, BATCH)
    folded = [
        (unicodedata.normalize("NFC", row["email"]).strip().casefold(), row["id"]) for row in rows
    ]
    if folded:
        await tx.many("update contacts set email_folded = $1 where id = $2", folded)
    return len(rows) == BATCH
