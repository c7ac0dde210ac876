"""Marks orders as paid, by their invoices; their stock, coupons and deals follow."""

from gateway.domain.sales import documents
from gateway.domain.sales.invoices import INVOICE, INVOICES
from gateway.domain.sales.orders import ORDERS
from gateway.records import actions
from gateway.records.audit import Actor
from gateway.records.record import Draft, Record
from outbox.database.transaction import Tx


async def locked(tx: Tx, actor: Actor, order_id: str) -> tuple[Record, Record]:
    """Return the invoice of an order and the order, locked in this order (see settlement).

    Raises not_found, forbidden.
    """
    unlocked = await actions.own(tx, actor, ORDERS, order_id, "write")
    invoice = await actions.own(tx, actor, INVOICES, unlocked["invoice_id"], "write", lock=True)
    return invoice, await actions.own(tx, actor, ORDERS, unlocked.id, "write", lock=True)


async def pay(tx: Tx, actor: Actor, order_id: str, draft: Draft) -> Record:
    """Mark the invoice of a pending order as paid; the draft takes PAY_TAKES of invoices.

    Without a method it is the one that the buyer chose. A paid order stays as it is. Emits
    invoice.paid, order.paid and deal.updated. Raises not_found, forbidden, the faults of the draft,
    invalid_transition.
    """
    invoice, order = await locked(tx, actor, order_id)
    draft.must_hold()
    if order["status"] == "paid":
        return order
    values = {"method": order["payment_method"], **draft.values}
    await documents.step(tx, actor, INVOICE, invoice.id, "paid", Draft(values=values))
    return await actions.read(tx, actor, ORDERS, order.id)
