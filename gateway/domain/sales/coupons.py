"""Declares coupons and counts their uses.

An order reserves a use, and its payment redeems it; a canceled or expired order releases it.
gateway.domain.sales.discounts computes the discount.
"""

from collections.abc import Mapping
from typing import Any

from gateway.domain.sales import discounts
from gateway.domain.sales.discounts import Discount
from gateway.records import actions
from gateway.records.audit import Actor
from gateway.records.errors import Fault, Refusal
from gateway.records.record import Draft, Record
from gateway.records.resource import BY_TIME, Field, Filter, Reference, Remove, Resource, Unique
from gateway.records.statements import changed_at
from gateway.records.values import dates, emails, formats, instants, numbers
from outbox.database.transaction import Tx
from outbox.durations import DAY

COUPONS = Resource(
    noun="coupon",
    plural="coupons",
    table="coupons",
    description="A code that gives a discount on the products of a cart.",
    fields=(
        Field(
            "storeId", "store_id", formats.id_of("store"), "The store that accepts it.",
            "018f3a5b7c9d1e2f3a4b5c70", required=True, on_update=False,
            reference=Reference("store", "stores", owns=True),
        ),
        Field(
            "code", "code", discounts.CODE,
            "Code, without blanks; unique in its store, whatever its case and accents.",
            "WELCOME10", required=True, unique=Unique("coupon_codes", "store", folded=True),
        ),
        *discounts.fields("coupon"),
        Field(
            "minTotal", "min_total", numbers.money(),
            "Least total of the products, in BRL, for which it applies.", 100,
        ),
        Field(
            "maxUses", "max_uses", numbers.integer(1, 1_000_000_000),
            "Number of orders that may use it.", 500,
        ),
        Field(
            "perCustomer", "per_customer", numbers.integer(1, 1_000_000_000),
            "Number of orders of one customer that may use it.", 1,
        ),
        Field(
            "startsAt", "starts_at", instants.moment(),
            "Time from which it applies; a date without a time is the begin of that day in the "
            "owner's time zone.",
            "2026-11-01T03:00:00.000Z",
        ),
        Field(
            "endsAt", "ends_at", instants.moment(),
            "Time at which it expires; a date without a time includes that day in the owner's time "
            "zone.",
            "2026-12-01T03:00:00.000Z",
        ),
        Field("active", "active", formats.boolean(), "Whether it applies.", True, default=True),
        Field(
            "uses", "uses", numbers.integer(0, 1_000_000_000),
            "Number of orders that use it, without canceled and expired ones.", 3,
            on_create=False, on_update=False, default=0, made=True,
        ),
        Field(
            "modalId", "modal_id", formats.id_of("discount modal"),
            "The discount modal that issued it.", "018f3a5b7c9d1e2f3a4b5c74",
            on_create=False, on_update=False,
        ),
    ),
    events={},
    search=("code",),
    sorts=BY_TIME,
    filters=(
        Filter("storeId", "store_id = {}", "id", "Only coupons of this store."),
        Filter("modalId", "modal_id = {}", "id", "Only coupons that this modal issued."),
        Filter("active", "active = {}", "boolean", "Only active (true) or inactive coupons."),
    ),
    cascades=(Remove("coupon_uses", "coupon_id", counted=False),),
)  # fmt: skip


async def create(tx: Tx, actor: Actor, draft: Draft) -> Record:
    """Create a coupon. Raises forbidden, the faults of the draft, conflict for a taken code."""
    actor.must("write")
    _settle(draft, actor.zone)
    values = await actions.check(tx, actor, COUPONS, draft, faults=rules({}, draft))
    return await actions.insert(tx, actor, COUPONS, values)


async def change(
    tx: Tx, actor: Actor, record_id: str, draft: Draft, expected: frozenset[str] | None = None
) -> Record:
    """Change a coupon. See actions.change; raises conflict for a taken code."""
    before = await actions.own(tx, actor, COUPONS, record_id, "write", lock=True)
    _settle(draft, actor.zone)
    values = await actions.check(tx, actor, COUPONS, draft, before, rules(before.stored, draft))
    actions.must_match(before, expected)
    changes = actions.changes_of(before, values)
    return await actions.update(tx, actor, before, changes) if changes else before


def _settle(draft: Draft, zone: str) -> None:
    """Make the period of a draft one of instants: from the begin of a day to the end of a day."""
    for column in ("starts_at", "ends_at"):
        value = draft.values.get(column)
        if isinstance(value, dates.Day):
            day = dates.Day(value.day + DAY) if column == "ends_at" else value
            draft.values[column] = min(day.begins(zone), dates.LAST)


def rules(before: Mapping[str, Any], draft: Draft) -> list[Fault]:
    """Return the faults of the fields that depend on each other; `before` by column."""
    faults = discounts.rules("coupon", before, draft)
    after = {**before, **draft.values}
    starts, ends = after.get("starts_at"), after.get("ends_at")
    if starts is not None and ends is not None and starts >= ends:
        field = "endsAt" if "endsAt" in draft.sent else "startsAt"
        faults.append(Fault(field, "disagrees", "startsAt must be before endsAt."))
    return faults


_TAKE = f"""
update coupons set uses = uses + 1, version = version + 1, {changed_at("$3")}
where id = $1 and store_id = $2 and active and (max_uses is null or uses < max_uses)
  and (starts_at is null or starts_at <= $3) and (ends_at is null or ends_at > $3)
returning code, per_customer, modal_id
"""
# The row of the coupon is locked by now, so no other use can come between the count and the insert.
_USE = """
insert into coupon_uses (id, owner_id, coupon_id, holder, customer_id, state, created_at)
select $1, $2, $3, $4, $5, 'reserved', $6
where cast($7 as bigint) is null or cast($7 as bigint) >
  (select count(*) from coupon_uses
    where coupon_id = $3 and (holder = $4 or holder = $8 or customer_id = $5))
"""
_BOUND = "select holder from modal_coupons where id = $1"
_USED = "select count(*) as n from coupon_uses where coupon_id = $1 and customer_id = $2"
_REDEEM = "update coupon_uses set state = 'redeemed' where id = $1 and state = 'reserved'"
_RELEASE = "delete from coupon_uses where id = $1 and state = 'reserved' returning coupon_id"
_GIVE_BACK = f"""
update coupons set uses = uses - 1, version = version + 1, {changed_at("$2")}
where id = $1 and uses > 0
"""


async def reserve(tx: Tx, actor: Actor, coupon_id: str, order_id: str, *, email: str) -> None:
    """Reserve a use of a coupon of the actor's store for an order of the customer with `email`.

    It locks the coupon, so carts and products are locked before. Raises coupon_usage_limit when no
    use is left, for all or for this customer, coupon_not_applicable when a modal issued it to
    another email, and the refusal of `discounts.must_apply` when the coupon ended meanwhile; the
    caller's transaction then fails.
    """
    row = await tx.one(_TAKE, coupon_id, actor.store_id, tx.now)
    if row is None:
        coupon = await discounts.by_id(tx, actor.store_id, coupon_id)
        if coupon is None:
            raise Refusal("coupon_not_found", "The coupon no longer exists.")
        discounts.must_run(coupon, tx.now)
        raise discounts.used_up(coupon.code)
    holders = emails.holders(email)
    if row["modal_id"] is not None:
        bound = await tx.one(_BOUND, coupon_id)
        if bound is not None and bytes(bound["holder"]) not in holders:
            raise discounts.of_another(row["code"])
    reserved = await tx.run(
        _USE, order_id, actor.owner_id, coupon_id, holders[0], actor.customer_id,
        tx.now, row["per_customer"], holders[1],
    )  # fmt: skip
    if not reserved:
        raise discounts.spent(row["code"])


async def must_be_left(tx: Tx, coupon: Discount, customer_id: str | None) -> None:
    """Raise coupon_usage_limit for a customer who has used the coupon as often as it allows.

    The email of a visitor is unknown before the order; `reserve` checks it then.
    """
    if coupon.per_customer is None or customer_id is None:
        return
    row = await tx.one(_USED, coupon.id, customer_id)
    if row is not None and row["n"] >= coupon.per_customer:
        raise discounts.spent(coupon.code)


async def redeem(tx: Tx, order_id: str) -> bool:
    """Make the reserved use of a paid order final; return whether there was one."""
    return await tx.run(_REDEEM, order_id) == 1


async def release(tx: Tx, order_id: str) -> bool:
    """Give back the reserved use of an order that ended unpaid; return whether there was one."""
    row = await tx.one(_RELEASE, order_id)
    if row is None:
        return False
    await tx.run(_GIVE_BACK, row["coupon_id"], tx.now)
    return True
