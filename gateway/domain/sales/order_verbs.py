"""Cancels and expires orders; their invoices, stock, coupons and deals follow."""

from gateway.domain.accounts import users
from gateway.domain.sales import documents, order_ends
from gateway.domain.sales.documents import check_transition
from gateway.domain.sales.invoices import INVOICE, INVOICES
from gateway.domain.sales.orders import EXPIRED, ORDERS, TRANSITIONS
from gateway.records import actions
from gateway.records.audit import Actor
from gateway.records.record import Draft, Record
from outbox.database.moving_owners import is_here
from outbox.database.transaction import Tx


async def cancel(tx: Tx, actor: Actor, record_id: str, draft: Draft) -> Record:
    """Cancel a pending order; the draft takes CANCEL_TAKES. A canceled one stays as it is.

    Emits invoice.updated, order.canceled and deal.updated. Raises not_found, forbidden, the faults
    of the draft, invalid_transition.
    """
    unlocked = await actions.own(tx, actor, ORDERS, record_id, "write")
    draft.must_hold()
    invoice, order = await _lock(tx, actor, unlocked)
    if order["status"] == "canceled":
        return order
    check_transition("order", TRANSITIONS, order["status"], "canceled")
    return await _end(tx, actor, invoice, order, "canceled", draft.values.get("reason"))


_EXPIRING = f"""
select id, owner_id from orders
where status = 'pending' and expires_at <= $1 and {is_here("orders.owner_id")}
order by expires_at limit $2
"""


async def expire(tx: Tx, limit: int) -> int:
    """Expire up to `limit` pending orders whose time has passed; return how many it looked at.

    Emits invoice.updated, order.expired and deal.updated for each. Run it with a limit of one, so
    that each transaction locks the products of one order, in the order of their ids.
    """
    rows = await tx.all(_EXPIRING, tx.now, limit)
    for row in rows:
        owner_id = row["owner_id"]
        zone = await users.zone_of(tx, owner_id)
        system = Actor(owner_id, "system", zone=zone, cause="expiry")
        unlocked = await actions.own(tx, system, ORDERS, row["id"], "write")
        invoice, order = await _lock(tx, system, unlocked)
        # The lock may have waited for a payment or a cancellation.
        if order["status"] == "pending":
            await _end(tx, system, invoice, order, "expired", EXPIRED)
    return len(rows)


async def _lock(tx: Tx, actor: Actor, unlocked: Record) -> tuple[Record, Record]:
    """Return the invoice of an order and the order; lock the invoice first, see settlement."""
    invoice = await actions.own(tx, actor, INVOICES, unlocked["invoice_id"], "write", lock=True)
    return invoice, await actions.own(tx, actor, ORDERS, unlocked.id, "write", lock=True)


async def _end(
    tx: Tx, actor: Actor, invoice: Record, order: Record, status: str, reason: str | None
) -> Record:
    """End a pending order unpaid, with its invoice, and return it."""
    after = await order_ends.write(tx, actor, order, {"status": status, "reason": reason})
    if invoice["status"] == "pending":
        values = Draft(values={"reason": reason})
        await documents.step(tx, actor, INVOICE, invoice.id, "canceled", values)
    await order_ends.conclude(tx, actor, after, before=order)
    return after
