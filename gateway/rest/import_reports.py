"""Handles the report of an import: its faults and its faulty lines as CSV files."""

from collections.abc import AsyncGenerator

from aiohttp import web

from gateway.domain.imports import import_jobs, import_reports
from gateway.rest.auth import authenticate
from gateway.rest.document import describe
from gateway.rest.document.operations import Shape, operation
from gateway.rest.exports import CSV
from gateway.server.app_keys import DB
from gateway.server.http.answers import Flow, begun


@operation(
    "getImportFaults", "Imports", "Download the faults of an import",
    Shape({"type": "string"}, "line,column,value,reason,result\r\n"),
    parameters=(describe.id_of("import"),), headers=("Content-Disposition",), media_type="text/csv",
    description="The first 10,000 faults as CSV: line, column, value, reason, and whether the line "
    "was refused or imported without the cell.",
)  # fmt: skip
async def read_faults(request: web.Request) -> web.StreamResponse:
    """GET /api/imports/{id}/faults.csv: the faults of an import as a file."""
    caller = await authenticate(request)
    db = request.app[DB]
    job = await db.read(import_reports.of, caller, request.match_info["id"])
    return await _file(import_reports.faults(db, job), "faults")


@operation(
    "getImportLines", "Imports", "Download the faulty lines of an import",
    Shape({"type": "string"}, "Nome;E-mail\r\n"),
    parameters=(describe.id_of("import"),), headers=("Content-Disposition",), media_type="text/csv",
    description="The first 10,000 lines with faults, with the heading and the separator of the "
    "file, to be mended and imported again. Lines that were imported without a cell begin with "
    f"`{import_reports.OWN_ID}`, the id of their record, which an import then updates. The latest "
    f"{import_jobs.WITH_LINES} imports have them.",
)  # fmt: skip
async def read_lines(request: web.Request) -> web.StreamResponse:
    """GET /api/imports/{id}/lines.csv: the faulty lines of an import as a file."""
    caller = await authenticate(request)
    db = request.app[DB]
    job = await db.read(import_reports.of, caller, request.match_info["id"])
    return await _file(import_reports.lines(db, job), "lines")


async def _file(pieces: AsyncGenerator[bytes, None], name: str) -> web.StreamResponse:
    headers = {
        "Content-Type": CSV,
        "Content-Disposition": f'attachment; filename="{name}.csv"',
        "Cache-Control": "no-store",
    }
    return Flow(await begun(pieces), headers)
