"""Keeps the list of the products that each store shows, by category and in every order."""

from collections.abc import Sequence
from typing import Any

from msgspec import json

from gateway.records.record import Record
from gateway.records.values.folding import fold
from outbox.database.sql import insert
from outbox.database.transaction import Tx

WHOLE = ""
"""The shelf with every product that the store shows."""
_COLUMNS = ("record_id", "value", "store_id", "created_at", "sort_name", "price")


async def put(tx: Tx, product: Record, before: Record | None = None) -> None:
    """Put a created or changed product on the shelves of its store, and take it off others."""
    rows = _rows(product)
    if before is not None:
        if rows == _rows(before):
            return
        await tx.run("delete from product_shelves where record_id = $1", product.id)
    await insert(tx, "product_shelves", _COLUMNS, rows)


def _rows(product: Record) -> Sequence[Sequence[Any]]:
    if product["store_id"] is None or not (product["active"] and product["published"]):
        return []
    names = filter(None, map(fold, json.decode(product["categories"])))
    order = (product["created_at"], fold(product["name"]), product["price"])
    return [
        (product.id, value, product["store_id"], *order) for value in dict.fromkeys((WHOLE, *names))
    ]
