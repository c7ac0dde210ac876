"""The page on which a customer reads a quote or an invoice, and accepts or declines a quote.

It needs no account: the token of the link opens it. It is in the language of the owner's account.
"""

from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

from aiohttp import web

from gateway import texts
from gateway.console.crm import printing
from gateway.console.layout import guard, templates
from gateway.console.layout.guard import Form, SignedIn
from gateway.console.layout.reader import READER
from gateway.domain.accounts.networks import share_of
from gateway.domain.sales import document_links, sending, sheets
from gateway.domain.sales.document_links import PATH, Opened
from gateway.domain.sales.sending import Decision
from gateway.domain.sales.sheets import Source
from gateway.records.errors import Refusal
from gateway.server.app_keys import CELLS, DB
from gateway.server.http.rate_limits import LIMITS
from outbox.database.transaction import Tx, belongs_to

HEADERS = {
    # Without a script, and nothing from elsewhere.
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; img-src 'self' data:; form-action 'self'; "
        "base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Robots-Tag": "noindex",
}
FILE_WEIGHT = 5
"""The pages that a file counts as: it takes a thread for up to a tenth of a second."""
DECISIONS: dict[str, Decision] = {"accept": "accept", "decline": "reject"}


async def show(request: web.Request, visitor: SignedIn) -> web.StreamResponse:
    """Show the document of a link."""
    _count(request)
    token = request.query.get("token", "")
    return await _page(request, visitor, token, await _open(request, token))


async def file(request: web.Request, visitor: SignedIn) -> web.StreamResponse:
    """Send the PDF file of the document of a link."""
    _count(request, FILE_WEIGHT)
    token = request.query.get("token", "")
    opened = await _open(request, token)
    if opened is None:
        return await _page(request, visitor, token, None)
    source = await request.app[DB].read(_read, opened)
    response = await printing.pdf_response(request, sheets.written(source, request[READER].texts))
    response.headers.update(HEADERS)
    return response


async def decide(request: web.Request, visitor: SignedIn, form: Form) -> web.StreamResponse:
    """Accept or decline the quote of a link; the first decision counts."""
    try:
        request.app[LIMITS].count("form", share_of(guard.client_of(request).address))
    except Refusal as slow:
        raise Refusal("rate_limited", "error.slowed_help", facts=slow.facts) from None
    token = form.text("token")
    decision = DECISIONS.get(form.text("decision"))
    opened = await _open(request, token)
    if opened is None or opened.resource != "quote" or decision is None:
        return await _page(request, visitor, token, None)
    if not await request.app[DB].write(sending.decide, opened, decision):
        return await _page(request, visitor, token, opened, late=True)
    # What stands behind the mark of a token is anybody's text.
    where = f"{PATH}?{urlencode({'token': token})}"
    return web.Response(status=303, headers={"Location": where, **HEADERS})


def _count(request: web.Request, pages: int = 1) -> None:
    """Count pages of the address. Raise rate_limited."""
    try:
        request.app[LIMITS].visit(None, share_of(guard.client_of(request).address), pages)
    except Refusal as slow:
        raise Refusal("rate_limited", "error.slowed_help", facts=slow.facts) from None


async def _open(request: web.Request, token: str) -> Opened | None:
    """Return what a token opens, and read in the language of its owner from here on.

    Raise misdirected when the account is in another cell.
    """
    opened = await request.app[DB].read(document_links.opened, token)
    if opened is None:
        elsewhere = await request.app[CELLS].of_credential(token)
        if elsewhere is not None:
            raise elsewhere
        return None
    belongs_to(opened.owner_id)
    if opened.language is not None:
        request[READER] = replace(request[READER], texts=texts.of(opened.language))
    return opened


async def _read(tx: Tx, opened: Opened) -> Source:
    resource = sheets.DOCUMENTS[opened.resource]
    return await sheets.read(tx, sending.customer_of(opened), resource, opened.record_id)


async def _page(
    request: web.Request,
    visitor: SignedIn,
    token: str,
    opened: Opened | None,
    *,
    late: bool = False,
) -> web.StreamResponse:
    """Show a document; `late`: the decision came after another one, or after the quote's end."""
    context: dict[str, Any] = {
        "token": token,
        "sheet": None,
        "late": late,
        "status": "",
        "decides": False,
    }
    if opened is not None:
        source = await request.app[DB].read(_read, opened)
        sheet = sheets.written(source, request[READER].texts)
        status = str(source.document["status"])
        context |= {
            "sheet": sheet,
            "qr": printing.qr_of(sheet),
            "status": status,
            "decides": opened.resource == "quote" and status == "sent",
        }
    code = 409 if late else 200 if opened is not None else 404
    response = templates.render(request, visitor, "customer_document.html", context, status=code)
    response.headers.update(HEADERS)
    return response
