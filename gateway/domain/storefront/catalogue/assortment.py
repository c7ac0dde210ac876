"""Reads the products that a store shows: lists by category and order, and single products."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gateway.domain.sales.products import ALL_PRODUCTS, PRODUCTS
from gateway.domain.storefront.stores import stores
from gateway.records import slices, statements, store
from gateway.records.errors import Refusal
from gateway.records.query import Place
from gateway.records.record import Record
from gateway.records.slices import NOTHING, Slice, SliceRequest
from gateway.records.values.folding import BETWEEN, fold
from outbox.database.sql import IDS, items
from outbox.database.transaction import Tx

MOST_BYTES = 4_194_304
"""Most bytes of long texts that one request reads together."""


@dataclass(frozen=True, slots=True)
class Order:
    """An order of products: a column that products and their listings both have."""

    column: str
    descending: bool
    of: Callable[[Record], int | str]


ORDERS: Mapping[str, Order] = {
    "NEWEST": Order("created_at", True, lambda product: product["created_at"]),
    "TITLE": Order("sort_name", False, lambda product: fold(product["name"])),
    "PRICE_ASC": Order("price", False, lambda product: product["price"]),
    "PRICE_DESC": Order("price", True, lambda product: product["price"]),
}
"""The orders by the names of the enum ProductOrder."""


async def stretch(
    tx: Tx,
    shop: Record,
    order: str,
    request: SliceRequest,
    category: str = ALL_PRODUCTS,
    search: str = "",
) -> Slice:
    """Return a slice of the products that a store shows: all, or those of one category.

    A long product lacks its long texts, such as the images; `whole` has them.
    """
    by = ORDERS[order]
    if BETWEEN in search:
        return NOTHING
    source, args = _listing(shop, category, search)
    source += slices.bounds(request, f"s.{by.column}", by.descending, args, "s.record_id")
    order_by = slices.order(request, f"s.{by.column}", by.descending, "s.record_id")
    args += (request.limit + 1, 0)
    sql = statements.page(
        PRODUCTS,
        f"id in (select s.record_id from {source} order by {order_by} limit ${len(args) - 1})",
        slices.order(request, by.column, by.descending),
        size=len(args) - 1, offset=len(args), late=False,
    )  # fmt: skip
    rows, long = await store.fetch_all(tx, sql, *args)
    return slices.slice_of(
        [Record(PRODUCTS, row) for row in rows], request,
        lambda product: Place(by.of(product), product.id),
        long,
    )  # fmt: skip


async def count(tx: Tx, shop: Record, category: str = ALL_PRODUCTS, search: str = "") -> int:
    """Return the number of products in the whole list of which `stretch` returns slices."""
    if BETWEEN in search:
        return 0
    source, args = _listing(shop, category, search)
    row = await tx.one(f"select count(*) as n from {source}", *args)
    return int(row["n"]) if row else 0


async def looked_at(tx: Tx, shop: Record, category: str = ALL_PRODUCTS) -> int:
    """Return how many products a search of the list looks at."""
    row = await tx.one(_LOOKED_AT, shop.id, category)
    return int(row["n"]) if row else 0


def _listing(shop: Record, category: str, search: str) -> tuple[str, list[Any]]:
    """Return the source of product ids for FROM, with its condition, and the parameters."""
    args: list[Any] = [shop.id, category]
    folded = fold(search)
    if not folded:
        return "product_shelves s where s.store_id = $1 and s.value = $2", args
    return (
        "product_shelves s join products p on p.id = s.record_id"
        " where s.store_id = $1 and s.value = $2"
        " and /*sqlite instr(p.folded, $3)*/ /*postgres strpos(p.folded, $3)*/ > 0",
        [*args, folded],
    )


async def one(tx: Tx, shop: Record, record_id: str | None, slug: str | None) -> Record | None:
    """Return the product with this id or slug that the store shows, or None."""
    if record_id is None and slug is not None:
        named = await tx.one(_BY_SLUG, shop.id, slug)
        record_id = named["record_id"] if named else None
    row = None if record_id is None else await store.fetch(tx, PRODUCTS, record_id)
    product = None if row is None else Record(PRODUCTS, row)
    return product if product is not None and is_shown(product, shop) else None


def is_shown(product: Record, shop: Record) -> bool:
    """Return whether the store shows the product."""
    return bool(product["store_id"] == shop.id and product["active"] and product["published"])


async def public(tx: Tx, ids: Sequence[str]) -> Mapping[str, Record]:
    """Return the products with these ids by id that active stores show.

    A long product lacks its long texts.
    """
    sql = statements.page(PRODUCTS, f"id in {IDS}", "id", size=2, offset=3, late=False)
    rows, _ = await store.fetch_all(tx, sql, items(ids), len(ids), 0)
    products = [Record(PRODUCTS, row) for row in rows]
    active = await stores.active(tx, [p["store_id"] for p in products if p["store_id"] is not None])
    shown: dict[str, Record] = {}
    for product in products:
        shop = active.get(product["store_id"])
        if shop is not None and is_shown(product, shop):
            shown[product.id] = product
    return shown


async def whole(tx: Tx, ids: Sequence[str]) -> Mapping[str, Record]:
    """Return whole products by id. Raises query_too_complex above MOST_BYTES together."""
    size = await tx.one(_SIZE, items(ids))
    if size is not None and size["bytes"] > MOST_BYTES:
        raise Refusal(
            "query_too_complex",
            f"The texts of these products exceed {MOST_BYTES} bytes; ask for fewer at once.",
        )
    rows = await store.fetch_whole(tx, PRODUCTS, ids)
    return {key: Record(PRODUCTS, row) for key, row in rows.items()}


_LOOKED_AT = "select count(*) as n from product_shelves where store_id = $1 and value = $2"
_BY_SLUG = "select record_id from product_slugs where store_id = $1 and value = $2"
_SIZE = f"""
select cast(coalesce(sum({statements.text_bytes(PRODUCTS)}), 0) as bigint) as bytes
from products where id in {IDS}
"""
