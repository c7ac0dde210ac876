"""Counts new contacts by source or time, and how many are part of a deal."""

from dataclasses import dataclass

from gateway.domain.reports.figures import PERIODS, Report, as_rows, bounds, span_of
from gateway.domain.reports.periods import TIMES, ReportQuery
from gateway.domain.sales.deals import percent
from gateway.records.audit import Actor
from outbox.database.transaction import Tx

GROUPS = ("source", "day", "week", "month")
_WITH_DEAL = """
sum(case when exists (select 1 from deal_contacts d where d.owner_id = $1 and d.value = c.id)
  then 1 else 0 end) as dealing"""
_BY_SOURCE = f"""
select c.source as source, count(*) as counted, {_WITH_DEAL}
from contacts c where c.owner_id = $1 and c.created_at >= $2 and c.created_at < $3
group by c.source order by c.source
"""
_BY_TIME = f"""
select p.n as n, count(*) as counted, {_WITH_DEAL}
from {PERIODS} cross join contacts c
where c.owner_id = $1 and c.created_at >= p.first and c.created_at < p.until
group by p.n
"""


@dataclass(frozen=True, slots=True)
class Leads:
    """The contacts of one group, or of all.

    `with_deal` counts those in a deal, `conversion_rate` is their percentage.
    """

    leads: int
    with_deal: int
    conversion_rate: float


async def leads(tx: Tx, actor: Actor, query: ReportQuery) -> Report[Leads, Leads]:
    """Return the counts of contacts created in the requested period; by source, of all time."""
    span = span_of(tx, actor, query, GROUPS)
    figures: dict[str, tuple[int, int]]
    if span.group_by in TIMES:
        periods = span.periods()
        figures = {period.label: (0, 0) for period in periods}
        for row in await tx.all(_BY_TIME, actor.owner_id, as_rows(periods)):
            figures[periods[row["n"]].label] = (row["counted"], row["dealing"])
    else:
        rows = await tx.all(_BY_SOURCE, actor.owner_id, *bounds(span))
        figures = {row["source"]: (row["counted"], row["dealing"]) for row in rows}
    counted = sum(count for count, _ in figures.values())
    dealing = sum(count for _, count in figures.values())
    every = [(group, _leads(count, dealt)) for group, (count, dealt) in figures.items()]
    return Report(span, every, _leads(counted, dealing))


def _leads(counted: int, dealing: int) -> Leads:
    return Leads(counted, dealing, percent(dealing, counted))
