"""Issues the coupons of discount modals for the data of visitors, one for each email."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from gateway.domain.contacts import upsert
from gateway.domain.sales import discounts
from gateway.domain.sales.coupons import COUPONS
from gateway.domain.storefront.campaigns import modals
from gateway.domain.storefront.campaigns.leads import LEAD, filled
from gateway.domain.storefront.visitors.visitor import Visitor
from gateway.records import actions, store
from gateway.records.draft import check
from gateway.records.errors import Fault, Refusal
from gateway.records.record import Record
from gateway.records.values.folding import fold
from outbox.database.plans import by_index
from outbox.database.transaction import Tx

DAY = 86_400_000_000
KEPT = 30 * DAY
"""How long an issued coupon is stored after its end, if nobody used it."""
TAG = "discount-modal"
TAKES = ("name", "email", "phone")
DIGITS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
"""Crockford's base 32: no letter that looks like a digit."""
LENGTH = 8
RANDOM = 5
"""Random bytes of a code: 5 bits for each of its digits."""


def code(prefix: str, random: bytes) -> str:
    """Return the coupon code of RANDOM random bytes."""
    number = int.from_bytes(random, "big")
    digits = "".join(DIGITS[number >> 5 * place & 31] for place in reversed(range(LENGTH)))
    return f"{prefix}-{digits}"


async def save_user_data(
    tx: Tx, visitor: Visitor, modal_id: str, sent: Mapping[str, Any], random: Sequence[bytes]
) -> str:
    """Save the data of a visitor as a contact of the owner; return the code of their coupon.

    The same email gets the same code again. Of `random` the first code that is free in the store is
    used. Raises discount_modal_not_found, the faults of the values.
    """
    draft = check(LEAD, filled(sent), creating=True, takes=TAKES)
    modal = await modals.shown(tx, visitor, modal_id)
    if modal is None:
        message = "The store has no such discount modal."
        raise Refusal(
            "discount_modal_not_found", message,
            faults=[Fault("discountModalId", "unknown", message)],
        )  # fmt: skip
    draft.must_hold()
    values = draft.values
    holder = discounts.holder(values["email"])
    known = await _issued(tx, modal, holder)
    issued = known or await _issue(tx, visitor, modal, holder, random)
    contact = await upsert.upsert(
        tx, visitor.actor, email=values["email"], name=values.get("name"),
        phone=values.get("phone"), tags=[TAG],
    )  # fmt: skip
    if known is None:
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


_ISSUED = "select code from modal_coupons where modal_id = $1 and holder = $2"
_ISSUE = """
insert into modal_coupons (id, owner_id, modal_id, holder, code) values ($1, $2, $3, $4, $5)
on conflict (modal_id, holder) do nothing
"""
_TAKEN = "select value from coupon_codes where store_id = $1 and value = $2"


async def _issued(tx: Tx, modal: Record, holder: bytes) -> str | None:
    row = await tx.one(_ISSUED, modal.id, holder)
    return None if row is None else row["code"]


async def _issue(
    tx: Tx, visitor: Visitor, modal: Record, holder: bytes, random: Sequence[bytes]
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
    if await tx.run(_ISSUE, coupon.id, coupon.owner_id, modal.id, holder, text):
        return text
    # Another request with the same email came first; the insert waited for it.
    await store.delete(tx, COUPONS, coupon.row)
    first = await _issued(tx, modal, holder)
    if first is None:
        raise Refusal("conflict", "The coupon of this email is being deleted; try again.")
    return first


async def _free(tx: Tx, modal: Record, random: Sequence[bytes]) -> str:
    for each in random:
        text = code(modal["prefix"], each)
        if await tx.one(_TAKEN, modal["store_id"], fold(text)) is None:
            return text
    raise Refusal("unavailable", "No code is free; try again.", facts={"retry_after": 1})


_PURGE = """
delete from coupons where id in (
  select id from coupons where modal_id is not null and uses = 0 and ends_at < $1
  order by ends_at limit $2)
returning id, owner_id
"""


async def purge(tx: Tx, limit: int) -> int:
    """Delete up to `limit` unused coupons of modals that ended KEPT ago; return how many."""
    await by_index(tx)
    gone = await tx.all(_PURGE, tx.now - KEPT, limit)
    owners: dict[str, Counter[int]] = {}
    for row in gone:
        owners.setdefault(row["owner_id"], Counter())[store.slot(row["id"])] -= 1
    for owner_id in sorted(owners):
        store.tally(tx, owner_id, COUPONS.table, owners[owner_id])
    return len(gone)
