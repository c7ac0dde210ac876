"""Handles the reports, as JSON or as CSV."""

import csv
import io
from collections.abc import Mapping
from typing import Any

import msgspec
from aiohttp import web
from msgspec import Struct

from gateway.domain.reports.index import REPORTS, Kind
from gateway.domain.reports.periods import ReportQuery
from gateway.records.values import csv_cells, dates
from gateway.records.values.schemas import MOMENT
from gateway.rest.auth import authenticate
from gateway.rest.document import shapes
from gateway.rest.document.operations import Operation, Parameter, operation
from gateway.rest.errors import JSON
from gateway.rest.params import LARGEST, bound, refused
from gateway.rest.report_bodies import (
    FORMS,
    ActivitiesReport,
    ActivitiesRow,
    ActivitiesTotals,
    Body,
    FunnelReport,
    FunnelRow,
    FunnelTotals,
    LeadsReport,
    LeadsRow,
    LeadsTotals,
    ReceivablesReport,
    ReceivablesRow,
    ReceivablesTotals,
    SalesReport,
    SalesRow,
    SalesTotals,
    body_of,
)
from gateway.rest.scans import scan

FORMATS = ("json", "csv")


class ReportKind(Struct, frozen=True, rename="camel"):
    """The description of a report."""

    name: str
    path: str
    description: str
    group_by: list[str]
    formats: list[str]


class ReportIndex(Struct, frozen=True):
    """The list of all reports."""

    data: list[ReportKind]


INDEX = ReportIndex(
    [
        ReportKind(k.name, f"/api/reports/{k.name}", k.description, [*k.groups], [*FORMATS])
        for k in REPORTS
    ]
)
_MONTH: dict[str, Any] = {
    "first": "2026-11-01T03:00:00.000Z",
    "last": "2026-12-01T02:59:59.999Z",
    "timezone": "America/Sao_Paulo",
}
EXAMPLES: dict[str, Body] = {
    "sales": SalesReport(
        report="sales",
        **_MONTH,
        group_by="month",
        currency="BRL",
        data=[
            SalesRow(
                group="2026-11",
                deals_won=2,
                deals_won_value=22500.5,
                invoices_issued=5,
                invoices_issued_total=4904.5,
                invoices_paid=3,
                invoices_paid_total=2942.7,
            )
        ],
        totals=SalesTotals(2, 22500.5, 5, 4904.5, 3, 2942.7),
    ),
    "funnel": FunnelReport(
        report="funnel",
        timezone="America/Sao_Paulo",
        group_by="stage",
        currency="BRL",
        data=[
            FunnelRow(
                group="proposal",
                count=3,
                value=30000,
                open=1,
                won=1,
                lost=1,
                average_age_days=12.5,
                conversion_rate=50.0,
            )
        ],
        totals=FunnelTotals(
            count=3, value=30000, open=1, won=1, lost=1, average_age_days=12.5, conversion_rate=50.0
        ),
    ),
    "receivables": ReceivablesReport(
        report="receivables",
        timezone="America/Sao_Paulo",
        group_by="age",
        currency="BRL",
        data=[ReceivablesRow("current", 4, 3923.6), ReceivablesRow("1-30", 1, 980.9)],
        totals=ReceivablesTotals(5, 4904.5, 980.9),
    ),
    "activities": ActivitiesReport(
        report="activities",
        **_MONTH,
        group_by="month",
        data=[ActivitiesRow(group="2026-11", call=4, email=2, meeting=1, note=0, task=0, total=7)],
        totals=ActivitiesTotals(4, 2, 1, 0, 0, 7),
    ),
    "leads": LeadsReport(
        report="leads",
        timezone="America/Sao_Paulo",
        group_by="source",
        data=[LeadsRow("web", 8, 2, 25.0)],
        totals=LeadsTotals(8, 2, 25.0),
    ),
}


@operation("listReports", "Reports", "List the reports", shapes.struct(INDEX))
async def index(request: web.Request) -> web.Response:
    """GET /api/reports: list the reports."""
    caller = await authenticate(request)
    caller.must("read")
    return web.Response(body=msgspec.json.encode(INDEX), headers={"Content-Type": JSON})


def report(kind: Kind) -> Operation:
    """Return the operation GET /api/reports/{name}."""

    async def handle(request: web.Request) -> web.Response:
        caller = await authenticate(request)
        form = request.query.get("format") or FORMATS[0]
        if form not in FORMATS:
            message = f"Send one of: {', '.join(FORMATS)}."
            raise refused("format", message)
        caller.must("read")
        query = _asked(request.query)
        report = await scan(request, caller, "reported", kind.unit, query)
        body = body_of(kind.name, report)
        if form == "csv":
            return web.Response(
                body=as_csv(body).encode(),
                headers={
                    "Content-Type": "text/csv; charset=utf-8",
                    "Content-Disposition": f'attachment; filename="{kind.name}.csv"',
                },
            )
        return web.Response(body=msgspec.json.encode(body), headers={"Content-Type": JSON})

    groups = {"type": "string", "enum": [*kind.groups], "default": kind.groups[0]}
    parameters = (
        Parameter("from", MOMENT, "First day or instant.", "2026-11-01"),
        Parameter("to", MOMENT, "Last day (inclusive) or instant.", "2026-11-30"),
        Parameter("groupBy", groups, "The value that groups the rows.", kind.groups[0]),
        Parameter(
            "timezone", {"type": "string"}, "The time zone of days; by default the account's.",
            "America/Sao_Paulo",
        ),
        Parameter(
            "format", {"type": "string", "enum": [*FORMATS], "default": FORMATS[0]},
            "JSON, or the rows as CSV.", "json",
        ),
    )  # fmt: skip
    title = kind.name.capitalize()
    return operation(
        f"get{title}Report", "Reports", f"Report: {kind.name}",
        shapes.struct(EXAMPLES[kind.name]), description=kind.description, parameters=parameters,
        refusals=("validation_error",), headers=("Content-Disposition",),
        texts={"text/csv": as_csv(EXAMPLES[kind.name])},
    )(handle)  # fmt: skip


def _asked(query: Mapping[str, str]) -> ReportQuery:
    """Return the request for a report of a query; an invalid bound is refused by the report."""

    def read(text: str) -> int | dates.Day | None:
        if not text:
            return None
        instant = bound(text)
        # The report refuses a bound outside the calendar, in the order of its checks.
        return LARGEST if instant is None else instant

    first, last = read(query.get("from", "")), read(query.get("to", ""))
    return ReportQuery(
        first, last, zone=query.get("timezone", ""), group_by=query.get("groupBy", "")
    )


def as_csv(report: Body) -> str:
    """Return the rows of a report as CSV with a header line."""
    body = msgspec.to_builtins(report)
    columns = msgspec.structs.fields(FORMS[report.report].row)
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow([column.encode_name for column in columns])
    for row in body["data"]:
        writer.writerow([_cell(row[column.encode_name]) for column in columns])
    return out.getvalue()


def _cell(value: Any) -> Any:
    """Return the value of a cell, quoted so that a spreadsheet does not run it as a formula."""
    return csv_cells.inert(value) if value and isinstance(value, str) else value
