"""Reads the products that a store shows: lists by category and order, and single products."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from gateway.domain.sales.products import PRODUCTS
from gateway.domain.storefront.catalogue import selection as selections
from gateway.domain.storefront.catalogue import word_search
from gateway.domain.storefront.catalogue.selection import Selection, size
from gateway.domain.storefront.stores import stores
from gateway.records import slices, statements, store
from gateway.records.errors import Refusal
from gateway.records.places import Place
from gateway.records.record import Record
from gateway.records.slices import NOTHING, Slice, SliceRequest
from gateway.records.values.folding import fold
from gateway.records.values.words import words_of
from outbox.database.index_plans import by_some_index
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
"""The orders by the names of the enum ProductOrder, but for BEST_MATCH."""
BEST_MATCH = "BEST_MATCH"
"""The order of a search: what fits it best, then the newest."""


async def slice_of(
    tx: Tx, shop: Record, order: str, request: SliceRequest, selection: Selection
) -> Slice:
    """Return a slice of the products that a store shows and that are selected.

    BEST_MATCH is the order of searches alone. A long product lacks its long texts, such as the
    images; `whole` has them.
    """
    if selection.searches and not words_of(selection.search):
        return NOTHING
    if order == BEST_MATCH:
        return await _best(tx, shop, request, selection)
    by = ORDERS[order]
    order_by = slices.order(request, f"s.{by.column}", by.descending, "s.record_id")
    end = None
    if selection.is_read_in_order(by.column):
        source = selections.in_order(shop, selection)
    else:
        ids, more = await selections.collect(tx, shop, selection)
        if more and not selection.searches:
            bounds = word_search.Source([shop.id, selection.shelf])
            bounds.sql = slices.bounds(
                request, f"s.{by.column}", by.descending, bounds.args, "s.record_id"
            )
            source, end = selections.walk(shop, selection, bounds, order_by)
        else:
            await by_some_index(tx)
            source = selections.collected(shop, selection, ids)
    if end is None:
        source.sql += slices.bounds(
            request, f"s.{by.column}", by.descending, source.args, "s.record_id"
        )
    page = await _page(
        tx, source, order_by, slices.order(request, by.column, by.descending), request,
        lambda product: Place(by.of(product), product.id),
    )  # fmt: skip
    if end is None or page.more:
        return page
    row = await tx.one(f"select s.{by.column} as at, s.record_id from {end.sql}", *end.args)
    return page if row is None else replace(page, more=True, end=Place(row["at"], row["record_id"]))


async def _best(tx: Tx, shop: Record, request: SliceRequest, selection: Selection) -> Slice:
    ids, _ = await selections.collect(tx, shop, selection)
    await by_some_index(tx)
    source = selections.collected(shop, selection, ids, ranked=True)
    inner, outer = (
        source.rank.format(table, column)
        for table, column in (("s", "s.record_id"), ("products", "products.id"))
    )
    source.sql += slices.bounds(request, inner, False, source.args, "s.record_id")
    return await _page(
        tx, source, slices.order(request, inner, False, "s.record_id"),
        slices.order(request, outer, False), request,
        lambda product: Place(word_search.rank(product, selection.search), product.id),
    )  # fmt: skip


async def _page(
    tx: Tx, source: word_search.Source, inner: str, outer: str, request: SliceRequest,
    place: Callable[[Record], Place],
) -> Slice:  # fmt: skip
    """Return a slice of a source; its order as that of the listings and as that of products."""
    args = [*source.args, request.limit + 1, 0]
    ids = f"select s.record_id from {source.sql} order by {inner} limit ${len(args) - 1}"
    sql = statements.page(
        PRODUCTS, f"id in ({ids})", outer, size=len(args) - 1, offset=len(args), late=False
    )
    rows, long = await store.fetch_all(tx, sql, *args)
    return slices.slice_of([Record(PRODUCTS, row) for row in rows], request, place, long)


async def count(tx: Tx, shop: Record, selection: Selection) -> tuple[int, bool]:
    """Return the number of products in the whole list of which `stretch` returns slices.

    True stands for this number or more.
    """
    if selection.searches and not words_of(selection.search):
        return 0, False
    if not selection.is_read_in_order("price"):
        return await size(tx, shop, selection)
    source = selections.in_order(shop, selection)
    row = await tx.one(f"select count(*) as n from {source.sql}", *source.args)
    return (int(row["n"]) if row else 0), False


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


_BY_SLUG = "select record_id from product_slugs where store_id = $1 and value = $2"
_SIZE = f"""
select cast(coalesce(sum({statements.text_bytes(PRODUCTS)}), 0) as bigint) as bytes
from products where id in {IDS}
"""
