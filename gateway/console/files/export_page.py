"""Sends the records of a list of the console as a CSV file."""

from aiohttp import web

from gateway.console.frame.guard import Visitor
from gateway.console.frame.reader import READER
from gateway.console.records import listing
from gateway.console.records.sections import SECTIONS
from gateway.records.errors import Refusal
from gateway.records.exports import export
from gateway.server.app_keys import DB
from gateway.server.http.answers import Flow, begun


async def show(request: web.Request, visitor: Visitor) -> web.StreamResponse:
    """Stream the records that the list with this query shows, all pages of it."""
    section = SECTIONS.get(request.match_info["plural"])
    if section is None:
        raise Refusal("not_found", "error.not_found_help")
    asked = listing.asked(section.resource, section.path, request.query, "", (), ())
    # Spreadsheets in Portuguese take a comma for the decimal point, and expect semicolons.
    separator = ";" if request[READER].texts.code == "pt-BR" else ","
    lines = export(
        request.app[DB], visitor.actor, section.resource, asked.query(), separator=separator,
        bom=True,
    )  # fmt: skip
    pieces = await begun(lines)
    headers = {
        "Content-Type": "text/csv; charset=utf-8",
        "Content-Disposition": f'attachment; filename="{section.name}.csv"',
    }
    return Flow(pieces, headers)
