"""The settings of what quotes and invoices say about the company that sends them."""

import asyncio
from collections.abc import Mapping
from typing import Any

from aiohttp import web

from gateway.console.layout import error_pages, pages, templates
from gateway.console.layout.forms import Form
from gateway.console.layout.guard import SignedIn
from gateway.console.layout.reader import READER
from gateway.console.records import inputs
from gateway.console.records.inputs import Typed
from gateway.domain.sales import company_settings, logos
from gateway.domain.sales.company_settings import COMPANY, PREFIXES, CompanySettings
from gateway.records.draft import check
from gateway.records.errors import Refusal
from gateway.records.values import masks
from gateway.server.app_keys import DB
from gateway.server.http.account_turns import WRITING, turn
from gateway.server.http.multipart import Upload

PATH = "/console/settings/company"


async def show(request: web.Request, visitor: SignedIn) -> web.StreamResponse:
    """Show the settings."""
    settings = await request.app[DB].read(company_settings.read, visitor.actor)
    return await _page(request, visitor, _typed(settings), str(settings.version), {})


async def save(request: web.Request, visitor: SignedIn, form: Form) -> web.StreamResponse:
    """Save the settings unless they have changed since the form was loaded."""
    texts = request[READER].texts
    form_inputs = inputs.inputs(texts, COMPANY.fields)
    typed = inputs.of_form(form, form_inputs)
    draft = check(COMPANY, inputs.values(typed, form_inputs, texts, creating=False), from_json=True)
    version = form.text("version")
    try:
        await request.app[DB].write(
            company_settings.change, visitor.actor, draft, frozenset({version})
        )
    except Refusal as refusal:
        if refusal.code == "precondition_failed":
            raise Refusal("conflict", "error.changed") from None
        if not refusal.faults:
            raise
        faults = inputs.faults(texts, refusal.faults, form_inputs, typed)
        status = error_pages.status_of(refusal)
        return await _page(request, visitor, typed, version, faults, status)
    return pages.to(PATH, "saved")


async def upload_logo(request: web.Request, visitor: SignedIn, form: Upload) -> web.StreamResponse:
    """Store the logo, smaller if needed, without the other data of its file."""
    data = b"".join([piece async for piece in form.pieces])
    try:
        async with turn(request, WRITING):
            logo = await asyncio.to_thread(logos.logo_of, data)
    except Refusal as refusal:
        texts = request[READER].texts
        faults = {"logo": texts(f"company.logo_{refusal.faults[0].code}")}
        settings = await request.app[DB].read(company_settings.read, visitor.actor)
        return await _page(request, visitor, _typed(settings), str(settings.version), faults, 400)
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


async def _page(
    request: web.Request,
    visitor: SignedIn,
    typed: Typed,
    version: str,
    faults: Mapping[str, str],
    status: int = 200,
) -> web.Response:
    settings = await request.app[DB].read(company_settings.read, visitor.actor)
    usual = {f"{plural[:-1]}Prefix": prefix for plural, prefix in PREFIXES.items()}
    context: dict[str, Any] = {
        "typed": typed, "version": version, "faults": faults, "usual": usual,
        "inputs": inputs.inputs(request[READER].texts, COMPANY.fields), "logo": settings.logo,
        "most": logos.MOST_BYTES >> 20,
    }  # fmt: skip
    return templates.render(request, visitor, "company.html", context, status=status)
