"""Ends orders, and updates their stock, coupon and deal.

A payment and a cancellation lock the invoice first and then the order, so of two concurrent ones
the second finds that the order has ended.
"""

from collections.abc import Mapping
from typing import Any

from gateway.domain.sales import coupons, order_mails, unpaid
from gateway.domain.sales.deals import DEALS, closing
from gateway.domain.sales.order_mails import Kind
from gateway.domain.sales.orders import ORDERS
from gateway.records import actions, store
from gateway.records.audit import Actor
from gateway.records.record import Record, record_of
from outbox.database.transaction import Tx

MAILS: Mapping[str, Kind] = {
    "paid": "order_paid",
    "canceled": "order_canceled",
    "expired": "order_expired",
}
"""Status of an order that ended → the mail that tells the buyer."""


async def follow(tx: Tx, actor: Actor, invoice: Record) -> None:
    """End the pending order of an invoice that is now paid or canceled.

    Emits order.paid or order.canceled, and deal.updated when the deal changes.
    """
    if invoice["order_id"] is None or invoice["status"] not in ("paid", "canceled"):
        return
    order = await actions.own(tx, actor, ORDERS, invoice["order_id"], "write", lock=True)
    if order["status"] != "pending":
        return
    if invoice["status"] == "paid":
        after = await write(tx, actor, order, {"status": "paid", "paid_at": invoice["paid_at"]})
    else:
        values = {"status": "canceled", "reason": invoice["reason"]}
        after = await write(tx, actor, order, values)
    await conclude(tx, actor, after, before=order)


async def write(tx: Tx, actor: Actor, order: Record, values: dict[str, Any]) -> Record:
    """Store the new status of a pending order, which is locked."""
    if values["status"] != "paid":
        values["canceled_at"] = tx.now
    return await actions.update(tx, actor, order, values)


async def conclude(tx: Tx, actor: Actor, order: Record, *, before: Record) -> None:
    """Update the stock, the coupon and the deal of an order that ended, and tell the buyer.

    Emits the event with the name of its status, and deal.updated when the deal changes.
    """
    actions.announce(tx, order["status"], order, before=before)
    await order_mails.add(tx, order, MAILS[order["status"]])
    await unpaid.forget(tx, order.id)
    if order["status"] == "paid":
        await unpaid.commit(tx, order.id)
        await coupons.redeem(tx, order.id)
        deal = await _locked_deal(tx, actor, order)
        if deal is not None:
            await _change_deal(tx, actor, deal, {"status": "won", "probability": 100})
        return
    await unpaid.release(tx, order.id)
    await coupons.release(tx, order.id)
    deal = await _locked_deal(tx, actor, order)
    if deal is not None and deal["status"] == "open":
        ended = "expired" if order["status"] == "expired" else "was canceled"
        reason = f"The order {order['number']} {ended}."
        await _change_deal(tx, actor, deal, {"status": "lost", "lost_reason": reason})


async def _locked_deal(tx: Tx, actor: Actor, order: Record) -> Record | None:
    """Return the deal of an order, locked, if it still exists."""
    deal_id = order["deal_id"]
    row = None if deal_id is None else await store.fetch(tx, DEALS, deal_id, lock=True)
    return None if row is None else record_of(DEALS, row, tx.now, actor.zone)


async def _change_deal(tx: Tx, actor: Actor, deal: Record, values: Mapping[str, Any]) -> None:
    """Change the deal of an order that ended; emits deal.updated."""
    changes = actions.changes_of(deal, values)
    if changes:
        changes = closing(deal, changes, tx.now) | changes
        actions.announce(tx, "updated", await actions.update(tx, actor, deal, changes), before=deal)
