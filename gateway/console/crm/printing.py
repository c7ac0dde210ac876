"""A quote or an invoice as a sheet of paper for the customer, on a page and as a PDF file."""

import asyncio

import segno
from aiohttp import web
from markupsafe import Markup

from gateway.console.layout import pages, templates
from gateway.console.layout.guard import SignedIn
from gateway.console.layout.reader import READER
from gateway.domain.sales import sheet_pdf, sheets
from gateway.domain.sales.sheets import Sheet
from gateway.records.resource import Resource
from gateway.server.app_keys import DB
from gateway.server.http.account_turns import WRITING, turn


async def show(resource: Resource, request: web.Request, visitor: SignedIn) -> web.StreamResponse:
    """Show the sheet of a document."""
    record_id = pages.id_of(request)
    source = await request.app[DB].read(sheets.read, visitor.actor, resource, record_id)
    sheet = sheets.written(source, request[READER].texts)
    context = {
        "sheet": sheet, "qr": qr_of(sheet), "kind": resource.noun, "many": resource.plural,
        "here": f"/console/{resource.plural}/{source.document.id}",
    }  # fmt: skip
    return templates.render(request, visitor, "print.html", context)


async def file(resource: Resource, request: web.Request, visitor: SignedIn) -> web.StreamResponse:
    """Send the PDF file of a document."""
    record_id = pages.id_of(request)
    source = await request.app[DB].read(sheets.read, visitor.actor, resource, record_id)
    return await pdf_response(request, sheets.written(source, request[READER].texts))


async def pdf_response(request: web.Request, sheet: Sheet) -> web.Response:
    """Return the PDF file of a sheet as a response."""
    async with turn(request, WRITING):
        body = await asyncio.to_thread(sheet_pdf.pdf_of, sheet)
    name = "".join(c if c.isascii() and (c.isalnum() or c in "-_.") else "_" for c in sheet.number)
    headers = {"Content-Disposition": f'inline; filename="{name}.pdf"'}
    return web.Response(body=body, content_type="application/pdf", headers=headers)


def qr_of(sheet: Sheet) -> Markup:
    """Return the drawing of the Pix code of a sheet, empty without one."""
    if not sheet.pix:
        return Markup()
    drawn = segno.make(sheet.pix, error="m", micro=False).svg_inline(
        scale=4, border=4, dark="#000", light="#fff", title=sheet.pix_label, svgclass=None,
        lineclass=None, omitsize=True,
    )  # fmt: skip
    # The library escapes the title; all else that it writes is numbers.
    return Markup(drawn)  # noqa: S704 - the library escapes it
