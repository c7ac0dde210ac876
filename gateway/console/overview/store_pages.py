"""The pages of stores, of their orders and of the reviews of their products."""

from aiohttp import web

from gateway.console.frame import pages, templates, wording
from gateway.console.frame.forms import Form
from gateway.console.frame.guard import Visitor
from gateway.console.frame.reader import READER
from gateway.console.frame.records import Section
from gateway.console.overview.order_pages import OrderSection
from gateway.domain.catalogue import CATALOGUE, Entry
from gateway.domain.sales import order_verbs
from gateway.domain.sales.orders import CANCEL_TAKES, ORDERS
from gateway.domain.storefront.catalogue.reviews import REVIEWS, STATUSES
from gateway.domain.storefront.stores.stores import STORES
from gateway.records import actions
from gateway.records.access import Actor
from gateway.records.draft import Draft, check
from gateway.records.errors import Refusal
from gateway.records.record import Record
from gateway.records.resource import Resource
from gateway.server.app_keys import DB
from outbox.database.transaction import Tx


def _entry(resource: Resource) -> Entry:
    [entry] = [entry for entry in CATALOGUE if entry.resource is resource]
    return entry


stores = Section(
    _entry(STORES), ("hostname", "name", "active", "createdAt"), "active", last=("idps",)
)
orders = OrderSection(
    _entry(ORDERS), ("number", "status", "name", "total", "storeId", "createdAt"), "status"
)
reviews = Section(
    _entry(REVIEWS), ("text", "stars", "productId", "author", "status", "createdAt"), "status"
)


async def cancel_page(request: web.Request, visitor: Visitor) -> web.StreamResponse:
    """Ask for confirmation before an order is canceled, and for the reason."""
    return await _cancel_page(request, visitor, "", {})


async def cancel(request: web.Request, visitor: Visitor, form: Form) -> web.StreamResponse:
    """Cancel a pending order."""
    order_id, reason = pages.id_of(request), form.text("reason").strip()
    draft = check(ORDERS, {"reason": reason} if reason else {}, takes=CANCEL_TAKES)
    try:
        await request.app[DB].write(order_verbs.cancel, visitor.actor, order_id, draft)
    except Refusal as refusal:
        if refusal.code == "invalid_transition":
            raise Refusal("conflict", "error.order_ended") from None
        if not refusal.faults:
            raise
        faults = wording.by_field(request[READER].texts, refusal.faults)
        return await _cancel_page(request, visitor, reason, faults)
    return pages.to(f"{orders.path}/{order_id}", "order_canceled")


async def publish(request: web.Request, visitor: Visitor, form: Form) -> web.StreamResponse:
    """Show a review in its store."""
    return await _moderate(request, visitor, form, "published")


async def reject(request: web.Request, visitor: Visitor, form: Form) -> web.StreamResponse:
    """Keep a review out of its store."""
    return await _moderate(request, visitor, form, "rejected")


async def _moderate(
    request: web.Request, visitor: Visitor, form: Form, status: str
) -> web.StreamResponse:
    review_id = pages.id_of(request)
    await request.app[DB].write(_set_status, visitor.actor, review_id, status)
    listed = form.text("list")
    where = f"{reviews.path}/{review_id}"
    if listed:
        where = f"{reviews.path}?status={listed if listed in STATUSES else ''}"
    return pages.to(where, f"review_{status}")


async def _set_status(tx: Tx, actor: Actor, review_id: str, status: str) -> Record:
    draft: Draft = check(REVIEWS, {"status": status})
    return await actions.change(tx, actor, REVIEWS, review_id, draft)


async def _cancel_page(
    request: web.Request, visitor: Visitor, reason: str, faults: dict[str, str]
) -> web.StreamResponse:
    order = await request.app[DB].read(actions.read, visitor.actor, ORDERS, pages.id_of(request))
    context = {"section": orders, "record": order, "reason": reason, "faults": faults}
    status = 400 if faults else 200
    return templates.render(request, visitor, "order_cancel.html", context, status=status)
