"""Records the payments that a provider reports: each once, on the order, or beside it when late."""

from dataclasses import dataclass

from msgspec import json

from gateway.domain.sales import order_payments
from gateway.domain.sales.orders import ORDERS
from gateway.records import actions
from gateway.records.audit import Actor
from gateway.records.errors import Fault, Refusal
from gateway.records.record import Draft, Record
from gateway.records.resource import Field, Form
from gateway.records.values import formats, numbers
from gateway.records.values.strictjson import dumps
from outbox.database.transaction import Tx

MOST_LATE = 1_000
PAYMENT = Form(
    noun="payment",
    description="A payment that the adapter of a provider reports.",
    fields=(
        Field(
            "orderNumber", "order_number", formats.title(40), "Number of the order.",
            "ORD-000001", required=True,
        ),
        Field(
            "amount", "amount", numbers.money(), "The paid amount in BRL: the total of the order.",
            175.5, required=True,
        ),
        Field(
            "reference", "reference", formats.title(200),
            "The provider's id of the payment, by which a repeated call is known.", "ch_2f6a91",
            required=True,
        ),
    ),
)  # fmt: skip

_ORDER = "select id from orders where owner_id = $1 and number = $2 and store_id = $3"
_KNOWN = "select order_id, amount, late from payments where store_id = $1 and reference = $2"
_KEEP = """
insert into payments (store_id, reference, order_id, amount, late, received_at)
values ($1, $2, $3, $4, $5, $6) on conflict do nothing
"""


@dataclass(frozen=True, slots=True)
class Reported:
    """The order after a report. `late`: it had ended, so the payment is noted on its invoice."""

    order: Record
    late: bool


async def report(tx: Tx, actor: Actor, store_id: str, draft: Draft) -> Reported:
    """Record a payment; its order and invoice become paid, unless they ended before.

    A repeat with the same reference changes nothing. A late payment is added to the invoice and
    flags the order. Emits what invoices.pay emits; for a late one invoice.updated. Raises the
    faults of the draft, not_found, validation_error for another amount than the order's, and
    conflict for a reference of another payment.
    """
    draft.must_hold()
    number, amount, reference = (draft.values[f.column] for f in PAYMENT.fields)
    row = await tx.one(_ORDER, actor.owner_id, number, store_id)
    if row is None:
        message = "There is no order with this number in the store."
        raise Refusal("not_found", message, faults=[Fault("orderNumber", "unknown", message)])
    invoice, order = await order_payments.locked(tx, actor, row["id"])
    known = await tx.one(_KNOWN, store_id, reference)
    if known is not None:
        if (known["order_id"], known["amount"]) != (order.id, amount):
            raise _taken()
        return Reported(order, bool(known["late"]))
    if amount != order["total"]:
        message = f"amount must be {numbers.show_money(order['total'])}, the total of the order."
        fault = Fault("amount", "disagrees", message)
        raise Refusal("validation_error", message, faults=[fault])
    # The owner may have entered this very payment by hand.
    entered = invoice["status"] == "paid" and invoice["reference"] == reference
    late = invoice["status"] != "pending" and not entered
    if not await tx.run(_KEEP, store_id, reference, order.id, amount, late, tx.now):
        # A concurrent call used it for another order.
        raise _taken()
    if late:
        order = await _note(tx, actor, invoice, order, reference, amount)
    elif not entered:
        paying = Draft(values={"reference": reference})
        order = await order_payments.pay(tx, actor, order.id, paying)
    return Reported(order, late)


async def settle(tx: Tx, actor: Actor, order_id: str) -> Record:
    """Take the flag of a late payment from an order; its invoice keeps the note.

    Raises not_found, forbidden.
    """
    order = await actions.own(tx, actor, ORDERS, order_id, "write", lock=True)
    if order["late_payment_at"] is None:
        return order
    return await actions.update(tx, actor, order, {"late_payment_at": None})


async def _note(
    tx: Tx, actor: Actor, invoice: Record, order: Record, reference: str, amount: int
) -> Record:
    """Add a late payment to the invoice, and flag and return the order."""
    # Whole milliseconds, as it is shown.
    moment = tx.now // 1000 * 1000
    noted = json.decode(invoice["late_payments"] or "[]")
    if len(noted) >= MOST_LATE:
        raise Refusal("conflict", f"The invoice has {MOST_LATE} late payments already.")
    noted.append({"reference": reference, "amount": amount, "receivedAt": moment})
    after = await actions.update(tx, actor, invoice, {"late_payments": dumps(noted)})
    actions.announce(tx, "updated", after, before=invoice)
    return await actions.update(tx, actor, order, {"late_payment_at": moment})


def _taken() -> Refusal:
    message = "This reference belongs to another payment; send the id of this one."
    return Refusal("conflict", message, faults=[Fault("reference", "taken", message)])
