"""Handles exports: the records of a list as a CSV file, streamed while the client reads."""

from aiohttp import web

from gateway.records.errors import rate_limited
from gateway.records.exports import NUMBERS, SEPARATORS, export
from gateway.records.resource import Resource
from gateway.records.values.written_numbers import POINT
from gateway.rest.auth import authenticate, charge
from gateway.rest.document import describe
from gateway.rest.document.operations import Operation
from gateway.rest.params import query_of, refused
from gateway.server.app_keys import DB
from gateway.server.http.answers import Flow, begun
from gateway.server.http.rate_limits import COSTS
from outbox.database.fair_limit import Crowded

CSV = "text/csv; charset=utf-8"


def export_of(resource: Resource) -> Operation:
    """Return GET /api/export/{plural}.csv."""

    async def handle(request: web.Request) -> web.StreamResponse:
        caller = await authenticate(request)
        caller.must("read")
        query = query_of(resource, request.query)
        name = request.query.get("separator") or ","
        if name not in SEPARATORS:
            raise refused("separator", f"Send one of: {' '.join(SEPARATORS)}.")
        numbers = request.query.get("numbers") or POINT
        if numbers not in NUMBERS:
            raise refused("numbers", f"Send one of: {' '.join(NUMBERS)}.")
        charge(request, caller, COSTS["reported"] - 1)
        bom = request.query.get("bom", "").lower() in ("true", "1")
        lines = export(
            request.app[DB], caller, resource, query, separator=SEPARATORS[name], bom=bom,
            numbers=numbers,
        )  # fmt: skip
        try:
            pieces = await begun(lines)
        except Crowded as crowded:
            raise rate_limited(
                "Exports of this account run and wait already; one runs at a time.", crowded.seconds
            ) from None
        headers = {
            "Content-Type": CSV,
            "Content-Disposition": f'attachment; filename="{resource.plural}.csv"',
            "Cache-Control": "no-store",
        }
        return Flow(pieces, headers)

    return describe.export(resource)(handle)
