"""Counts activities by period and type."""

from dataclasses import dataclass

from gateway.domain.contacts.activities import ACTIVITIES, TYPES
from gateway.domain.reports.figures import PERIODS, Report, as_rows, span_of
from gateway.domain.reports.periods import ReportQuery
from gateway.records import settled_rows
from gateway.records.audit import Actor
from outbox.database.transaction import Tx

GROUPS = ("day", "week", "month")
_ACTIVITIES = f"""
select p.n as n, a.type as type, count(*) as counted
from {PERIODS} cross join activities a
where a.owner_id = $1 and a.created_at >= p.first and a.created_at < p.until
{settled_rows.seen(ACTIVITIES, "a")}
group by p.n, a.type
"""


@dataclass(frozen=True, slots=True)
class Activities:
    """The number of activities of each type in one period, or in all."""

    call: int
    email: int
    meeting: int
    note: int
    task: int
    total: int


async def activities(tx: Tx, actor: Actor, query: ReportQuery) -> Report[Activities, Activities]:
    """Return the number of activities in each period, by type."""
    span = span_of(tx, actor, query, GROUPS)
    periods = span.periods()
    figures = [[0] * len(TYPES) for _ in periods]
    for row in await tx.all(_ACTIVITIES, actor.owner_id, as_rows(periods)):
        figures[row["n"]][TYPES.index(row["type"])] = row["counted"]
    totals = [sum(column) for column in zip(*figures, strict=True)]
    rows = [(period.label, _by_type(row)) for period, row in zip(periods, figures, strict=True)]
    return Report(span, rows, _by_type(totals))


def _by_type(counts: list[int]) -> Activities:
    return Activities(**dict(zip(TYPES, counts, strict=True)), total=sum(counts))
