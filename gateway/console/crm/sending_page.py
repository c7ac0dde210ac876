"""The page that sends a quote or an invoice: by mail with a PDF file, or as a link to copy."""

from aiohttp import web

from gateway.console.layout import error_pages, guard, pages, reveal, templates, wording
from gateway.console.layout.guard import Form, SignedIn
from gateway.console.layout.reader import READER
from gateway.domain.sales import document_links, sending, sheets
from gateway.domain.sales.quotes import QUOTES
from gateway.domain.sales.sheets import Source
from gateway.records.audit import Actor
from gateway.records.errors import Refusal
from gateway.records.resource import Resource
from gateway.records.values import formats
from gateway.records.values.formats import Wrong
from gateway.server.app_keys import CELLS, DB
from gateway.server.installation import SITE
from outbox.database.transaction import Tx

TOLD = ("invalid_transition", "conflict", "rate_limited")
"""Codes of refusals that the page says beside its form."""


async def show(resource: Resource, request: web.Request, visitor: SignedIn) -> web.StreamResponse:
    """Show how a document can be sent, and a link that was just made."""
    return await _page(resource, request, visitor)


async def send(
    resource: Resource, request: web.Request, visitor: SignedIn, form: Form
) -> web.StreamResponse:
    """Send a document by `mail` or `link`, `end` its links, or only mark it as sent."""
    db, actor, record_id = request.app[DB], visitor.actor, pages.id_of(request)
    here = f"/console/{resource.plural}/{record_id}"
    by, email = form.text("by"), form.text("email").strip()
    try:
        if by == "end":
            await db.write(sending.end_links, actor, resource, record_id)
            return pages.to(f"{here}/send", "links_ended")
        if by == "link":
            token = request.app[CELLS].marked(guard.new_token(request), actor.owner_id)
            await db.write(sending.link, actor, resource, record_id, token)
            where = f"{guard.origin_of(request)}{document_links.PATH}?token={token}"
            await reveal.later(request, visitor, f"link {record_id}", where)
            return pages.to(f"{here}/send")
        if by == "mail":
            if not request.app[SITE].sends_links:
                said = request[READER].texts("send.no_mail")
                return await _page(resource, request, visitor, email, said=said, status=409)
            formats.email().check(email)
            await db.write(sending.mail, actor, resource, record_id, email)
            return pages.to(here, f"{resource.noun}_mailed")
        await db.write(sending.mark, actor, resource, record_id)
    except Wrong as wrong:
        fault = wording.together(request[READER].texts, wrong.faults("email"))
        return await _page(resource, request, visitor, email, fault=fault, status=400)
    except Refusal as refusal:
        if refusal.code not in TOLD:
            raise
        status = error_pages.status_of(refusal)
        if status == 400:
            status = 409
        said = _told(request, refusal)
        return await _page(resource, request, visitor, email, said=said, status=status)
    return pages.to(here, f"{resource.noun}_send")


def _told(request: web.Request, refusal: Refusal) -> str:
    texts = request[READER].texts
    if refusal.code == "rate_limited":
        return texts("send.too_many")
    if refusal.code == "conflict":
        return texts("verb.quote.send.conflict")
    return texts("verb.not_now")


async def _page(
    resource: Resource,
    request: web.Request,
    visitor: SignedIn,
    email: str | None = None,
    *,
    said: str = "",
    fault: str = "",
    status: int = 200,
) -> web.StreamResponse:
    record_id = pages.id_of(request)
    source, links = await request.app[DB].read(_read, visitor.actor, resource, record_id)
    document = source.document
    known = source.contact["email"] if source.contact is not None else None
    context = {
        "document": document, "many": resource.plural, "noun": resource.noun,
        "here": f"/console/{resource.plural}/{document.id}",
        "email": known or "" if email is None else email, "said": said,
        "faults": {"email": fault} if fault else {}, "links": links,
        "sends": request.app[SITE].sends_links,
        "can_send": document["status"] in sending.SENT[resource.noun],
        "can_mark": resource is QUOTES and document["status"] == "draft",
        "link": await reveal.now(request, visitor, f"link {document.id}"),
        "days": document_links.DAYS,
    }  # fmt: skip
    return templates.render(request, visitor, "send.html", context, status=status)


async def _read(tx: Tx, actor: Actor, resource: Resource, record_id: str) -> tuple[Source, int]:
    source = await sheets.read(tx, actor, resource, record_id)
    return source, await document_links.count(tx, source.document.id)
