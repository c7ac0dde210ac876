"""Declares reviews of products, and creates them for customers.

Triggers keep the number of a product's published reviews and the sum of their stars.
"""

from collections.abc import Mapping
from typing import Any

from gateway.domain.contacts import upsert
from gateway.domain.contacts.contacts import CONTACTS
from gateway.domain.sales.products import PRODUCTS
from gateway.domain.storefront.catalogue.assortment import is_shown
from gateway.domain.storefront.visitors import customers
from gateway.domain.storefront.visitors.customers import CUSTOMERS
from gateway.domain.storefront.visitors.visitor import Visitor
from gateway.records import actions, store
from gateway.records.access import Actor
from gateway.records.derived import global_id_of
from gateway.records.draft import Draft, check, refusal
from gateway.records.errors import Fault, Refusal
from gateway.records.record import Record
from gateway.records.resource import Field, Filter, Form, Reference, Resource
from gateway.records.values import dates, formats, numbers
from outbox.database.transaction import Tx

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
_PURGE = """
delete from review_quotas where customer_id in (
  select customer_id from review_quotas where day < $1 order by day limit $2
  /*postgres for update skip locked*/
)
"""
_CLAIM = """
insert into review_claims (product_id, customer_id, record_id) values ($1, $2, $3)
on conflict (product_id, customer_id) do nothing
"""
_OF_CUSTOMER = """
select r.product_id, p.name, r.stars, r.text, r.status, r.created_at from reviews r
left join products p on p.id = r.product_id
where r.customer_id = $1 order by r.created_at, r.id
"""
_WRITTEN = "select 1 from reviews where customer_id = $1 and product_id = $2 limit 1"


async def create(tx: Tx, visitor: Visitor, product_id: str, sent: Mapping[str, Any]) -> Record:
    """Create a review by the customer of a product of the store.

    It locks the customer's count of the day. Raises unauthenticated, the faults of the values,
    product_not_found, validation_error for a second review in a store that allows one, and
    rate_limited.
    """
    owner_id = visitor.store.owner_id
    # Neither is deleted in this transaction.
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
        "author": customer["name"],
        "status": "pending" if visitor.store["review_moderation"] else "published",
    }
    made = await actions.insert(tx, visitor.actor, REVIEWS, values)
    if one_each and not await tx.run(_CLAIM, product_id, customer.id, made.id):
        raise _written_already()
    contact_id = customer["contact_id"]
    # Held, because the delete of a contact that comes later takes the note along.
    if contact_id and await store.owned_of(tx, CONTACTS.table, owner_id, [contact_id]):
        text = f"Review of {product['name']}, {made['stars']} of 5 stars: {made['text']}"
        metadata = {"reviewId": made.id, "productId": product_id}
        await upsert.note(tx, visitor.actor, contact_id, text, metadata)
    return made


async def change(
    tx: Tx, actor: Actor, record_id: str, draft: Draft, expected: frozenset[str] | None = None
) -> Record:
    """Publish or reject a review. See actions.change."""
    found = await actions.own(tx, actor, REVIEWS, record_id, "write")
    # The totals of a published review need its product, and a delete locks the product first.
    await store.owned_of(tx, PRODUCTS.table, actor.owner_id, [found["product_id"]])
    return await actions.change(tx, actor, REVIEWS, record_id, draft, expected)


async def shown(tx: Tx, visitor: Visitor, product_id: str) -> Record:
    """Return a product that the visitor's store shows. Raises product_not_found."""
    row = await store.fetch(tx, PRODUCTS, product_id)
    product = None if row is None else Record(PRODUCTS, row)
    if product is None or not is_shown(product, visitor.store):
        message = "This store has no such product."
        raise Refusal("product_not_found", message, faults=[Fault("productId", "unknown", message)])
    return product


async def export(tx: Tx, customer_id: str) -> list[dict[str, Any]]:
    """Return the reviews of a customer for the export of personal data, the oldest first."""
    return [
        {
            "productId": row["product_id"], "product": row["name"], "stars": row["stars"],
            "text": row["text"], "status": row["status"],
            "createdAt": dates.show(row["created_at"]),
        }
        for row in await tx.all(_OF_CUSTOMER, customer_id)
    ]  # fmt: skip


async def purge_quotas(tx: Tx, most: int) -> int:
    """Delete up to `most` counts of days that have ended in every time zone; return how many."""
    return await tx.run(_PURGE, tx.now - 2 * dates.DAY, most)


def _written_already() -> Refusal:
    message = "You have reviewed this product; this store takes one review each."
    return refusal([Fault("productId", "already_reviewed", message)])


def _too_many(visitor: Visitor, now: int, day: int) -> Refusal:
    begins = dates.begin(day + dates.DAY, visitor.zone)
    return Refusal(
        "rate_limited", f"A customer may write {MOST_A_DAY} reviews a day; try again tomorrow.",
        facts={"retry_after": max(1, -(-(begins - now) // 1_000_000))},
    )  # fmt: skip
