"""Summarises deals by stage: count, value, status and average age."""

from dataclasses import dataclass

from gateway.domain.reports.figures import Cents, Report, bounds, parts, span_of, worth
from gateway.domain.reports.periods import ReportQuery
from gateway.domain.sales import pipelines
from gateway.domain.sales.deals import NO_STAGE, in_order, percent
from gateway.records.audit import Actor
from outbox.database.transaction import Tx
from outbox.durations import DAY, SECOND

GROUPS = ("stage",)
# Ages are added in seconds, because the sum of very many in microseconds overflows.
_BY_STAGE = f"""
select stage, status, count(*) as counted, {parts("value")},
  sum((coalesce(closed_at, $4) - created_at) / {SECOND}) as age
from deals where owner_id = $1 and created_at >= $2 and created_at < $3
group by stage, status
"""


@dataclass(frozen=True, slots=True)
class Funnel:
    """The figures of one stage, or of all.

    The age of a deal stops when it is won or lost; `conversion_rate` is the percentage of won deals
    among won and lost ones.
    """

    count: int
    value: Cents
    open: int
    won: int
    lost: int
    average_age_days: float
    conversion_rate: float


class _Stage:
    """The running sums of one stage."""

    def __init__(self) -> None:
        self.value = self.seconds = 0
        self.by_status = {"open": 0, "won": 0, "lost": 0}

    def add(self, status: str, count: int, value: int, seconds: int) -> None:
        self.by_status[status] += count
        self.value += value
        self.seconds += seconds

    def figures(self) -> Funnel:
        opened, won, lost = self.by_status.values()
        count = opened + won + lost
        age = round(self.seconds * SECOND / DAY / count, 1) if count else 0.0
        return Funnel(
            count=count,
            value=Cents(self.value),
            open=opened,
            won=won,
            lost=lost,
            average_age_days=age,
            conversion_rate=percent(won, won + lost),
        )


async def funnel(tx: Tx, actor: Actor, query: ReportQuery) -> Report[Funnel, Funnel]:
    """Return the figures of deals created in the requested period, by default of all deals.

    The stages of the owner's pipeline come first in its order, including those without deals.
    """
    span = span_of(tx, actor, query, GROUPS)
    pipeline = await pipelines.of(tx, actor)
    stages = {stage: _Stage() for stage in pipeline.stages}
    every = _Stage()
    for row in await tx.all(_BY_STAGE, actor.owner_id, *bounds(span), tx.now):
        figures = (row["status"], row["counted"], worth(row), int(row["age"]))
        stages.setdefault(row["stage"] or NO_STAGE, _Stage()).add(*figures)
        every.add(*figures)
    rows = [(name, stages[name].figures()) for name in in_order(stages, pipeline)]
    return Report(span, rows, every.figures())
