"""The settings of what quotes and invoices say about the company that sends them."""

from typing import Any

from aiohttp import web

from gateway.console.crm import settings_form
from gateway.console.crm.settings_form import Shown
from gateway.console.layout import pages, templates
from gateway.console.layout.guard import Form, SignedIn
from gateway.console.layout.reader import READER
from gateway.console.records import inputs
from gateway.console.records.typed_values import Typed
from gateway.domain.sales import company_settings, logos
from gateway.domain.sales.company_settings import COMPANY, PREFIXES, CompanySettings
from gateway.records.errors import Refusal
from gateway.records.values import masks
from gateway.server.app_keys import DB
from gateway.server.http.multipart import Upload
from gateway.server.images.images import IMAGES

PATH = "/console/settings/company"


async def show(request: web.Request, visitor: SignedIn) -> web.StreamResponse:
    """Show the settings."""
    settings = await request.app[DB].read(company_settings.read, visitor.actor)
    return await _page(request, visitor, Shown(_typed(settings), str(settings.version)))


async def save(request: web.Request, visitor: SignedIn, form: Form) -> web.StreamResponse:
    """Save the settings unless they have changed since the form was loaded."""
    shown = await settings_form.save(request, visitor, form, COMPANY, company_settings.change)
    if shown is None:
        return pages.to(PATH, "saved")
    return await _page(request, visitor, shown)


async def upload_logo(request: web.Request, visitor: SignedIn, form: Upload) -> web.StreamResponse:
    """Store the logo, smaller if needed, without the other data of its file."""
    data = b"".join([piece async for piece in form.pieces])
    try:
        logo = await logos.logo_of(request.app[IMAGES].encoder, visitor.actor.owner_id, data)
    except Refusal as refusal:
        if refusal.code != "validation_error":
            raise
        texts = request[READER].texts
        faults = {"logo": texts(f"company.logo_{refusal.faults[0].code}")}
        settings = await request.app[DB].read(company_settings.read, visitor.actor)
        shown = Shown(_typed(settings), str(settings.version), faults, 400)
        return await _page(request, visitor, shown)
    await request.app[DB].write(company_settings.set_logo, visitor.actor, logo)
    return pages.to(PATH, "saved")


async def remove_logo(request: web.Request, visitor: SignedIn, form: Form) -> web.StreamResponse:
    """Remove the logo."""
    await request.app[DB].write(company_settings.set_logo, visitor.actor, None)
    return pages.to(PATH, "saved")


def _typed(settings: CompanySettings) -> Typed:
    """Return the settings as the form shows them."""
    return {
        one.name: masks.masked(one.name, settings.values[one.column] or "")
        for one in COMPANY.fields
    }


async def _page(request: web.Request, visitor: SignedIn, shown: Shown) -> web.Response:
    settings = await request.app[DB].read(company_settings.read, visitor.actor)
    usual = {f"{plural[:-1]}Prefix": prefix for plural, prefix in PREFIXES.items()}
    context: dict[str, Any] = {
        "typed": shown.typed, "version": shown.version, "faults": shown.faults, "usual": usual,
        "inputs": inputs.inputs(request[READER].texts, COMPANY.fields), "logo": settings.logo,
        "most": logos.MOST_BYTES >> 20,
    }  # fmt: skip
    return templates.render(request, visitor, "company.html", context, status=shown.status)
