"""Indexes the products that stores showed before there was an index."""

from msgspec import json

from gateway.records.values.folding import fold
from gateway.records.values.words import index_terms
from outbox.database.sql import insert
from outbox.database.transaction import Tx

BATCH = 500
# Ids begin with their time, so that the newest get the highest numbers.
_NEXT = """
select p.id, p.name, p.sku, p.categories, s.store_id
from product_shelves s join products p on p.id = s.record_id
where s.value = '' and s.record_id > (select coalesce(max(record_id), '') from product_terms)
order by s.record_id limit $1
"""


async def step(tx: Tx) -> bool:
    """Index one batch; return whether more may be left."""
    rows = [
        (
            row["id"],
            row["store_id"],
            index_terms(
                row["store_id"],
                (row["name"], row["sku"] or ""),
                filter(None, map(fold, json.decode(row["categories"]))),
            ),
        )
        for row in await tx.all(_NEXT, BATCH)
    ]
    await insert(tx, "product_terms", ("record_id", "store_id", "words"), rows)
    return len(rows) == BATCH
