"""Lists all reports."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from gateway.domain.reports import activity_report, funnel, lead_report, receivables, sales
from gateway.domain.reports.figures import Report
from gateway.domain.reports.periods import ReportQuery
from gateway.records.audit import Actor
from outbox.database.transaction import Tx


@dataclass(frozen=True, eq=False, slots=True)
class Kind:
    """A report: its unit, which `db.scan` runs, and its groupings."""

    name: str
    unit: Callable[[Tx, Actor, ReportQuery], Awaitable[Report[Any, Any]]]
    description: str
    groups: Sequence[str]
    """The values of `groupBy`, the default first."""


REPORTS = (
    Kind(
        "sales", sales.sales,
        "Deals won, invoices issued and invoices paid, by time.", sales.GROUPS,
    ),
    Kind(
        "funnel", funnel.funnel,
        "Deals by stage: count, value, average age and number of won deals. "
        "`from` and `to` select deals by their time of creation.",
        funnel.GROUPS,
    ),
    Kind(
        "receivables", receivables.receivables,
        "Pending invoices by days since the due date. `from` and `to` select them by due date.",
        receivables.GROUPS,
    ),
    Kind(
        "activities", activity_report.activities, "Activities by type and time.",
        activity_report.GROUPS,
    ),
    Kind(
        "leads", lead_report.leads,
        "New contacts by source or time, and how many of them are part of a deal.",
        lead_report.GROUPS,
    ),
)  # fmt: skip
