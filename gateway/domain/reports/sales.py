"""Sums deals won and invoices issued and paid, by period."""

from msgspec import Struct

from gateway.domain.reports.figures import (
    PERIODS,
    Money,
    Report,
    as_rows,
    asked_of,
    head,
    parts,
    worth,
)
from gateway.domain.reports.periods import Asked
from gateway.records.access import Actor
from gateway.records.values.numbers import show_money
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


class SalesReport(Report, frozen=True, kw_only=True):
    currency: str
    data: list[SalesRow]
    totals: SalesTotals


async def sales(tx: Tx, actor: Actor, asked: Asked) -> SalesReport:
    """Return deals by the time of the win, and invoices by the times of issue and payment."""
    span = asked_of(tx, actor, asked, GROUPS)
    found = span.periods()
    figures = [[0, 0] * 3 for _ in found]
    for column, sql in ((0, _DEALS_WON), (2, _ISSUED), (4, _PAID)):
        for row in await tx.all(sql, actor.owner_id, as_rows(found)):
            figures[row["n"]][column : column + 2] = [row["counted"], worth(row)]
    totals = [sum(column) for column in zip(*figures, strict=True)]
    return SalesReport(
        **head("sales", span),
        currency="BRL",
        data=[
            SalesRow(period.label, *_shown(row)) for period, row in zip(found, figures, strict=True)
        ],
        totals=SalesTotals(*_shown(totals)),
    )


def _shown(figures: list[int]) -> tuple[int, Money, int, Money, int, Money]:
    won, won_value, issued, issued_total, paid, paid_total = figures
    return (
        won, show_money(won_value), issued, show_money(issued_total), paid, show_money(paid_total),
    )  # fmt: skip
