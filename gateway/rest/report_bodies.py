"""The bodies of reports: their JSON, with amounts in BRL."""

from collections.abc import Mapping
from dataclasses import astuple, dataclass, fields
from typing import Any

from msgspec import Struct
from msgspec import field as member

from gateway.domain.reports.figures import Cents, Report
from gateway.records.values import dates
from gateway.records.values.numbers import show_money

Money = int | float


class Body(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The common head of reports: the name and the parameters."""

    report: str
    first: str | None = member(default=None, name="from")
    """The begin of the period; absent when it is unbounded."""
    last: str | None = member(default=None, name="to")
    timezone: str
    group_by: str


class SalesTotals(Struct, frozen=True, rename="camel"):
    """The totals. Values are in BRL. Canceled invoices do not count as issued."""

    deals_won: int
    deals_won_value: Money
    invoices_issued: int
    invoices_issued_total: Money
    invoices_paid: int
    invoices_paid_total: Money


class SalesRow(Struct, frozen=True, rename="camel"):
    """One period; `group` is its name: 2026-11, 2026-W47 or 2026-11-21."""

    group: str
    deals_won: int
    deals_won_value: Money
    invoices_issued: int
    invoices_issued_total: Money
    invoices_paid: int
    invoices_paid_total: Money


class SalesReport(Body, frozen=True, kw_only=True):
    currency: str
    data: list[SalesRow]
    totals: SalesTotals


class FunnelTotals(Struct, frozen=True, rename="camel"):
    """The figures of all stages. `value` is in BRL; the age of a deal stops when it is won or
    lost; `conversion_rate` is the percentage of won deals among won and lost ones."""

    count: int
    value: Money
    open: int
    won: int
    lost: int
    average_age_days: float
    conversion_rate: float


class FunnelRow(Struct, frozen=True, rename="camel"):
    """One stage."""

    group: str
    count: int
    value: Money
    open: int
    won: int
    lost: int
    average_age_days: float
    conversion_rate: float


class FunnelReport(Body, frozen=True, kw_only=True):
    currency: str
    data: list[FunnelRow]
    totals: FunnelTotals


class ReceivablesTotals(Struct, frozen=True, rename="camel"):
    """The totals. `total` is in BRL; `overdue` is the part that is not current."""

    count: int
    total: Money
    overdue: Money


class ReceivablesRow(Struct, frozen=True):
    """One age: `group` is in days since the due date."""

    group: str
    count: int
    total: Money


class ReceivablesReport(Body, frozen=True, kw_only=True):
    currency: str
    data: list[ReceivablesRow]
    totals: ReceivablesTotals


class ActivitiesTotals(Struct, frozen=True):
    """The number of activities of each type."""

    call: int
    email: int
    meeting: int
    note: int
    task: int
    total: int


class ActivitiesRow(Struct, frozen=True):
    """One period; `group` is its name."""

    group: str
    call: int
    email: int
    meeting: int
    note: int
    task: int
    total: int


class ActivitiesReport(Body, frozen=True, kw_only=True):
    data: list[ActivitiesRow]
    totals: ActivitiesTotals


class LeadsTotals(Struct, frozen=True, rename="camel"):
    """The totals. `with_deal` counts contacts in a deal, `conversion_rate` is their percentage."""

    leads: int
    with_deal: int
    conversion_rate: float


class LeadsRow(Struct, frozen=True, rename="camel"):
    """One source or period."""

    group: str
    leads: int
    with_deal: int
    conversion_rate: float


class LeadsReport(Body, frozen=True, kw_only=True):
    data: list[LeadsRow]
    totals: LeadsTotals


@dataclass(frozen=True, slots=True)
class Form:
    """The structs of one report: its body, a row and the totals."""

    body: type[Body]
    row: type[Struct]
    totals: type[Struct]


FORMS: Mapping[str, Form] = {
    "sales": Form(SalesReport, SalesRow, SalesTotals),
    "funnel": Form(FunnelReport, FunnelRow, FunnelTotals),
    "receivables": Form(ReceivablesReport, ReceivablesRow, ReceivablesTotals),
    "activities": Form(ActivitiesReport, ActivitiesRow, ActivitiesTotals),
    "leads": Form(LeadsReport, LeadsRow, LeadsTotals),
}


def body_of(name: str, report: Report[Any, Any]) -> Body:
    """Return the body of the report `name`."""
    form, span = FORMS[name], report.span
    members: dict[str, Any] = {
        "report": name,
        "timezone": span.zone,
        "group_by": span.group_by,
        "data": [form.row(group, *_shown(figures)) for group, figures in report.rows],
        "totals": form.totals(*_shown(report.totals)),
    }
    if span.first is not None:
        members["first"] = dates.show(span.first)
    if span.until is not None:
        members["last"] = dates.show(span.until - 1)
    if "currency" in form.body.__struct_fields__:
        members["currency"] = "BRL"
    return form.body(**members)


def _shown(figures: Any) -> list[Any]:
    """Return figures in the order of their type, amounts as BRL."""
    return [
        show_money(value) if field.type is Cents else value
        for field, value in zip(fields(figures), astuple(figures), strict=True)
    ]
