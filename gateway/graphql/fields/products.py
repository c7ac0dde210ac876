"""Resolves products and categories."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from math import ceil, floor
from typing import Any

from msgspec import json

from gateway.domain.sales.products import ALL_PRODUCTS
from gateway.domain.storefront.catalogue import assortment, categories
from gateway.domain.storefront.catalogue.assortment import BEST_MATCH, ORDERS
from gateway.domain.storefront.catalogue.selection import Selection
from gateway.domain.storefront.catalogue.word_search import MOST
from gateway.graphql import connections
from gateway.graphql.fields.nodes import Public
from gateway.graphql.request_context import Args, FieldResolver, RequestContext, Resolver
from gateway.records.errors import Fault, Refusal
from gateway.records.record import Record
from gateway.records.slices import NOTHING, Slice
from gateway.records.values import dates, formats
from gateway.records.values.folding import without_case
from gateway.records.values.formats import Format, Wrong
from gateway.records.values.global_ids import global_id, parse, record_id
from outbox.database.transaction import Tx

SEARCH = formats.text(200)
SLUG = formats.slug()
BY_NAME = "name"
"""The order of categories, in their cursors."""
DEAREST = 2**53
"""More centavos than a product can cost."""


async def product(visit: RequestContext, args: Args) -> Record | None:
    """Return one product by `id` or by `slug`."""
    sent, slug = args.get("id"), args.get("slug")
    if (sent is None) == (slug is None):
        message = "Send either the id or the slug of a product."
        raise Refusal("validation_error", message, faults=[Fault("id", "required", message)])
    product_id = None if sent is None else record_id(sent, "Product", "id")
    shop = (await visit.visitor(args["hostname"])).store
    return await visit.read(assortment.one, shop, product_id, _known(SLUG, slug))


async def products(visit: RequestContext, args: Args) -> dict[str, Any]:
    """Return a page of products."""
    search = _checked(SEARCH, args.get("search") or "", "search").strip(" \t\r\n")
    order = args.get("orderBy") or BEST_MATCH
    if order == BEST_MATCH and not search:
        order = "NEWEST"
    text = order != BEST_MATCH and ORDERS[order].column == "sort_name"
    request = connections.slice_request(args, order, text=text)
    lowest, highest = _price(args, "minPrice", ceil), _price(args, "maxPrice", floor)
    shop = (await visit.visitor(args["hostname"])).store
    names: Sequence[str] = (ALL_PRODUCTS,)
    if args.get("category") is not None:
        below = bool(args.get("includeChildren"))
        names = await visit.read(_category_names, shop, args["category"], below)
    selection = Selection(tuple(names), search, lowest, highest, bool(args.get("inStock")))
    total: asyncio.Task[tuple[int, bool]] | None = None

    async def read(by: str, unit: Callable[..., Awaitable[Any]], *args: Any) -> Any:
        # Any other list is read from an index in its order.
        if selection.is_read_in_order(by):
            return await visit.read(unit, *args)
        return await visit.search(_selected, unit, *args)

    def counted() -> asyncio.Task[tuple[int, bool]]:
        """Count once for both fields that tell the number."""
        nonlocal total
        if total is None:
            total = asyncio.create_task(read("price", assortment.count, shop, selection))
        return total

    async def count() -> int:
        return (await counted())[0] if names else 0

    async def at_least() -> bool:
        return (await counted())[1] if names else False

    page = NOTHING
    if names:
        by = "" if order == BEST_MATCH else ORDERS[order].column
        page = await read(by, assortment.slice_of, shop, order, request, selection)
    return {
        **connections.connection(page, request, count, order),
        "totalIsAtLeast": lambda info: at_least(),
    }


def _price(args: Args, name: str, rounded: Callable[[float], int]) -> int | None:
    """Return a bound of prices in whole centavos, within the prices that products can have."""
    sent = args.get(name)
    # A literal of many digits is infinite, which no whole number is.
    return None if sent is None else rounded(max(-1, min(sent, DEAREST)))


async def _selected(
    tx: Tx, unit: Callable[..., Awaitable[Slice | tuple[int, bool]]], *args: Any
) -> tuple[Any, int]:
    """Return a slice or a count of selected products, and for how many rows the visitor pays.

    Both look at MOST products at most; a slice also ranks or sorts them.
    """
    result = await unit(tx, *args)
    if isinstance(result, Slice):
        return result, 2 * MOST if result.more else 0
    return result, result[0]


async def categories_of_store(visit: RequestContext, args: Args) -> Any:
    """Return the categories of a store."""
    shop = (await visit.visitor(args["hostname"])).store
    return await visit.read(categories.all_of, shop)


async def category_pages(visit: RequestContext, args: Args) -> dict[str, Any]:
    """Return a page of the categories of a store."""
    request = connections.slice_request(args, BY_NAME, text=True)
    top_level, parent, parent_id = bool(args.get("topLevel")), args.get("parent"), None
    if parent is not None and top_level:
        message = "Send either parent or topLevel: a category at the top has no parent."
        raise Refusal("validation_error", message, faults=[Fault("topLevel", "disagrees", message)])
    shop = (await visit.visitor(args["hostname"])).store
    if parent is not None:
        above = await visit.read(_category, shop, parent)
        parent_id = "" if above is None else above.id

    async def count() -> int:
        return await visit.read(categories.count, shop, parent_id, top_level=top_level)

    page = await visit.read(categories.slice_of, shop, request, parent_id, top_level=top_level)
    return connections.connection(page, request, count, BY_NAME)


async def _category(tx: Any, shop: Record, text: str) -> Record | None:
    """Return a category by its global id or slug, or None."""
    kind, node_id = parse(text) or ("", None)
    category_id = node_id if kind == "Category" else None
    return await categories.named(tx, shop, category_id, _known(SLUG, text))


async def _category_names(tx: Any, shop: Record, text: str, below: bool) -> Sequence[str]:
    """Return the folded name of a category by its global id or slug, and of all below it."""
    category = await _category(tx, shop, text)
    if category is None:
        return []
    return await categories.names_below(tx, category) if below else [without_case(category["name"])]


def _checked(form: Format, text: str, field: str) -> str:
    try:
        value: str = form.check(text)
    except Wrong as wrong:
        [fault] = wrong.faults(field)
        raise Refusal("validation_error", fault.sentence, faults=[fault]) from None
    return value


def _known(form: Format, text: str | None) -> str | None:
    """Return the text, or None when no record can have it."""
    try:
        return None if text is None else form.check(text)
    except Wrong:
        return None


def _of(column: str) -> FieldResolver:
    return lambda record, visit, args: record[column]


def _text(column: str, show: Callable[[Any], Any] = lambda value: value) -> FieldResolver:
    """Return the resolver of a long text, which a list leaves unread where it is long."""

    async def later(product: Record, visit: RequestContext) -> Any:
        full = await visit.loaders.load(assortment.whole, product.id)
        return None if full is None else show(full[column])

    def resolve(product: Record, visit: RequestContext, args: Args) -> Any:
        # Every product has a list of images, so null means unread.
        return later(product, visit) if product["images"] is None else show(product[column])

    return resolve


def _time(column: str) -> FieldResolver:
    def resolve(record: Record, visit: RequestContext, args: Args) -> str | None:
        return None if record[column] is None else dates.show(record[column])

    return resolve


def _available(product: Record, visit: RequestContext, args: Args) -> bool:
    return product["stock"] is None or product["stock"] > 0


def _categories(product: Record, visit: RequestContext, args: Args) -> Awaitable[Any]:
    return visit.loaders.load(categories.of_products, product.id)


def _parent(category: Record, visit: RequestContext, args: Args) -> Awaitable[Any] | None:
    if category["parent_id"] is None:
        return None
    return visit.loaders.load(categories.some, category["parent_id"])


QUERIES: Mapping[str, Resolver] = {
    "product": product,
    "products": products,
    "categories": categories_of_store,
    "categoriesConnection": category_pages,
}
MUTATIONS: Mapping[str, Resolver] = {}
NODES: Public = {"Product": assortment.public, "Category": categories.public}
TYPES: Mapping[str, Mapping[str, FieldResolver]] = {
    "Product": {
        "id": lambda record, visit, args: global_id("Product", record.id),
        "title": _of("name"),
        "slug": _of("slug"),
        "description": _text("description"),
        "price": _of("price"),
        "compareAtPrice": _of("compare_at_price"),
        "currency": _of("currency"),
        "sku": _of("sku"),
        "available": _available,
        "stock": _of("stock"),
        "images": _text("images", json.decode),
        "requiresShipping": lambda product, visit, args: bool(product["requires_shipping"]),
        "categories": _categories,
        "groups": _categories,
        "createdAt": _time("created_at"),
        "updatedAt": _time("updated_at"),
    },
    "Category": {
        "id": lambda record, visit, args: global_id("Category", record.id),
        "name": _of("name"),
        "slug": _of("slug"),
        "parent": _parent,
    },
}
