"""The images on the page of a product: upload one, make one the first, remove one."""

from aiohttp import web

from gateway.console.layout import pages, wording
from gateway.console.layout.guard import Form, SignedIn
from gateway.console.layout.reader import READER
from gateway.console.records.view_page import View
from gateway.domain.sales import products
from gateway.domain.sales.products import PRODUCTS
from gateway.records import actions
from gateway.records.errors import Refusal
from gateway.server.app_keys import DB
from gateway.server.http.multipart import Upload
from gateway.server.images.images import IMAGES

SHOWN = ("validation_error", "conflict", "payload_too_large", "rate_limited", "unavailable")
"""Refusals that the page of the product shows."""


async def add(
    view: View, request: web.Request, visitor: SignedIn, form: Upload
) -> web.StreamResponse:
    """Add the image in the field `file`, with the alternative text in the field `alt` before it."""
    actor, db, product_id = visitor.actor, request.app[DB], pages.id_of(request)
    await db.read(actions.own, actor, PRODUCTS, product_id, "write")
    alt = form.fields.get("alt", "").strip()
    try:
        url, _ = await request.app[IMAGES].receive(actor.owner_id, form.pieces)
        await db.write(products.add_image, actor, product_id, url, alt)
    except Refusal as refusal:
        if refusal.code not in SHOWN or refusal.message.startswith("error."):
            raise
        # A browser reads the response only after it has sent the whole file.
        async for _ in form.pieces:
            pass
        fault = wording.refused(request[READER].texts, refusal)
        return await view.again(request, visitor, {"image_fault": fault, "image_alt": alt})
    return pages.to(f"/console/products/{product_id}", "image_added")


async def place(request: web.Request, visitor: SignedIn, form: Form) -> web.StreamResponse:
    """Make the image `url` the first or remove it, as the field `act` says."""
    product_id, first = pages.id_of(request), form.text("act") == "first"
    await request.app[DB].write(
        products.place_image, visitor.actor, product_id, form.text("url"), first=first
    )
    return pages.to(f"/console/products/{product_id}", "saved" if first else "image_removed")
