"""Carries the end of an order over to its stock, its coupon and its deal.

The invoice of an order leads: whoever pays or cancels locks the invoice first and then the order,
so of two at once one is first, and the other finds the order ended.
"""

from typing import Any

from gateway.domain.sales import coupons, order_deals, stock
from gateway.domain.sales.orders import ORDERS
from gateway.records import actions
from gateway.records.access import Actor
from gateway.records.record import Record
from outbox.database.transaction import Tx


async def follow(tx: Tx, actor: Actor, invoice: Record) -> None:
    """End the pending order of an invoice that is now paid or canceled.

    Emits deal.updated when the deal changes.
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
    await conclude(tx, actor, after)


async def write(tx: Tx, actor: Actor, order: Record, values: dict[str, Any]) -> Record:
    """Store the new status of a pending order, which is locked."""
    if values["status"] != "paid":
        values["canceled_at"] = tx.now
    return await actions.update(tx, actor, order, values)


async def conclude(tx: Tx, actor: Actor, order: Record) -> None:
    """Do what follows from the end of an order for its stock, its coupon and its deal."""
    if order["status"] == "paid":
        await stock.commit(tx, order.id)
        await coupons.redeem(tx, order.id)
        await order_deals.win(tx, actor, order["deal_id"])
        return
    await stock.release(tx, order.id)
    await coupons.release(tx, order.id)
    ended = "expired" if order["status"] == "expired" else "was canceled"
    reason = f"The order {order['number']} {ended}."
    await order_deals.lose(tx, actor, order["deal_id"], reason)
