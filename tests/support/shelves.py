"""Fills a store with products at once, in the tables of lists and searches too."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from msgspec import json

from gateway.domain.sales.products import LISTING_COLUMNS, PRODUCTS, listing_rows, terms_of
from gateway.records import store
from gateway.records.record import Record
from outbox.database.sql import insert
from outbox.database.transaction import Database, Tx

OWNER = "a" * 24
STORE = "b" * 24
BATCH = 500


class Shelved(NamedTuple):
    """A product: its name, its price in centavos, and what else matters in lists."""

    name: str
    price: int = 1_000
    stock: int | None = None
    categories: Sequence[str] = ()
    sku: str | None = None
    store_id: str = STORE


async def shelve(db: Database, products: Iterable[Shelved]) -> None:
    """Add products, the oldest first, without the checks and events of a door."""
    waiting = list(products)
    for start in range(0, len(waiting), BATCH):
        await db.write(_add, waiting[start : start + BATCH])


async def _add(tx: Tx, products: Sequence[Shelved]) -> None:
    made = []
    for product in products:
        values: dict[str, Any] = {
            "name": product.name, "sku": product.sku, "price": product.price, "currency": "BRL",
            "stock": product.stock, "categories": json.encode(product.categories).decode(),
            "images": "[]", "active": True, "published": True, "requires_shipping": True,
            "store_id": product.store_id,
        }  # fmt: skip
        made.append(Record(PRODUCTS, await store.insert(tx, PRODUCTS, OWNER, values)))
    made.sort(key=lambda record: record.id)
    listings = [row for record in made for row in listing_rows(record)]
    await insert(tx, "product_shelves", LISTING_COLUMNS, listings)
    terms = [(record.id, record["store_id"], terms_of(record)) for record in made]
    await insert(tx, "product_terms", ("record_id", "store_id", "words"), terms)
