"""Reads the published reviews of products, for many products with one statement."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from gateway.domain.storefront.catalogue.reviews import REVIEWS
from gateway.domain.storefront.stores import stores
from gateway.records import settled_rows, slices, store
from gateway.records.errors import Refusal
from gateway.records.query import Place
from gateway.records.record import CREATED_AT, Record, Row, records_of
from gateway.records.slices import Slice, SliceRequest
from outbox.database.sql import IDS, items
from outbox.database.transaction import Tx

MOST_BYTES = 4_194_304
"""Most bytes of texts that one request reads together."""
FEW = 200
"""So many reviews never have more than MOST_BYTES."""


async def first(tx: Tx, product_ids: Sequence[str], wanted: SliceRequest) -> Mapping[str, Slice]:
    """Return a stretch of the published reviews of each product, the newest first.

    Raises query_too_complex above MOST_BYTES together.
    """
    args: list[Any] = [items(product_ids), wanted.limit + 1]
    position = slices.bounds(wanted, "r.created_at", True, args, "r.id")
    order = slices.order(wanted, "created_at", True)
    newest = (
        "select r.id as found from reviews r"
        " where r.product_id = p.product and r.status = 'published'"
        f"{position}{settled_rows.seen(REVIEWS, 'r')} order by {order} limit $2"
    )
    # SQLite has no lateral; PostgreSQL would read all reviews for the form of SQLite.
    source = (
        "/*sqlite (select value as product from json_each($1)) as p"
        f" cross join reviews on reviews.id in ({newest})*/"
        "/*postgres json_array_elements_text(cast($1 as json)) as p (product)"
        f" cross join lateral ({newest}) as n join reviews on reviews.id = n.found*/"
    )
    if len(product_ids) * wanted.limit > FEW:
        size = await tx.one(
            "select cast(coalesce(sum(/*sqlite length(cast(text as blob))*/"
            f" /*postgres octet_length(text)*/), 0) as bigint) as bytes from {source}",
            *args,
        )
        if size is not None and size["bytes"] > MOST_BYTES:
            raise Refusal(
                "query_too_complex",
                f"The texts of these reviews exceed {MOST_BYTES} bytes; ask for fewer at once.",
            )
    rows = await tx.all(
        f"select {settled_rows.columns(REVIEWS)} from {source} order by {order}", *args
    )
    by_product: dict[str, list[Row]] = {product_id: [] for product_id in product_ids}
    for row in rows:
        by_product[row["product_id"]].append(cast("Row", row))
    return {
        product_id: slices.slice_of(
            records_of(REVIEWS, found, tx.now, "UTC"), wanted,
            lambda record: Place(record.row[CREATED_AT], record.id),
        )
        for product_id, found in by_product.items()
    }  # fmt: skip


async def totals(tx: Tx, product_ids: Sequence[str]) -> Mapping[str, tuple[int, int]]:
    """Return the number of published reviews of each product, and the sum of their stars."""
    rows = await tx.all(_TOTALS, items(product_ids))
    return {row["product_id"]: (row["n"], row["stars"]) for row in rows}


async def public(tx: Tx, ids: Sequence[str]) -> Mapping[str, Record]:
    """Return the published reviews with these ids, of active stores, by id."""
    rows = await store.fetch_whole(tx, REVIEWS, ids)
    found = records_of(REVIEWS, rows.values(), tx.now, "UTC")
    active = await stores.active(tx, [one["store_id"] for one in found])
    return {
        one.id: one for one in found if one["status"] == "published" and one["store_id"] in active
    }


_TOTALS = f"select product_id, n, stars from review_totals where product_id in {IDS}"
