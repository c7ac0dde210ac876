"""Sends the records of a list of the console as a CSV file."""

from aiohttp import web

from gateway.console.layout.guard import SignedIn
from gateway.console.layout.pages import charge
from gateway.console.layout.reader import READER
from gateway.console.records import listing
from gateway.console.records.sections import SECTIONS
from gateway.records.errors import Refusal
from gateway.records.exports import export
from gateway.records.values.written_numbers import COMMA
from gateway.server.app_keys import DB
from gateway.server.http.answers import Flow, begun
from gateway.server.http.rate_limits import COSTS


async def show(request: web.Request, visitor: SignedIn) -> web.StreamResponse:
    """Stream the records that the list with this query shows, all pages of it."""
    section = SECTIONS.get(request.match_info["plural"])
    if section is None:
        raise Refusal("not_found", "error.not_found_help")
    texts = request[READER].texts
    asked = listing.asked(section.resource, section.path, request.query, texts)
    # As spreadsheets in this language write it: semicolons where the decimal sign is a comma.
    numbers = texts.numbers
    charge(request, visitor, COSTS["reported"])
    lines = export(
        request.app[DB], visitor.actor, section.resource, asked.query(),
        separator=";" if numbers == COMMA else ",", bom=True, numbers=numbers,
    )  # fmt: skip
    pieces = await begun(lines)
    headers = {
        "Content-Type": "text/csv; charset=utf-8",
        "Content-Disposition": f'attachment; filename="{section.name}.csv"',
    }
    return Flow(pieces, headers)
