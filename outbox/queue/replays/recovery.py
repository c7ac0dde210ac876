"""Find the finished deliveries of a webhook that are worth a replay, in their order."""

from collections.abc import Sequence
from dataclasses import dataclass

from outbox.database.transaction import Row, Tx
from outbox.ids import first_at
from outbox.states import End

# An id begins with the milliseconds of its creation, so a range of ids is a range of time. An event
# with a later delivery that arrived or still may is left out, so that a repeated run sends nothing
# twice; a later delivery that also failed is a candidate itself. The later one has the greater
# number, because the wall clock, and so the ids, may go back.
CANDIDATES = """
from deliveries d /*sqlite indexed by {index}*/
where d.webhook_id = $1 and {state} and d.id > $2 and d.id < $3 and d.origin <> 'test'
  and not exists (
    select 1 from deliveries later
    where later.event_id = d.event_id and later.webhook_id = d.webhook_id
      and later.origin <> 'event'
      and (later.nth > d.nth or (later.nth = d.nth and later.id > d.id))
      and (later.state in ('ready', 'in_flight', 'held', 'delivered')
        or (later.state in ({states}) and later.id > $4 and later.id < $3)))
"""
RETRIES = """
select count(*) as waiting, min(next_at) - due_now() as due_in from (
  select next_at from deliveries /*sqlite indexed by deliveries_ready*/
  where webhook_id = $1 and state = 'ready' and retry = $2 order by next_at limit $3) as soonest
"""
ENDED = "d.state in ('exhausted', 'gone', 'cancelled', 'dead') and d.state = '{}'"


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which deliveries to replay: their ends, and when they were created, in microseconds UTC."""

    states: tuple[End, ...]
    since: int
    until: int


async def count(tx: Tx, webhook_id: str, query: Wanted) -> int:
    """Return the number of deliveries to replay."""
    rows = await _each(tx, webhook_id, query, "", "select count(*) as had", "")
    return sum(int(row["had"]) for row in rows)


async def page(tx: Tx, webhook_id: str, query: Wanted, after: str, size: int) -> Sequence[str]:
    """Return the ids of the next `size` deliveries behind `after`, the oldest first."""
    rows = await _each(
        tx, webhook_id, query, after, "select d.id", f"order by d.id limit {int(size)}"
    )
    return sorted(str(row["id"]) for row in rows)[:size]


async def retries(tx: Tx, webhook_id: str, most: int) -> tuple[int, int]:
    """Return how many failed deliveries have a next attempt, up to `most`, and in how many µs."""
    row = await tx.one(RETRIES, webhook_id, True, most)
    if row is None or not row["waiting"]:
        return 0, 0
    return int(row["waiting"]), max(int(row["due_in"]), 0)


async def _each(
    tx: Tx, webhook_id: str, query: Wanted, after: str, columns: str, ending: str
) -> list[Row]:
    """Query each end separately, because each is a range of an index."""
    states = ", ".join(f"'{state}'" for state in query.states)
    since, until = first_at(query.since), first_at(query.until)
    first = max(after, since)
    rows: list[Row] = []
    for state in query.states:
        delivered = state == "delivered"
        index = "deliveries_log" if delivered else "deliveries_ended"
        where = "d.state = 'delivered'" if delivered else ENDED.format(state)
        sql = CANDIDATES.format(index=index, state=where, states=states)
        rows += await tx.all(f"{columns} {sql} {ending}", webhook_id, first, until, since)
    return rows
