"""What the pages of orders have of their own: late payments, and the end of many at once."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from aiohttp import web
from msgspec import json

from gateway.console.layout import pages, templates
from gateway.console.layout.guard import Form, SignedIn
from gateway.console.records import verbs
from gateway.console.records.page_parts import Parts
from gateway.domain.sales import order_payments, order_verbs
from gateway.domain.sales.invoices import INVOICES, PAY_TAKES
from gateway.domain.sales.orders import CANCEL_TAKES, ORDERS
from gateway.records import actions
from gateway.records.audit import Actor
from gateway.records.errors import Refusal
from gateway.records.record import Draft, Record, check
from gateway.server.app_keys import DB
from outbox.database.transaction import Tx
from outbox.ids import is_id

MOST = 100
"""Orders that one form pays or cancels."""
Act = Literal["pay", "cancel"]
ACTS: tuple[Act, ...] = ("pay", "cancel")


async def _late(tx: Tx, actor: Actor, order: Record) -> Mapping[str, Any]:
    """Return the payments of an order that came late."""
    late: Sequence[Mapping[str, Any]] = ()
    if order["late_payment_at"] is not None:
        invoice = await actions.read(tx, actor, INVOICES, order["invoice_id"])
        late = json.decode(invoice["late_payments"])
    return {"late": late}


ORDER_PARTS = Parts(
    columns=("number", "status", "name", "total", "storeId", "createdAt"),
    tabs="status", live=True, list_acts="parts/order_list_acts.html",
    more_tabs="parts/order_tabs.html", tags="parts/order_tags.html",
    selection="parts/order_selection.html",
    above="parts/order_late.html", more=_late, left_out=("latePaymentAt",),
    links={"customerId": "clients"},
)  # fmt: skip


async def selected(request: web.Request, visitor: SignedIn, form: Form) -> web.StreamResponse:
    """Ask for confirmation, then mark the selected orders as paid, or cancel them.

    The fields: `order` (repeated), `act` (pay or cancel), `list` (the query of the list) and, from
    the page that asks, `confirmed`. Each order is a transaction, so one that ended meanwhile stays
    as it is and the others go on.
    """
    ids = list(dict.fromkeys(one.lower() for one in form.all("order")))
    act = next((one for one in ACTS if one == form.text("act")), None)
    back = verbs.list_at(ORDERS, form.text("list"))
    if act is None or not all(map(is_id, ids)):
        raise Refusal("not_found", "error.not_found_help")
    if len(ids) > MOST:
        raise Refusal("validation_error", f"Select at most {MOST} page at a time.")
    if not ids:
        return pages.to(back, "orders_none")
    page = await request.app[DB].read(actions.some, visitor.actor, ORDERS, ids)
    if len(page.records) != len(ids):
        raise Refusal("not_found", "error.not_found_help")
    if not form.text("confirmed"):
        context = {
            "orders": page.records, "act": act, "back": back, "list": form.text("list"),
            "sum": sum(order["total"] for order in page.records) / 100,
        }  # fmt: skip
        return templates.render(request, visitor, "orders_selected.html", context)
    done = 0
    for order_id in ids:
        done += await _act(request, visitor.actor, act, order_id)
    word = {"pay": "paid", "cancel": "canceled"}[act]
    return pages.to(back, f"orders_{word}" if done == len(ids) else f"orders_{word}_some")


async def _act(request: web.Request, actor: Actor, act: Act, order_id: str) -> bool:
    """Pay or cancel one order; return False when it is not pending any more."""
    takes = {"pay": PAY_TAKES, "cancel": CANCEL_TAKES}[act]
    unit = order_payments.pay if act == "pay" else order_verbs.cancel
    draft: Draft = check(INVOICES, {}, takes=takes)
    try:
        await request.app[DB].write(unit, actor, order_id, draft)
    except Refusal as refusal:
        if refusal.code != "invalid_transition":
            raise
        return False
    return True
