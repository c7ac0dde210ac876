"""Every report there is."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from gateway.domain.reports import activities, funnel, leads, receivables, sales
from gateway.domain.reports.figures import Report
from gateway.domain.reports.periods import Asked
from gateway.records.access import Actor
from outbox.database.transaction import Tx


@dataclass(frozen=True, eq=False, slots=True)
class Kind:
    """One report: its unit, to be run by `db.scan`, and what it groups by."""

    name: str
    unit: Callable[[Tx, Actor, Asked], Awaitable[Report]]
    description: str
    groups: Sequence[str]
    """The values of `groupBy`, the default first."""


REPORTS = (
    Kind(
        "sales", sales.sales,
        "Deals won, invoices issued and invoices paid, by the time when that was.", sales.GROUPS,
    ),
    Kind(
        "funnel", funnel.funnel,
        "Deals by stage: how many, their value, their average age, and how many were won. "
        "`from` and `to` choose deals by when they were made.",
        funnel.GROUPS,
    ),
    Kind(
        "receivables", receivables.receivables,
        "Pending invoices by the days since their due date. `from` and `to` choose them by it.",
        receivables.GROUPS,
    ),
    Kind(
        "activities", activities.activities, "Activities by type and time.", activities.GROUPS,
    ),
    Kind(
        "leads", leads.leads,
        "Contacts made, by their source or by time, and how many of them take part in a deal.",
        leads.GROUPS,
    ),
)  # fmt: skip
