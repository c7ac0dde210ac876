"""Declares discount modals, and issues their coupons for the data of visitors, one per email.

A coupon outlives its modal, and stays bound to the email: the row of `modal_coupons` that binds it
goes with the coupon, not with the modal.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from gateway.domain.contacts import upsert
from gateway.domain.sales import discounts
from gateway.domain.sales.coupons import COUPONS
from gateway.domain.storefront.campaigns.leads import LEAD
from gateway.domain.storefront.visitors.shopper import Shopper
from gateway.records import actions, audit, store
from gateway.records.audit import Actor
from gateway.records.derived import global_id_of
from gateway.records.errors import Fault, Refusal
from gateway.records.record import Draft, Record, check, record_of
from gateway.records.resource import BY_TIME, Field, Filter, Reference, Resource
from gateway.records.values import emails, formats, numbers
from gateway.records.values.folding import filled, without_case
from outbox.database.index_plans import by_index
from outbox.database.sql import IDS, items
from outbox.database.transaction import Tx
from outbox.durations import DAY

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


async def shown(tx: Tx, visitor: Shopper, modal_id: str | None) -> Record | None:
    """Return the store's active modal with this id, or its newest one without an id, or None."""
    if modal_id is None:
        newest = await tx.one(_NEWEST, visitor.store.owner_id, visitor.store.id)
        if newest is None:
            return None
        modal_id = str(newest["id"])
    row = await store.fetch(tx, DISCOUNT_MODALS, modal_id)
    if row is None:
        return None
    modal = record_of(DISCOUNT_MODALS, row, tx.now, visitor.zone)
    return modal if modal["store_id"] == visitor.store.id and modal["active"] else None


_PUBLIC = f"""
select m.id from discount_modals m join stores s on s.id = m.store_id
join users u on u.id = s.owner_id
where m.id in {IDS} and m.active and s.active and u.disabled_at is null
"""


async def public(tx: Tx, ids: Sequence[str]) -> Mapping[str, Record]:
    """Return those of the modals that are active in an active store, by id."""
    active = [row["id"] for row in await tx.all(_PUBLIC, items(ids))]
    rows = await store.fetch_whole(tx, DISCOUNT_MODALS, active)
    return {key: record_of(DISCOUNT_MODALS, row, tx.now, "UTC") for key, row in rows.items()}


KEPT = 30 * DAY
"""How long an issued coupon is stored after its end, if nobody used it."""
TAG = "discount-modal"
TAKES = ("name", "email", "phone")
DIGITS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
"""Crockford's base 32, which has no letter that looks like a digit."""
CODE_LENGTH = 8
CODE_BYTES = 5
"""Random bytes of a code: 5 bits for each of its digits."""


def code_of(prefix: str, random: bytes) -> str:
    """Return the coupon code of CODE_BYTES random bytes."""
    number = int.from_bytes(random, "big")
    digits = "".join(DIGITS[number >> 5 * index & 31] for index in reversed(range(CODE_LENGTH)))
    return f"{prefix}-{digits}"


async def save_user_data(
    tx: Tx, visitor: Shopper, modal_id: str, sent: Mapping[str, Any], random: Sequence[bytes]
) -> str:
    """Save the data of a visitor as a contact of the owner; return the code of their coupon.

    The same email gets the same code again. It uses the first code of `random` that is free in the
    store. Raises discount_modal_not_found, the faults of the values.
    """
    draft = check(LEAD, filled(sent), creating=True, takes=TAKES)
    modal = await shown(tx, visitor, modal_id)
    if modal is None:
        message = "The store has no such discount modal."
        raise Refusal(
            "discount_modal_not_found",
            message,
            faults=[Fault("discountModalId", "unknown", message)],
        )
    draft.must_hold()
    values = draft.values
    holders = emails.holders(values["email"])
    earlier = await _issued(tx, modal, holders)
    issued = earlier or await _issue(tx, visitor, modal, holders, random)
    contact = await upsert.upsert(
        tx,
        visitor.actor,
        upsert.ContactDetails(
            email=values["email"], name=values.get("name"), phone=values.get("phone"), tags=[TAG]
        ),
    )
    if earlier is None:
        metadata = {
            "storeId": visitor.store.id,
            "hostname": visitor.store["hostname"],
            "discountModalId": modal.id,
            "couponCode": issued,
        }
        # The contact may keep other values.
        metadata |= {name: draft.sent[name] for name in ("name", "phone") if name in draft.sent}
        text = f"Lead: discount modal {modal['title']}"
        await upsert.note(tx, visitor.actor, contact.id, text, metadata)
    return issued


_ISSUED = "select code from modal_coupons where modal_id = $1 and holder in ($2, $3)"
_ISSUE = """
insert into modal_coupons (id, owner_id, modal_id, holder, code) values ($1, $2, $3, $4, $5)
on conflict (modal_id, holder) do nothing
"""
ISSUING = """
(with recursive issuing (id) as (
  select min(modal_id) from modal_coupons where owner_id = $1
  union all
  select (select min(modal_id) from modal_coupons where owner_id = $1 and modal_id > issuing.id)
  from issuing where issuing.id is not null)
select id from issuing where id is not null)
"""
"""The modals of the owner $1 that have issued coupons, also those deleted since; it takes one step
in the index for each."""
_TAKEN = "select value from coupon_codes where store_id = $1 and value = $2"


async def _issued(tx: Tx, modal: Record, holders: tuple[bytes, bytes]) -> str | None:
    row = await tx.one(_ISSUED, modal.id, *holders)
    return None if row is None else row["code"]


async def _issue(
    tx: Tx, visitor: Shopper, modal: Record, holders: tuple[bytes, bytes], random: Sequence[bytes]
) -> str:
    """Create the coupon of an email and return its code."""
    text = await _free(tx, modal, random)
    coupon = await actions.insert(
        tx, visitor.actor, COUPONS,
        {
            "store_id": visitor.store.id, "code": text, "modal_id": modal.id, "max_uses": 1,
            "discount_percentage": modal["discount_percentage"],
            "discount_value": modal["discount_value"], "uses": 0, "active": True,
            "ends_at": tx.now + modal["valid_days"] * DAY,
        },
    )  # fmt: skip
    if await tx.run(_ISSUE, coupon.id, coupon.owner_id, modal.id, holders[0], text):
        return text
    # Another request with the same email came first; the insert waited for it.
    await store.delete(tx, COUPONS, coupon.row)
    audit.record(tx, visitor.actor, "deleted", COUPONS.noun, coupon.id)
    first = await _issued(tx, modal, holders)
    if first is None:
        raise Refusal("conflict", "The coupon of this email is being deleted; try again.")
    return first


async def _free(tx: Tx, modal: Record, random: Sequence[bytes]) -> str:
    for number in random:
        text = code_of(modal["prefix"], number)
        if await tx.one(_TAKEN, modal["store_id"], without_case(text)) is None:
            return text
    raise Refusal("unavailable", "No code is free; try again.", facts={"retry_after": 1})


_PURGE = """
delete from coupons where id in (
  select id from coupons where modal_id is not null and uses = 0 and ends_at < $1
  order by ends_at limit $2)
returning id, owner_id
"""


async def purge_coupons(tx: Tx, limit: int) -> int:
    """Delete up to `limit` unused coupons of modals that ended KEPT ago; return how many."""
    await by_index(tx)
    rows = await tx.all(_PURGE, tx.now - KEPT, limit)
    owners: dict[str, Counter[int]] = {}
    for row in rows:
        system = Actor(row["owner_id"], "system", cause="expiry")
        audit.record(tx, system, "deleted", COUPONS.noun, row["id"])
        owners.setdefault(row["owner_id"], Counter())[store.slot(row["id"])] -= 1
    for owner_id in sorted(owners):
        store.tally(tx, owner_id, COUPONS.table, owners[owner_id])
    return len(rows)
