"""Handles the settings of what documents say about the company of an owner."""

from typing import Any

import msgspec
from aiohttp import web
from msgspec import Struct

from gateway.domain.sales import company_settings
from gateway.domain.sales.company_settings import COMPANY, CompanySettings
from gateway.rest.auth import authenticate
from gateway.rest.body import draft_of, ignored, read_body
from gateway.rest.document import shapes
from gateway.rest.document.describe import IF_MATCH, IF_NONE_MATCH
from gateway.rest.document.operations import operation
from gateway.rest.params import expected_of
from gateway.rest.record_json import answer, quoted, readable
from gateway.rest.records import show
from gateway.server.app_keys import DB

Company: Any = msgspec.defstruct(
    "CompanySettings",
    [(field.name, str | msgspec.UnsetType, msgspec.UNSET) for field in COMPANY.fields],
    bases=(Struct,),
    frozen=True,
)
Company.__doc__ = "What documents say about the company of an owner; unset fields are absent."
SHAPE = shapes.struct(Company(**{field.name: field.example for field in COMPANY.fields}))
CHANGED = shapes.written(SHAPE)


@operation(
    "getCompanySettings", "Account", "Read what documents say about your company", SHAPE,
    headers=("ETag",), parameters=(IF_NONE_MATCH,),
)  # fmt: skip
async def read_company(request: web.Request) -> web.Response:
    """GET /api/settings/company: read the caller's company settings."""
    caller = await authenticate(request)
    settings = await request.app[DB].read(company_settings.read, caller)
    return show(request, _shown(settings), _etag(settings))


@operation(
    "updateCompanySettings", "Account", "Set what documents say about your company", CHANGED,
    headers=("ETag", "X-Ignored-Fields"), parameters=(IF_MATCH,), body=shapes.changes(COMPANY),
    description="The logo is uploaded in the console. Numbers that were issued keep their prefix. "
    "A key without the scope `read` gets an empty object and the ETag.",
)  # fmt: skip
async def change_company(request: web.Request) -> web.Response:
    """PUT /api/settings/company: set the fields of the body; null clears one."""
    caller = await authenticate(request)
    draft = draft_of(request, COMPANY, await read_body(request), creating=False)
    changed = await request.app[DB].write(
        company_settings.change, caller, draft, expected_of(request.headers.get("If-Match"))
    )
    headers = {"ETag": _etag(changed), **ignored(draft)}
    return readable(caller, answer(_shown(changed), headers=headers))


def _shown(settings: CompanySettings) -> Company:
    return Company(**settings.shown())


def _etag(settings: CompanySettings) -> str:
    return quoted(str(settings.version))
