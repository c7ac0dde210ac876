"""Declares products, and keeps the lists of products that each store shows."""

from collections.abc import Sequence
from typing import Any

from msgspec import json

from gateway.domain.images import uploads
from gateway.domain.sales import slugs
from gateway.records import actions
from gateway.records.audit import Actor
from gateway.records.record import Draft, Record, check
from gateway.records.resource import (
    BY_NAME,
    BY_TIME,
    LASTS,
    Field,
    Filter,
    Reference,
    Remove,
    Resource,
    Sort,
    Unique,
)
from gateway.records.values import formats, nested, numbers
from gateway.records.values.folding import fold, without_case
from gateway.records.values.nested import Member
from gateway.records.values.words import index_terms
from outbox.database.sql import insert
from outbox.database.transaction import Tx

MOST_IMAGES = 50
PRODUCTS = Resource(
    noun="product",
    plural="products",
    table="products",
    description="A product with its price in BRL.",
    fields=(
        Field("name", "name", formats.title(), "Name.", "Coffee beans 1 kg", required=True),
        Field(
            "description", "description", formats.text(formats.LONG), "Description.",
            "Medium roast, whole beans.",
        ),
        Field(
            "sku", "sku", formats.title(64), "Stock keeping unit; unique per owner.",
            "COF-1000", unique=Unique("product_skus"),
        ),
        Field(
            "slug", "slug", formats.slug(),
            "Part of the product's address in the store, unique there; made from the name when a "
            "product with a store has none.",
            "coffee-beans-1-kg", unique=Unique("product_slugs", within="store"),
        ),
        Field("price", "price", numbers.money(), "Price in BRL.", 89.9, required=True),
        Field(
            "compareAtPrice", "compare_at_price", numbers.money(), "Price before a reduction.",
            109.9,
        ),
        Field(
            "currency", "currency", formats.one_of("BRL"), "Currency of the prices.", "BRL",
            on_create=False, on_update=False, default="BRL",
        ),
        Field(
            "stock", "stock", numbers.integer(0, 1_000_000_000),
            "Number in stock; null means unlimited.", 25, always=True,
        ),
        Field(
            "weightGrams", "weight_grams", numbers.integer(0, 1_000_000_000), "Weight in grams.",
            1050,
        ),
        Field(
            "requiresShipping", "requires_shipping", formats.boolean(),
            "Whether it is shipped; false for goods such as downloads and services, which a store "
            "with shipping rules sells without a shipping option.",
            True, default=True,
        ),
        Field(
            "categories", "categories", formats.tags(), "Categories, without repeats.",
            ["Coffee"], default="[]", listed_in="product_categories",
        ),
        Field(
            "images", "images",
            nested.objects(
                (
                    Member("url", formats.url(), "URL of the image.", required=True),
                    Member("alt", formats.text(500), "Alternative text of the image."),
                ),
                MOST_IMAGES,
            ),
            "Images in order. `POST /api/products/{id}/images` adds a file.",
            [{"url": "https://shop.example/coffee.jpg", "alt": "A bag of coffee"}], default="[]",
        ),
        Field(
            "active", "active", formats.boolean(), "Whether it is for sale.", True, default=True,
        ),
        Field(
            "published", "published", formats.boolean(), "Whether the shop shows it.", True,
            default=True,
        ),
        Field(
            "storeId", "store_id", formats.id_of("store"),
            "The store that sells it; null means that no store shows it.",
            "018f3a5b7c9d1e2f3a4b5c70", reference=Reference("store", "stores"),
        ),
    ),
    events={
        "created": ("id", "name", "price", "createdAt"),
        "updated": ("id", "name", "price", "updatedAt"),
        "deleted": ("id",),
    },
    search=("name", "sku"),
    folded_sort="name",
    key="sku",
    sorts=(*BY_TIME, BY_NAME, Sort("price", "price")),
    filters=(
        Filter(
            "category",
            "id in (select record_id from product_categories where owner_id = $1 and value = {})",
            "text", "Only products with exactly this category.",
        ),
        Filter(
            "sku",
            "id in (select record_id from product_skus where owner_id = $1 and value = {})",
            "text", "Only the product with this sku.",
        ),
        Filter(
            "active", "active = {}", "boolean",
            "Only products that are for sale (true) or not for sale (false).",
        ),
        Filter(
            "published", "published = {}", "boolean",
            "Only products that the shop shows (true) or hides (false).",
        ),
        Filter(
            "storeId", f"store_id = {{}} and {LASTS}", "id", "Only products of this store.",
        ),
    ),
    cascades=(Remove("reviews", "product_id"),),
)  # fmt: skip


async def create(tx: Tx, actor: Actor, draft: Draft) -> Record:
    """Create a product. See actions.create; raises conflict for a taken sku or slug."""
    actor.must("write")
    values = await actions.check(tx, actor, PRODUCTS, draft)
    product = await slugs.complete(tx, await actions.insert(tx, actor, PRODUCTS, values))
    await _list_in_store(tx, product)
    await uploads.follow(tx, actor.owner_id, product.id, None, product["images"])
    return actions.announce(tx, "created", product, before=None)


async def change(
    tx: Tx, actor: Actor, record_id: str, draft: Draft, expected: frozenset[str] | None = None
) -> Record:
    """Change a product. See actions.change; raises conflict for a taken sku or slug."""
    before = await actions.own(tx, actor, PRODUCTS, record_id, "write", lock=True)
    values = await actions.check(tx, actor, PRODUCTS, draft, before)
    actions.must_match(before, expected)
    changes = actions.changes_of(before, values)
    if not changes:
        return before
    after = await slugs.complete(tx, await actions.update(tx, actor, before, changes))
    await _list_in_store(tx, after, before)
    await uploads.follow(tx, actor.owner_id, after.id, before["images"], after["images"])
    return actions.announce(tx, "updated", after, before=before)


async def remove(
    tx: Tx, actor: Actor, record_id: str, expected: frozenset[str] | None = None
) -> None:
    """Delete a product. See actions.remove."""
    before = await actions.remove(tx, actor, PRODUCTS, record_id, expected)
    if names := uploads.names_in(before["images"]):
        await uploads.release(tx, actor.owner_id, sorted(names))


async def add_image(tx: Tx, actor: Actor, record_id: str, url: str, alt: str = "") -> Record:
    """Give a product one more image, after the others; one that it has stays where it is.

    Raises not_found, forbidden, validation_error for more than MOST_IMAGES.
    """
    before = await actions.own(tx, actor, PRODUCTS, record_id, "write", lock=True)
    images = before.shown("images")
    if any(image["url"] == url for image in images):
        return before
    images.append({"url": url, "alt": alt} if alt else {"url": url})
    return await change(tx, actor, record_id, check(PRODUCTS, {"images": images}, from_json=True))


async def place_image(tx: Tx, actor: Actor, record_id: str, url: str, *, first: bool) -> Record:
    """Make an image the first of a product, or take it away; an unknown one changes nothing."""
    before = await actions.own(tx, actor, PRODUCTS, record_id, "write", lock=True)
    images = before.shown("images")
    others = [image for image in images if image["url"] != url]
    its = [image for image in images if image["url"] == url]
    placed = [*its, *others] if first else others
    return await change(tx, actor, record_id, check(PRODUCTS, {"images": placed}, from_json=True))


ALL_PRODUCTS = ""
"""The category, no category's name, under which all products of a store are listed."""
IN_STOCK = "\x1e"
"""What the value of a listing begins with that holds only products in stock."""
LISTING_COLUMNS = ("record_id", "value", "store_id", "created_at", "sort_name", "price")
_INDEX = """
insert into product_terms (record_id, store_id, words) values ($1, $2, $3)
on conflict (record_id) do update set store_id = excluded.store_id, words = excluded.words
"""


async def _list_in_store(tx: Tx, product: Record, before: Record | None = None) -> None:
    """List a created or changed product in its store, and index its words.

    It is listed under its categories and ALL_PRODUCTS, in stock once more.
    """
    rows = listing_rows(product)
    if before is None or rows != listing_rows(before):
        if before is not None:
            await tx.run("delete from product_shelves where record_id = $1", product.id)
        await insert(tx, "product_shelves", LISTING_COLUMNS, rows)
    # Not by a trigger: neither engine can fold text as we do.
    terms = terms_of(product)
    if before is not None and terms == terms_of(before):
        return
    if terms is not None:
        await tx.run(_INDEX, product.id, product["store_id"], terms)
    elif before is not None:
        await tx.run("delete from product_terms where record_id = $1", product.id)


def _is_listed(product: Record) -> bool:
    return bool(product["store_id"] is not None and product["active"] and product["published"])


def _categories(product: Record) -> Sequence[str]:
    """Return the folded names of the product's categories."""
    return [
        name
        for name in map(without_case, json.decode(product["categories"]))
        if name and not name.startswith(IN_STOCK)
    ]


def listing_rows(product: Record) -> Sequence[Sequence[Any]]:
    """Return the listings of a product, with LISTING_COLUMNS."""
    if not _is_listed(product):
        return []
    values = dict.fromkeys((ALL_PRODUCTS, *_categories(product)))
    stocked = product["stock"] is None or product["stock"] > 0
    order = (product["created_at"], fold(product["name"]), product["price"])
    return [
        (product.id, f"{mark}{value}", product["store_id"], *order)
        for mark in ("", IN_STOCK)[: 1 + stocked]
        for value in values
    ]


def terms_of(product: Record) -> str | None:
    """Return the terms of a listed product for the index of searches."""
    if not _is_listed(product):
        return None
    texts = (product["name"], product["sku"] or "")
    return index_terms(product["store_id"], texts, _categories(product))
