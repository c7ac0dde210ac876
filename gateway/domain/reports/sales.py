"""Sums deals won and invoices issued and paid, by period."""

from dataclasses import dataclass

from gateway.domain.reports.figures import PERIODS, Cents, Report, as_rows, parts, span_of, worth
from gateway.domain.reports.periods import ReportQuery
from gateway.records.audit import Actor
from outbox.database.transaction import Tx

GROUPS = ("month", "week", "day")
_DEALS_WON = f"""
select p.n as n, count(*) as counted, {parts("d.value")}
from {PERIODS} cross join deals d
where d.owner_id = $1 and d.closed_at >= p.first and d.closed_at < p.until and d.status = 'won'
group by p.n
"""
_ISSUED = f"""
select p.n as n, count(*) as counted, {parts("i.total")}
from {PERIODS} cross join invoices i
where i.owner_id = $1 and i.created_at >= p.first and i.created_at < p.until
  and i.status <> 'canceled'
group by p.n
"""
_PAID = f"""
select p.n as n, count(*) as counted, {parts("i.total")}
from {PERIODS} cross join invoices i
where i.owner_id = $1 and i.paid_at >= p.first and i.paid_at < p.until
group by p.n
"""


@dataclass(frozen=True, slots=True)
class Sales:
    """The figures of one period, or of all. Canceled invoices do not count as issued."""

    deals_won: int
    deals_won_value: Cents
    invoices_issued: int
    invoices_issued_total: Cents
    invoices_paid: int
    invoices_paid_total: Cents


async def sales(tx: Tx, actor: Actor, query: ReportQuery) -> Report[Sales, Sales]:
    """Return deals by the time of the win, and invoices by the times of issue and payment."""
    span = span_of(tx, actor, query, GROUPS)
    periods = span.periods()
    figures = [[0, 0] * 3 for _ in periods]
    for column, sql in ((0, _DEALS_WON), (2, _ISSUED), (4, _PAID)):
        for row in await tx.all(sql, actor.owner_id, as_rows(periods)):
            figures[row["n"]][column : column + 2] = [row["counted"], worth(row)]
    rows = [(period.label, _sales(row)) for period, row in zip(periods, figures, strict=True)]
    return Report(span, rows, _sales([sum(column) for column in zip(*figures, strict=True)]))


def _sales(figures: list[int]) -> Sales:
    won, won_value, issued, issued_total, paid, paid_total = figures
    return Sales(won, Cents(won_value), issued, Cents(issued_total), paid, Cents(paid_total))
