"""Sums pending invoices by how long they are overdue."""

from dataclasses import dataclass

from gateway.domain.reports.figures import EVER, Cents, Report, parts, span_of, worth
from gateway.domain.reports.periods import ReportQuery
from gateway.records.audit import Actor
from gateway.records.values.dates import begin, today
from outbox.database.transaction import Tx
from outbox.durations import DAY

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


@dataclass(frozen=True, slots=True)
class Receivables:
    """The pending invoices of one age; ages are in days since the due date."""

    count: int
    total: Cents


@dataclass(frozen=True, slots=True)
class ReceivablesTotals:
    """All pending invoices; `overdue` is the part that is not current."""

    count: int
    total: Cents
    overdue: Cents


async def receivables(
    tx: Tx, actor: Actor, query: ReportQuery
) -> Report[Receivables, ReceivablesTotals]:
    """Return the sums of pending invoices; `from` and `to` select them by due date."""
    span = span_of(tx, actor, query, GROUPS)
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
    rows = [
        (age, Receivables(count, Cents(total)))
        for age, count, total in zip(AGES, counts, totals, strict=True)
    ]
    every = ReceivablesTotals(sum(counts), Cents(sum(totals)), Cents(sum(totals[1:])))
    return Report(span, rows, every)
