"""Counts activities by period and type."""

from msgspec import Struct

from gateway.domain.contacts.activities import ACTIVITIES, TYPES
from gateway.domain.reports.figures import PERIODS, Report, as_rows, asked_of, head
from gateway.domain.reports.periods import Asked
from gateway.records import ends
from gateway.records.access import Actor
from outbox.database.transaction import Tx

GROUPS = ("day", "week", "month")
_ACTIVITIES = f"""
select p.n as n, a.type as type, count(*) as counted
from {PERIODS} cross join activities a
where a.owner_id = $1 and a.created_at >= p.first and a.created_at < p.until
{ends.seen(ACTIVITIES, "a")}
group by p.n, a.type
"""


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


class ActivitiesReport(Report, frozen=True, kw_only=True):
    data: list[ActivitiesRow]
    totals: ActivitiesTotals


async def activities(tx: Tx, actor: Actor, asked: Asked) -> ActivitiesReport:
    """Return the number of activities in each period, by type."""
    span = asked_of(tx, actor, asked, GROUPS)
    found = span.periods()
    figures = [[0] * len(TYPES) for _ in found]
    for row in await tx.all(_ACTIVITIES, actor.owner_id, as_rows(found)):
        figures[row["n"]][TYPES.index(row["type"])] = row["counted"]
    totals = [sum(column) for column in zip(*figures, strict=True)]
    return ActivitiesReport(
        **head("activities", span),
        data=[
            ActivitiesRow(group=period.label, **_by_type(row))
            for period, row in zip(found, figures, strict=True)
        ],
        totals=ActivitiesTotals(**_by_type(totals)),
    )


def _by_type(counts: list[int]) -> dict[str, int]:
    return {**dict(zip(TYPES, counts, strict=True)), "total": sum(counts)}
