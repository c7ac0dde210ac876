"""Declares the categories of a store.

A product belongs to a category when one of its category names is the category's name, without case
and accents; see gateway.domain.sales.products.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from gateway.domain.sales import slugs
from gateway.domain.storefront.stores import stores
from gateway.records import actions, slices, statements
from gateway.records import store as records
from gateway.records.audit import Actor
from gateway.records.errors import Fault
from gateway.records.places import Place
from gateway.records.record import Draft, Record
from gateway.records.resource import (
    BY_NAME,
    BY_TIME,
    LASTS,
    Field,
    Filter,
    Reference,
    Resource,
    Unique,
    Unset,
)
from gateway.records.slices import Slice, SliceRequest
from gateway.records.values import formats
from gateway.records.values.folding import fold, without_case
from outbox.database.sql import IDS, items
from outbox.database.transaction import Tx
from outbox.ids import is_id

MOST = 1_000
"""Most categories of a store, so that a page can list them all."""

CATEGORIES = Resource(
    noun="category",
    plural="categories",
    table="categories",
    description="A category of a store's products: those that carry its name.",
    fields=(
        Field(
            "storeId", "store_id", formats.id_of("store"), "The store.",
            "018f3a5b7c9d1e2f3a4b5c70", required=True, on_update=False,
            reference=Reference("store", "stores", owns=True),
        ),
        Field(
            "name", "name", formats.title(64),
            "Name, unique in the store without case and accents.", "Coffee",
            required=True, unique=Unique("category_names", within="store", folded=True),
        ),
        Field(
            "slug", "slug", formats.slug(),
            "Part of the category's address in the store, unique there; made from the name.",
            "coffee", nullable=False, made=True,
            unique=Unique("category_slugs", within="store"),
        ),
        Field(
            "parentId", "parent_id", formats.id_of("category"),
            "The category above this one, of the same store.", "018f3a5b7c9d1e2f3a4b5c75",
            reference=Reference("category", "categories"),
        ),
    ),
    events={},
    search=("name",),
    folded_sort="name",
    sorts=(*BY_TIME, BY_NAME),
    filters=(
        Filter("storeId", "store_id = {}", "id", "Only categories of this store."),
        Filter(
            "parentId", f"parent_id = {{}} and {LASTS}", "id", "Only categories below this one.",
        ),
    ),
    cascades=(Unset("categories", "parent_id"),),
)  # fmt: skip

# Serialises the changes of a store's tree. It does not conflict with references to the store.
_LOCK = "select id from stores where id = $1 /*postgres for no key update*/"
_COUNT = "select count(*) as n from categories where owner_id = $1 and store_id = $2"
_STORE = "select store_id from categories where id = $1 and owner_id = $2"
_ABOVE = """
with recursive above (id, parent_id) as (
  select id, parent_id from categories where id = $1 and owner_id = $2
  union
  select c.id, c.parent_id from categories c join above on c.id = above.parent_id
  where c.owner_id = $2
)
select 1 from above where id = $3
"""


async def create(tx: Tx, actor: Actor, draft: Draft) -> Record:
    """Create a category. See actions.create; raises conflict for a taken name or slug."""
    actor.must("write")
    store_id = draft.sent.get("storeId")
    faults = []
    if store_id is not None:
        await tx.one(_LOCK, store_id)
        row = await tx.one(_COUNT, actor.owner_id, store_id)
        if row is not None and row["n"] >= MOST:
            text = "A store has at most {most} categories."
            faults = [Fault("storeId", "too_many", text, {"most": MOST})]
        faults += await _faults(tx, actor, draft, store_id)
    values = await actions.check(tx, actor, CATEGORIES, draft, faults=faults)
    return await slugs.complete(tx, await actions.insert(tx, actor, CATEGORIES, values))


async def change(
    tx: Tx, actor: Actor, record_id: str, draft: Draft, expected: frozenset[str] | None = None
) -> Record:
    """Change a category. See actions.change; raises conflict for a taken name or slug."""
    if "parentId" in draft.sent and is_id(record_id):
        # Lock the store before the category, so that two moves cannot deadlock.
        row = await tx.one(_STORE, record_id.lower(), actor.owner_id)
        if row is not None:
            await tx.one(_LOCK, row["store_id"])
    before = await actions.own(tx, actor, CATEGORIES, record_id, "write", lock=True)
    faults = await _faults(tx, actor, draft, before["store_id"], before.id)
    values = await actions.check(tx, actor, CATEGORIES, draft, before, faults)
    actions.must_match(before, expected)
    changes = actions.changes_of(before, values)
    return await actions.update(tx, actor, before, changes) if changes else before


async def _faults(
    tx: Tx, actor: Actor, draft: Draft, store_id: str, record_id: str = ""
) -> Sequence[Fault]:
    """Return the faults of the name and of the parent."""
    faults = []
    name, parent_id = draft.sent.get("name"), draft.sent.get("parentId")
    if name is not None and not without_case(name):
        faults.append(Fault("name", "blank", "Send a name with letters or digits."))
    if parent_id is None:
        return faults
    row = await tx.one(_STORE, parent_id, actor.owner_id)
    if row is not None and row["store_id"] != store_id:
        message = "Send a category of the same store."
        faults.append(Fault("parentId", "invalid_reference", message))
    if record_id and await tx.one(_ABOVE, parent_id, actor.owner_id, record_id) is not None:
        faults.append(Fault("parentId", "cycle", "A category cannot be below itself."))
    return faults


async def all_of(tx: Tx, store: Record) -> Sequence[Record]:
    """Return all categories of a store, by name."""
    sql = statements.page(
        CATEGORIES, "owner_id = $1 and store_id = $2", "sort_name, id", size=3, offset=4, late=False
    )
    rows, _ = await records.fetch_all(tx, sql, store.owner_id, store.id, MOST, 0)
    return [Record(CATEGORIES, row) for row in rows]


async def slice_of(
    tx: Tx, store: Record, request: SliceRequest, parent_id: str | None, *, top_level: bool
) -> Slice:
    """Return a slice of the categories of a store, by name: all, or those below a category.

    `top_level`: only those without a parent.
    """
    where, args = _narrowed(store, parent_id, top_level)
    where += slices.bounds(request, "sort_name", False, args)
    args += (request.limit + 1, 0)
    sql = statements.page(
        CATEGORIES, where, slices.order(request, "sort_name", False),
        size=len(args) - 1, offset=len(args), late=False,
    )  # fmt: skip
    rows, _ = await records.fetch_all(tx, sql, *args)
    return slices.slice_of(
        [Record(CATEGORIES, row) for row in rows],
        request,
        lambda category: Place(fold(category["name"]), category.id),
    )


async def count(tx: Tx, store: Record, parent_id: str | None, *, top_level: bool) -> int:
    """Return the number of categories in the whole list of which `stretch` returns slices."""
    where, args = _narrowed(store, parent_id, top_level)
    row = await tx.one(statements.count(CATEGORIES, where), *args)
    return int(row[0]) if row else 0


def _narrowed(store: Record, parent_id: str | None, top_level: bool) -> tuple[str, list[Any]]:
    where, args = "owner_id = $1 and store_id = $2", [store.owner_id, store.id]
    if parent_id is not None:
        args.append(parent_id)
        where += " and parent_id = $3"
    return where + " and parent_id is null" * top_level, args


async def named(tx: Tx, store: Record, record_id: str | None, slug: str | None) -> Record | None:
    """Return the category of a store with this id, or else with this slug."""
    if record_id is None and slug is not None:
        row = await tx.one(_BY_SLUG, store.id, slug)
        record_id = row["record_id"] if row else None
    if record_id is None:
        return None
    category = (await some(tx, [record_id])).get(record_id)
    return category if category is not None and category["store_id"] == store.id else None


async def names_below(tx: Tx, category: Record) -> Sequence[str]:
    """Return the folded names of a category and of all categories below it."""
    rows = await tx.all(_BELOW, category.id, category.owner_id)
    return sorted({without_case(row["name"]) for row in rows})


async def of_products(tx: Tx, ids: Sequence[str]) -> Mapping[str, Sequence[Record]]:
    """Return the categories in which stores show these products, by product id, sorted by name."""
    pairs = await tx.all(_OF_PRODUCTS, items(ids))
    categories = await some(tx, [row["category_id"] for row in pairs])
    by_product: dict[str, list[Record]] = {record_id: [] for record_id in ids}
    for row in pairs:
        if row["category_id"] in categories:
            by_product[row["product_id"]].append(categories[row["category_id"]])
    for each in by_product.values():
        each.sort(key=lambda category: (fold(category["name"]), category.id))
    return by_product


async def some(tx: Tx, ids: Sequence[str]) -> Mapping[str, Record]:
    """Return the categories with these ids by id, of any owner."""
    rows = await records.fetch_whole(tx, CATEGORIES, ids)
    return {key: Record(CATEGORIES, row) for key, row in rows.items()}


async def public(tx: Tx, ids: Sequence[str]) -> Mapping[str, Record]:
    """Return the categories with these ids by id, of active stores."""
    categories = await some(tx, ids)
    active = await stores.active(tx, [each["store_id"] for each in categories.values()])
    return {key: each for key, each in categories.items() if each["store_id"] in active}


_BY_SLUG = "select record_id from category_slugs where store_id = $1 and value = $2"
_BELOW = """
with recursive below (id, name) as (
  select id, name from categories where id = $1 and owner_id = $2
  union
  select c.id, c.name from below join categories c on c.owner_id = $2 and c.parent_id = below.id
)
select name from below
"""
_OF_PRODUCTS = f"""
select s.record_id as product_id, n.record_id as category_id
from product_shelves s join category_names n on n.store_id = s.store_id and n.value = s.value
where s.record_id in {IDS}
"""
