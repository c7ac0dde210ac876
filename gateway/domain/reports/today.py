"""Reads what waits for an owner today: tasks, orders, deals, invoices, and new contacts."""

from collections.abc import Sequence
from dataclasses import dataclass

from gateway.domain.contacts import task_days
from gateway.domain.contacts.task_days import Due
from gateway.domain.reports.figures import parts, worth
from gateway.domain.sales import boards, pipelines
from gateway.domain.sales.deals import SHOP_STAGE
from gateway.records.audit import Actor
from gateway.records.values import dates
from outbox.database.transaction import Tx
from outbox.durations import DAY

MOST = 1_000
"""Rows of a kind that are read; a figure that had to stop there is at least that."""
RECENT = 7 * DAY
"""The age up to which a contact is new, and a paid order is shown."""

_OVERDUE = """
select count(case when due_at < case when due_day then cast($3 as bigint)
  else cast($4 as bigint) end then 1 end) as n
from (select due_at, due_day from tasks
  where owner_id = $1 and completed_at is null and due_at < $2 order by due_at, id limit $5) as t
"""
# Rows are counted after the limit, so that those of another status cost no more.
_ORDERS = """
select
  (select count(*) from (select status from orders where owner_id = $1 and expires_at >= $2
    order by expires_at, id limit $4) as o where status = 'pending') as unpaid,
  (select count(*) from (select status from orders where owner_id = $1 and created_at >= $3
    order by created_at desc, id desc limit $4) as o where status = 'paid') as paid,
  (select count(*) from (select 1 as one from orders where owner_id = $1
    and late_payment_at is not null order by created_at desc, id desc limit $4) as o) as late
"""
_INVOICES = f"""
select count(*) as n, {parts("total")}, count(case when due_at < case when due_day
  then cast($2 as bigint) else cast($3 as bigint) end then 1 end) as overdue
from (select due_at, due_day, total from invoices
  where owner_id = $1 and status = 'pending' order by due_at limit $4) as i
"""
_CONTACTS = """
select
  (select count(*) from (select 1 as one from contacts where owner_id = $1 and created_at >= $2
    limit $3) as c) as recent,
  exists (select 1 from contacts where owner_id = $1) as any_contact,
  exists (select 1 from stores where owner_id = $1) as any_store
"""


@dataclass(frozen=True, slots=True)
class Stage:
    """A stage with its open deals; `value` is in centavos. Its name is empty for those without."""

    name: str
    count: int
    value: int
    shop: bool = False
    """Whether it is that of the deals of orders, beside the pipeline."""


@dataclass(frozen=True, slots=True)
class Today:
    """What waits. Amounts are in centavos; counts end at MOST, those of deals do not."""

    day: int
    """The owner's day, as a bare date is stored."""
    overdue: int
    due: Sequence[Due]
    """Tasks of the day, done or not, up to task_days.MOST."""
    unpaid_orders: int
    paid_orders: int
    """Paid orders of the last days."""
    late_payments: int
    """Orders that were paid after their end."""
    stages: Sequence[Stage]
    """The stages with open deals, in the order of the pipeline."""
    invoices: int
    invoiced: int
    """The sum of the unpaid invoices."""
    overdue_invoices: int
    new_contacts: int
    has_contacts: bool
    has_stores: bool

    @property
    def open_tasks(self) -> int:
        """How many tasks of the day are not done."""
        return sum(not one.completed for one in self.due)

    @property
    def deals(self) -> int:
        """How many deals are open."""
        return sum(stage.count for stage in self.stages)

    @property
    def pipeline(self) -> int:
        """The sum of the open deals."""
        return sum(stage.value for stage in self.stages)


async def today(tx: Tx, actor: Actor) -> Today:
    """Return what waits for the actor. Raises forbidden.

    Seven statements; they read at most MOST rows of each kind, and the totals of the stages.
    """
    actor.must("read")
    owner, day = actor.owner_id, dates.today(tx.now, actor.zone)
    by_stage, _ = await boards.figures(tx, actor)
    pipeline = await pipelines.of(tx, actor)
    apart = [SHOP_STAGE] if boards.is_apart(pipeline) else []
    named = [name for name in boards.stages_of(pipeline, by_stage) if name]
    stages = [
        Stage(name, *by_stage[name], shop=name in apart)
        for name in (*named, *apart, "")
        if by_stage.get(name, boards.NOTHING)[0]
    ]
    tasks = await _one(tx, _OVERDUE, (owner, max(day, tx.now), day, tx.now, MOST))
    orders = await _one(tx, _ORDERS, (owner, tx.now, tx.now - RECENT, MOST))
    invoices = await tx.one(_INVOICES, owner, day, tx.now, MOST)
    assert invoices is not None
    contacts = await _one(tx, _CONTACTS, (owner, tx.now - RECENT, MOST))
    return Today(
        day=day, overdue=tasks["n"], due=(await task_days.of_days(tx, actor, [day]))[day],
        unpaid_orders=orders["unpaid"], paid_orders=orders["paid"], late_payments=orders["late"],
        stages=stages,
        invoices=int(invoices["n"]), invoiced=worth(invoices),
        overdue_invoices=int(invoices["overdue"]), new_contacts=contacts["recent"],
        has_contacts=bool(contacts["any_contact"]), has_stores=bool(contacts["any_store"]),
    )  # fmt: skip


async def _one(tx: Tx, sql: str, values: Sequence[str | int]) -> dict[str, int]:
    row = await tx.one(sql, *values)
    assert row is not None
    return {name: int(row[name] or 0) for name in row.keys()}  # noqa: SIM118  a Row is no mapping
