"""Computes the discount of a coupon, and refuses a coupon that does not apply."""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from gateway.domain.sales.document_lines import half_up
from gateway.records.errors import Fault, Refusal
from gateway.records.record import Draft
from gateway.records.resource import Field
from gateway.records.values import dates, formats, numbers
from gateway.records.values.folding import without_case
from gateway.records.values.formats import Wrong
from outbox.database.transaction import Row, Tx

COLUMNS = (
    "id", "code", "discount_percentage", "discount_value", "min_total", "max_uses", "per_customer",
    "starts_at", "ends_at", "active", "uses",
)  # fmt: skip


CODE = formats.code(64)


class Discount(Struct, frozen=True):
    """The state of a coupon. Amounts are centavos, the percentage is in hundredths of a percent."""

    id: str
    code: str
    discount_percentage: int | None
    discount_value: int | None
    min_total: int | None
    max_uses: int | None
    per_customer: int | None
    starts_at: int | None
    ends_at: int | None
    active: bool
    uses: int

    def of(self, total: int) -> int:
        """Return the discount on products of this total: rounded half up, at most the total."""
        if self.discount_value is not None:
            return min(self.discount_value, total)
        return half_up(total * (self.discount_percentage or 0), numbers.WHOLE)


def fields(noun: str) -> tuple[Field, Field]:
    """Return the two fields for the discount; a coupon or a modal has exactly one of them."""
    return (
        Field(
            "discountPercentage", "discount_percentage", numbers.percentage(),
            f"Discount in percent of the products; a {noun} has this or discountValue.", 10,
        ),
        Field(
            "discountValue", "discount_value", numbers.money(1),
            f"Discount in BRL; a {noun} has this or discountPercentage.", None,
        ),
    )  # fmt: skip


def rules(noun: str, before: Mapping[str, Any], draft: Draft) -> list[Fault]:
    """Return the fault of a record without exactly one kind of discount; `before` by column."""
    if any(fault.field.startswith("discount") for fault in draft.faults):
        return []
    after = {**before, **draft.values}
    kinds = [n for n in ("discount_percentage", "discount_value") if after.get(n) is not None]
    if len(kinds) == 1:
        return []
    field = "discountValue" if "discountValue" in draft.sent else "discountPercentage"
    message = f"A {noun} has either discountPercentage or discountValue; null removes one."
    return [Fault(field, "disagrees" if kinds else "required", message)]


_BY_CODE = f"""
select {", ".join(COLUMNS)} from coupons
where id = (select record_id from coupon_codes where store_id = $1 and value = $2)
"""
_BY_ID = f"select {', '.join(COLUMNS)} from coupons where id = $1 and store_id = $2"


async def by_code(tx: Tx, store_id: str, code: str) -> Discount | None:
    """Return the store's coupon with this code, whatever its case, or None."""
    try:
        code = CODE.check(code.strip())
    except Wrong:
        return None
    row = await tx.one(_BY_CODE, store_id, without_case(code))
    return None if row is None else of_row(row)


async def by_id(tx: Tx, store_id: str | None, coupon_id: str) -> Discount | None:
    """Return the store's coupon with this id, or None."""
    row = await tx.one(_BY_ID, coupon_id, store_id)
    return None if row is None else of_row(row)


def must_run(discount: Discount, now: int) -> None:
    """Raise the refusal of a coupon that is inactive, expired, not yet valid, or used up."""
    code = discount.code
    if not discount.active:
        raise unknown(code)
    if discount.ends_at is not None and discount.ends_at <= now:
        raise _refusal("coupon_expired", f"The coupon {code} expired.")
    if discount.starts_at is not None and discount.starts_at > now:
        since = dates.show(discount.starts_at)
        raise _refusal("coupon_not_applicable", f"The coupon {code} applies from {since}.")
    if discount.max_uses is not None and discount.uses >= discount.max_uses:
        raise used_up(code)


def must_apply(discount: Discount, total: int, now: int) -> None:
    """Raise the refusal of a coupon that does not apply to products of this total."""
    must_run(discount, now)
    if discount.min_total is not None and total < discount.min_total:
        message = f"The coupon {discount.code} needs products of {discount.min_total} centavos."
        raise _refusal("coupon_not_applicable", message)


def unknown(code: str) -> Refusal:
    """Return the refusal of a code that is no active coupon of the store."""
    return _refusal("coupon_not_found", f"There is no coupon {code[:64]!r}.")


def used_up(code: str) -> Refusal:
    """Return the refusal of a coupon without uses left."""
    return _refusal("coupon_usage_limit", f"Every use of the coupon {code} is taken.")


def spent(code: str) -> Refusal:
    """Return the refusal of a coupon that this customer has used as often as it allows."""
    message = f"This customer has used the coupon {code} as often as it allows."
    return _refusal("coupon_usage_limit", message)


def of_another(code: str) -> Refusal:
    """Return the refusal of a coupon that a modal issued to another email."""
    message = f"The coupon {code} was issued to another email; order with the email that got it."
    return _refusal("coupon_not_applicable", message)


def _refusal(code: str, message: str) -> Refusal:
    return Refusal(code, message, faults=[Fault("code", code.removeprefix("coupon_"), message)])


def of_row(row: Row, prefix: str = "") -> Discount:
    """Return the coupon of a row whose columns begin with `prefix`."""
    return Discount(**{name: row[prefix + name] for name in COLUMNS})
