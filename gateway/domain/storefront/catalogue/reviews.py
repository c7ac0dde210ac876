"""Declares reviews of products, and creates them for customers.

Triggers keep the number of a product's published reviews and the sum of their stars.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

from gateway import texts
from gateway.domain.contacts import upsert
from gateway.domain.contacts.contacts import CONTACTS
from gateway.domain.sales.products import PRODUCTS
from gateway.domain.storefront.catalogue.assortment import is_shown
from gateway.domain.storefront.stores import stores
from gateway.domain.storefront.visitors import customers
from gateway.domain.storefront.visitors.customers import CUSTOMERS
from gateway.domain.storefront.visitors.shopper import Shopper
from gateway.records import actions, settled_rows, slices, store
from gateway.records.audit import Actor
from gateway.records.derived import global_id_of
from gateway.records.errors import Fault, Refusal, rate_limited
from gateway.records.places import Place
from gateway.records.record import CREATED_AT, Draft, Record, Row, check, records_of, refusal
from gateway.records.resource import Field, Filter, Form, Reference, Resource
from gateway.records.slices import Slice, SliceRequest
from gateway.records.values import dates, formats, numbers
from outbox.database.expiry import Expiry
from outbox.database.sql import IDS, items
from outbox.database.transaction import Tx
from outbox.durations import DAY, SECOND

STATUSES = ("published", "pending", "rejected")
MOST_A_DAY = 20
"""Reviews that one customer may write on one day of the store's owner."""

_STARS = Field(
    "stars", "stars", numbers.integer(1, 5), "Stars, 1 to 5.", 5, required=True, on_update=False
)
_TEXT = Field(
    "text",
    "text",
    formats.title(5_000),
    "Text, as the customer wrote it.",
    "Fresh and mild.",
    required=True,
    on_update=False,
)
WRITTEN = Form(noun="review", description="What a customer writes.", fields=(_STARS, _TEXT))

REVIEWS = Resource(
    noun="review",
    plural="reviews",
    table="reviews",
    description="A customer's review of a product; the owner decides whether the store shows it.",
    fields=(
        Field(
            "storeId", "store_id", formats.id_of("store"), "The store where it was written.",
            "018f3a5b7c9d1e2f3a4b5c70", on_create=False, on_update=False, made=True,
            reference=Reference("store", "stores", owns=True),
        ),
        Field(
            "productId", "product_id", formats.id_of("product"), "The product.",
            "018f3a5b7c9d1e2f3a4b5c71", on_create=False, on_update=False, made=True,
            reference=Reference("product", "products", owns=True),
        ),
        Field(
            "customerId", "customer_id", formats.id_of("client"),
            "The customer who wrote it; absent when the account was erased.",
            "018f3a5b7c9d1e2f3a4b5c72", on_create=False, on_update=False,
            reference=Reference("client", "customers", also=("author",)),
        ),
        Field(
            "author", "author", formats.title(), "Name of the customer when it was written.",
            "Maria da Silva", on_create=False, on_update=False,
        ),
        _STARS,
        _TEXT,
        Field(
            "status", "status", formats.one_of(*STATUSES),
            "Whether the store shows it: only published reviews are shown.", "published",
            on_create=False, default="published", nullable=False,
        ),
    ),
    search=("text",),
    events={},
    derived=(global_id_of("Review"),),
    filters=(
        Filter("status", "status = {}", "text", "Only reviews with this status.", STATUSES),
        Filter("productId", "product_id = {}", "id", "Only reviews of this product."),
        Filter("storeId", "store_id = {}", "id", "Only reviews written in this store."),
    ),
)  # fmt: skip

_TAKE = """
insert into review_quotas (customer_id, day, n) values ($1, $2, 1)
on conflict (customer_id) do update
set day = excluded.day, n = case when review_quotas.day = excluded.day then review_quotas.n else 0
  end + 1
where review_quotas.day <> excluded.day or review_quotas.n < $3
"""
QUOTAS = Expiry("review_quotas", "customer_id", "day", 2 * DAY)
"""A day has then ended in every time zone."""
_CLAIM = """
insert into review_claims (product_id, customer_id, record_id) values ($1, $2, $3)
on conflict (product_id, customer_id) do nothing
"""
_OF_CUSTOMER = """
select r.id, r.product_id, p.name, r.stars, r.text, r.status, r.created_at from reviews r
left join products p on p.id = r.product_id
where r.customer_id = $1 and (r.created_at, r.id) > ($2, $3) order by r.created_at, r.id limit $4
"""
_EMAIL = re.compile(r"[^\s@]+@[^\s@]+")
_WRITTEN = "select 1 from reviews where customer_id = $1 and product_id = $2 limit 1"


async def create(tx: Tx, visitor: Shopper, product_id: str, sent: Mapping[str, Any]) -> Record:
    """Create a review by the customer of a product of the store.

    It locks the customer's count of the day. Raises unauthenticated, the faults of the values,
    product_not_found, validation_error for a second review in a store that allows one, and
    rate_limited.
    """
    owner_id = visitor.store.owner_id
    # The locks keep both from being deleted meanwhile.
    await store.owned_of(tx, PRODUCTS.table, owner_id, [product_id])
    await store.owned_of(tx, CUSTOMERS.table, owner_id, [visitor.must_be_customer()])
    customer = await customers.own(tx, visitor)
    draft = check(WRITTEN, sent, creating=True)
    draft.must_hold()
    product = await shown(tx, visitor, product_id)
    one_each: bool = visitor.store["one_review_each"]
    if one_each and await tx.one(_WRITTEN, customer.id, product_id) is not None:
        raise _written_already()
    day = dates.today(tx.now, visitor.zone)
    if not await tx.run(_TAKE, customer.id, day, MOST_A_DAY):
        raise _too_many(visitor, tx.now, day)
    values = {
        **draft.values,
        "store_id": visitor.store.id,
        "product_id": product_id,
        "customer_id": customer.id,
        "author": _shown(customer["name"]),
        "status": "pending" if visitor.store["review_moderation"] else "published",
    }
    review = await actions.insert(tx, visitor.actor, REVIEWS, values)
    if one_each and not await tx.run(_CLAIM, product_id, customer.id, review.id):
        raise _written_already()
    contact_id = customer["contact_id"]
    # Lock the contact, so that a later delete also deletes the note.
    if contact_id and await store.owned_of(tx, CONTACTS.table, owner_id, [contact_id]):
        text = texts.of(visitor.store["language"])(
            "review.noted", product=product["name"], stars=review["stars"], text=review["text"]
        )
        metadata = {"reviewId": review.id, "productId": product_id}
        await upsert.note(tx, visitor.actor, contact_id, text, metadata)
    return review


def _shown(name: str) -> str:
    """Return the name that the readers of a review see.

    A provider of identities may know no name but the email, which is not theirs to know.
    """
    return name.partition("@")[0] if _EMAIL.fullmatch(name) else name


async def change(
    tx: Tx, actor: Actor, record_id: str, draft: Draft, expected: frozenset[str] | None = None
) -> Record:
    """Publish or reject a review. See actions.change."""
    unlocked = await actions.own(tx, actor, REVIEWS, record_id, "write")
    # Lock the product first, as a delete does: the totals of a published review need it.
    await store.owned_of(tx, PRODUCTS.table, actor.owner_id, [unlocked["product_id"]])
    return await actions.change(tx, actor, REVIEWS, record_id, draft, expected)


async def shown(tx: Tx, visitor: Shopper, product_id: str) -> Record:
    """Return a product that the visitor's store shows. Raises product_not_found."""
    row = await store.fetch(tx, PRODUCTS, product_id)
    product = None if row is None else Record(PRODUCTS, row)
    if product is None or not is_shown(product, visitor.store):
        message = "This store has no such product."
        raise Refusal("product_not_found", message, faults=[Fault("productId", "unknown", message)])
    return product


async def written(
    tx: Tx, customer_id: str, after: Place, most: int
) -> tuple[list[dict[str, Any]], Place | None]:
    """Return the next reviews of a customer for the export of personal data, the oldest first.

    The place is that of the last one; None when no more follow.
    """
    rows = await tx.all(_OF_CUSTOMER, customer_id, after.at, after.record_id, most)
    shown = [
        {
            "productId": row["product_id"], "product": row["name"], "stars": row["stars"],
            "text": row["text"], "status": row["status"],
            "createdAt": dates.show(row["created_at"]),
        }
        for row in rows
    ]  # fmt: skip
    return shown, Place(rows[-1]["created_at"], rows[-1]["id"]) if len(rows) == most else None


def _written_already() -> Refusal:
    message = "You have reviewed this product; this store takes one review each."
    return refusal([Fault("productId", "already_reviewed", message)])


def _too_many(visitor: Shopper, now: int, day: int) -> Refusal:
    begins = dates.begin(day + DAY, visitor.zone)
    return rate_limited(
        f"A customer may write {MOST_A_DAY} reviews a day; try again tomorrow.",
        (begins - now) / SECOND,
    )


MOST_BYTES = 4_194_304
"""Most bytes of texts that one request reads together."""
FEW = 200
"""The texts of this many reviews never exceed MOST_BYTES together."""


async def first_of_products(
    tx: Tx, product_ids: Sequence[str], request: SliceRequest
) -> Mapping[str, Slice]:
    """Return a slice of the published reviews of each product, the newest first.

    Raises query_too_complex above MOST_BYTES together.
    """
    args: list[Any] = [items(product_ids), request.limit + 1]
    position = slices.bounds(request, "r.created_at", True, args, "r.id")
    order = slices.order(request, "created_at", True)
    newest = (
        "select r.id as found from reviews r"
        " where r.product_id = p.product and r.status = 'published'"
        f"{position}{settled_rows.seen(REVIEWS, 'r')} order by {order} limit $2"
    )
    # SQLite has no LATERAL; with SQLite's form PostgreSQL would read all reviews.
    source = (
        "/*sqlite (select value as product from json_each($1)) as p"
        f" cross join reviews on reviews.id in ({newest})*/"
        "/*postgres json_array_elements_text(cast($1 as json)) as p (product)"
        f" cross join lateral ({newest}) as n join reviews on reviews.id = n.found*/"
    )
    if len(product_ids) * request.limit > FEW:
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
            records_of(REVIEWS, rows_of_product, tx.now, "UTC"),
            request,
            lambda record: Place(record.row[CREATED_AT], record.id),
        )
        for product_id, rows_of_product in by_product.items()
    }


async def totals_of_products(tx: Tx, product_ids: Sequence[str]) -> Mapping[str, tuple[int, int]]:
    """Return the number of published reviews of each product, and the sum of their stars."""
    rows = await tx.all(_TOTALS, items(product_ids))
    return {row["product_id"]: (row["n"], row["stars"]) for row in rows}


async def public(tx: Tx, ids: Sequence[str]) -> Mapping[str, Record]:
    """Return the published reviews with these ids, of active stores, by id."""
    rows = await store.fetch_whole(tx, REVIEWS, ids)
    reviews = records_of(REVIEWS, rows.values(), tx.now, "UTC")
    active = await stores.active(tx, [review["store_id"] for review in reviews])
    return {
        review.id: review
        for review in reviews
        if review["status"] == "published" and review["store_id"] in active
    }


_TOTALS = f"select product_id, n, stars from review_totals where product_id in {IDS}"
