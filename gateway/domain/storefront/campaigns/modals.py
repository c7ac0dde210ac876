"""Declares discount modals. `modal_coupons` has their coupons."""

from collections.abc import Mapping, Sequence

from gateway.domain.sales import discounts
from gateway.domain.storefront.visitors.visitor import Visitor
from gateway.records import actions, store
from gateway.records.access import Actor
from gateway.records.derived import global_id_of
from gateway.records.draft import Draft
from gateway.records.record import Record, record_of
from gateway.records.resource import (
    BY_TIME,
    Field,
    Filter,
    Reference,
    Remove,
    Resource,
)
from gateway.records.values import formats, numbers
from outbox.database.sql import IDS, items
from outbox.database.transaction import Tx

DISCOUNT_MODALS = Resource(
    noun="discount modal",
    plural="discount-modals",
    table="discount_modals",
    description="A form of the storefront that gives each visitor a coupon for their data.",
    fields=(
        Field(
            "storeId", "store_id", formats.id_of("store"), "The store that shows it.",
            "018f3a5b7c9d1e2f3a4b5c70", required=True, on_update=False,
            reference=Reference("store", "stores", owns=True),
        ),
        Field("title", "title", formats.title(), "Title.", "10% off", required=True),
        Field(
            "prefix", "prefix", formats.code(40), "Begin of its codes, as in WELCOME-7K3M9QXW.",
            "WELCOME", required=True,
        ),
        *discounts.fields("discount modal"),
        Field(
            "validDays", "valid_days", numbers.integer(1, 365),
            "Days for which its coupons are valid.", 30, default=30,
        ),
        Field(
            "active", "active", formats.boolean(), "Whether the storefront shows it.", True,
            default=True,
        ),
    ),
    events={},
    search=("title",),
    sorts=BY_TIME,
    filters=(
        Filter("storeId", "store_id = {}", "id", "Only discount modals of this store."),
        Filter(
            "active", "active = {}", "boolean", "Only active (true) or inactive discount modals."
        ),
    ),
    derived=(global_id_of("DiscountModal"),),
    cascades=(Remove("modal_coupons", "modal_id", counted=False),),
)  # fmt: skip


async def create(tx: Tx, actor: Actor, draft: Draft) -> Record:
    """Create a discount modal. Raises forbidden, the faults of the draft."""
    actor.must("write")
    faults = discounts.rules("discount modal", {}, draft)
    values = await actions.check(tx, actor, DISCOUNT_MODALS, draft, faults=faults)
    return await actions.insert(tx, actor, DISCOUNT_MODALS, values)


async def change(
    tx: Tx, actor: Actor, record_id: str, draft: Draft, expected: frozenset[str] | None = None
) -> Record:
    """Change a discount modal; issued coupons stay as they are. See actions.change."""
    before = await actions.own(tx, actor, DISCOUNT_MODALS, record_id, "write", lock=True)
    faults = discounts.rules("discount modal", before.stored, draft)
    values = await actions.check(tx, actor, DISCOUNT_MODALS, draft, before, faults)
    actions.must_match(before, expected)
    changes = actions.changes_of(before, values)
    return await actions.update(tx, actor, before, changes) if changes else before


_NEWEST = """
select id from discount_modals where owner_id = $1 and store_id = $2 and active
order by created_at desc, id desc limit 1
"""


async def shown(tx: Tx, visitor: Visitor, modal_id: str | None) -> Record | None:
    """Return the store's active modal with this id, or its newest one without an id, or None."""
    if modal_id is None:
        row = await tx.one(_NEWEST, visitor.store.owner_id, visitor.store.id)
        if row is None:
            return None
        modal_id = row["id"]
    assert modal_id is not None, "a row has an id"
    found = await store.fetch(tx, DISCOUNT_MODALS, modal_id)
    if found is None:
        return None
    modal = record_of(DISCOUNT_MODALS, found, tx.now, visitor.zone)
    return modal if modal["store_id"] == visitor.store.id and modal["active"] else None


_PUBLIC = f"""
select m.id from discount_modals m join stores s on s.id = m.store_id
join users u on u.id = s.owner_id
where m.id in {IDS} and m.active and s.active and u.disabled_at is null
"""


async def public(tx: Tx, ids: Sequence[str]) -> Mapping[str, Record]:
    """Return those of the modals that are active in an active store, by id."""
    found = {}
    for row in await tx.all(_PUBLIC, items(ids)):
        kept = await store.fetch(tx, DISCOUNT_MODALS, row["id"])
        if kept is not None:
            found[row["id"]] = record_of(DISCOUNT_MODALS, kept, tx.now, "UTC")
    return found
