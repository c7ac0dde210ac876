"""What the pages of reviews have of their own: their moderation."""

from aiohttp import web

from gateway.console.frame import pages
from gateway.console.frame.forms import Form
from gateway.console.frame.guard import Visitor
from gateway.domain.storefront.catalogue.reviews import REVIEWS, STATUSES
from gateway.records import actions
from gateway.records.access import Actor
from gateway.records.draft import Draft, check
from gateway.records.record import Record
from gateway.server.app_keys import DB
from outbox.database.transaction import Tx

PATH = "/console/reviews"


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
    where = f"{PATH}/{review_id}"
    if listed:
        where = f"{PATH}?status={listed if listed in STATUSES else ''}"
    return pages.to(where, f"review_{status}")


async def _set_status(tx: Tx, actor: Actor, review_id: str, status: str) -> Record:
    draft: Draft = check(REVIEWS, {"status": status})
    return await actions.change(tx, actor, REVIEWS, review_id, draft)
