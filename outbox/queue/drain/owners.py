"""Find the lanes of owners that the oldest due lanes of others hide.

A claim looks at the lanes that have been due the longest. When there are more of them than it
looks at, they may all belong to a few owners. Then it also goes from owner to owner, a bounded
number of steps, and looks at a few lanes of each; the next search continues where this one ended.
"""

from __future__ import annotations

from heapq import nsmallest

from outbox.database.sql import IDS, items
from outbox.database.transaction import Row, Tx
from outbox.queue.drain import owner_limits
from outbox.queue.state.fair_shares import ClaimSlots

OWNERS_AT_ONCE = 64
"""Steps of one search."""

LANE = f"""webhook_id, owner_id, served, failing, due_at,
  probe_at - (select due_now()) as probe_in, (select due_now()) - wait_until as open_for,
  (select due_now()) - rate_until as rate_open,
  {owner_limits.COLUMNS}"""
"""The columns of a due lane."""

# The first lane of the next owner. The order matches one index only: with another one PostgreSQL
# may read all lanes, when its statistics are from an empty queue.
_NEXT = """(
  select each.webhook_id from lanes each
  where each.active and each.due_at is not null and each.failing = $1 and each.owner_id > {after}
  order by each.owner_id, each.due_at limit 1)"""
STEPS = f"""
with recursive walked (owner_id, due_at, place) as (
  select owner_id, due_at, 1 from lanes where webhook_id = {_NEXT.format(after="$2")}
  union all
  select lanes.owner_id, lanes.due_at, walked.place + 1
  from walked join lanes on lanes.webhook_id = {_NEXT.format(after="walked.owner_id")}
  where walked.place < $3
)
select owner_id, due_at <= (select due_now()) as due from walked order by place
"""
# A list of owners and a few lanes of each, by one range of the index per owner.
OF_OWNERS = f"""
select {LANE} from {IDS} as owners
/*sqlite join lanes on webhook_id in (
  select each.webhook_id from lanes each where each.active and each.due_at is not null
    and each.failing = $2 and each.owner_id = owners.value and each.due_at <= (select due_now())
  order by each.due_at limit $3)*/
/*postgres cross join lateral (
  select * from lanes where active and due_at is not null and failing = $2
    and owner_id = owners.value and due_at <= (select due_now())
  order by due_at limit $3 for update skip locked) as lanes*/
"""


async def hidden(tx: Tx, failing: bool, most: int, places: ClaimSlots, seen: set[str]) -> list[Row]:
    """Return due lanes, locked, of those of the next owners who come first in the turns.

    They are of at most `most` owners, and at most `most` in all or three of each owner. `seen` are
    the owners whose lanes hide the others.
    """
    search = places.shares.search
    after = search.failing if failing else search.healthy
    steps = await tx.all(STEPS, failing, after, OWNERS_AT_ONCE)
    if after and len(steps) < OWNERS_AT_ONCE:
        first = await tx.all(STEPS, failing, "", OWNERS_AT_ONCE - len(steps))
        steps += [row for row in first if row["owner_id"] <= after]
    last = steps[-1]["owner_id"] if len(steps) == OWNERS_AT_ONCE else ""
    if failing:
        search.failing = last
    else:
        search.healthy = last
    due = [row["owner_id"] for row in steps if row["due"] and places.open_to(row["owner_id"])]
    if not due or (len(seen) == 1 and seen == set(due)):
        return []
    chosen = nsmallest(most, due, places.turn)
    return await tx.all(OF_OWNERS, items(chosen), failing, max(most // len(chosen), 3))
