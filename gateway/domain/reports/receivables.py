"""Sums pending invoices by how long they are overdue."""

from msgspec import Struct

from gateway.domain.reports.figures import EVER, Money, Report, asked_of, head, parts, worth
from gateway.domain.reports.periods import Asked
from gateway.records.access import Actor
from gateway.records.values.dates import DAY, begin, today
from gateway.records.values.numbers import show_money
from outbox.database.transaction import Tx

GROUPS = ("age",)
AGES = ("current", "1-30", "31-60", "61-90", "90+")
"""Days since the due date; invoices that are not overdue are current."""
_DAYS = (30, 60, 90)


def _due(day: int, instant: int) -> str:
    """Return a bound that is a day for dates without a time, and an instant for others."""
    return f"case when due_day then cast(${day} as bigint) else cast(${instant} as bigint) end"


_BY_AGE = f"""
select case
    when due_at >= {_due(2, 3)} then 0 when due_at >= {_due(4, 5)} then 1
    when due_at >= {_due(6, 7)} then 2 when due_at >= {_due(8, 9)} then 3 else 4
  end as age, count(*) as counted, {parts("total")}
from invoices
where owner_id = $1 and status = 'pending'
  and due_at >= {_due(10, 11)} and due_at < {_due(12, 13)}
group by 1
"""


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


class ReceivablesReport(Report, frozen=True, kw_only=True):
    currency: str
    data: list[ReceivablesRow]
    totals: ReceivablesTotals


async def receivables(tx: Tx, actor: Actor, asked: Asked) -> ReceivablesReport:
    """Return the sums of pending invoices; `from` and `to` select them by due date."""
    span = asked_of(tx, actor, asked, GROUPS)
    zone = span.zone
    day = today(tx.now, zone)
    cuts = [day, tx.now]
    for days in _DAYS:
        cuts += [day - days * DAY, begin(day - days * DAY, zone)]
    if span.first is None:
        cuts += [-EVER, -EVER]
    else:
        cuts += [today(span.first, zone), span.first]
    if span.until is None:
        cuts += [EVER, EVER]
    else:
        cuts += [today(span.until - 1, zone) + DAY, span.until]
    counts, totals = [0] * len(AGES), [0] * len(AGES)
    for row in await tx.all(_BY_AGE, actor.owner_id, *cuts):
        counts[row["age"]], totals[row["age"]] = row["counted"], worth(row)
    return ReceivablesReport(
        **head("receivables", span),
        currency="BRL",
        data=[
            ReceivablesRow(age, count, show_money(total))
            for age, count, total in zip(AGES, counts, totals, strict=True)
        ],
        totals=ReceivablesTotals(sum(counts), show_money(sum(totals)), show_money(sum(totals[1:]))),
    )
