"""Resolves products and categories."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from msgspec import json

from gateway.domain.sales.products import ALL_PRODUCTS
from gateway.domain.storefront.catalogue import assortment, categories
from gateway.domain.storefront.catalogue.assortment import ORDERS
from gateway.graphql import connections
from gateway.graphql.fields.nodes import Public
from gateway.graphql.ids import global_id, parse, record_id
from gateway.graphql.visit import Args, FieldResolver, Resolver, Visit
from gateway.records.errors import Fault, Refusal
from gateway.records.record import Record
from gateway.records.slices import NOTHING
from gateway.records.values import dates, formats
from gateway.records.values.folding import fold
from gateway.records.values.format import Format, Wrong

SEARCH = formats.text(200)
SLUG = formats.slug()


async def product(visit: Visit, args: Args) -> Record | None:
    """Return one product by `id` or by `slug`."""
    sent, slug = args.get("id"), args.get("slug")
    if (sent is None) == (slug is None):
        message = "Send either the id or the slug of a product."
        raise Refusal("validation_error", message, faults=[Fault("id", "required", message)])
    product_id = None if sent is None else record_id(sent, "Product", "id")
    shop = (await visit.visitor(args["hostname"])).store
    return await visit.read(assortment.one, shop, product_id, _known(SLUG, slug))


async def products(visit: Visit, args: Args) -> dict[str, Any]:
    """Return a page of products."""
    order = args.get("orderBy") or "NEWEST"
    request = connections.slice_request(args, order, text=ORDERS[order].column == "sort_name")
    search = _checked(SEARCH, args.get("search") or "", "search")
    shop = (await visit.visitor(args["hostname"])).store
    shelf: str | None = ALL_PRODUCTS
    if args.get("category") is not None:
        shelf = await visit.read(_shelf, shop, args["category"])

    async def read(unit: Callable[..., Awaitable[Any]], *args: Any) -> Any:
        # A search looks at every product of the shelf.
        if shelf is not None and fold(search):
            return await visit.search(_searched, shop, shelf, unit, *args)
        return await visit.read(unit, *args)

    async def count() -> int:
        total: int = 0 if shelf is None else await read(assortment.count, shop, shelf, search)
        return total

    page = NOTHING
    if shelf is not None:
        page = await read(assortment.stretch, shop, order, request, shelf, search)
    return connections.connection(page, request, count, order)


async def _searched(
    tx: Any, shop: Record, shelf: str, unit: Callable[..., Awaitable[Any]], *args: Any
) -> tuple[Any, int]:
    """Return the result of a search, and how many products it looked at."""
    return await unit(tx, *args), await assortment.looked_at(tx, shop, shelf)


async def categories_of_store(visit: Visit, args: Args) -> Any:
    """Return the categories of a store."""
    shop = (await visit.visitor(args["hostname"])).store
    return await visit.read(categories.all_of, shop)


async def _shelf(tx: Any, shop: Record, text: str) -> str | None:
    """Return the shelf of a category by its global id or slug, or None."""
    kind, node_id = parse(text) or ("", None)
    category_id = node_id if kind == "Category" else None
    category = await categories.named(tx, shop, category_id, _known(SLUG, text))
    return None if category is None else fold(category["name"])


def _checked(form: Format, text: str, field: str) -> str:
    try:
        value: str = form.check(text)
    except Wrong as wrong:
        fault = Fault(field, wrong.code, wrong.message)
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

    async def later(product: Record, visit: Visit) -> Any:
        full = await visit.loaders.load(assortment.whole, product.id)
        return None if full is None else show(full[column])

    def resolve(product: Record, visit: Visit, args: Args) -> Any:
        # Every product has a list of images, so null means unread.
        return later(product, visit) if product["images"] is None else show(product[column])

    return resolve


def _time(column: str) -> FieldResolver:
    def resolve(record: Record, visit: Visit, args: Args) -> str | None:
        return None if record[column] is None else dates.show(record[column])

    return resolve


def _available(product: Record, visit: Visit, args: Args) -> bool:
    return product["stock"] is None or product["stock"] > 0


def _categories(product: Record, visit: Visit, args: Args) -> Awaitable[Any]:
    return visit.loaders.load(categories.of_products, product.id)


def _parent(category: Record, visit: Visit, args: Args) -> Awaitable[Any] | None:
    if category["parent_id"] is None:
        return None
    return visit.loaders.load(categories.some, category["parent_id"])


QUERIES: Mapping[str, Resolver] = {
    "product": product,
    "products": products,
    "categories": categories_of_store,
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
