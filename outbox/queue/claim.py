"""Taking due deliveries: lanes in turn, each with a fair part of the capacity."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from outbox.database.sql import ITEMS, items
from outbox.database.transaction import Tx
from outbox.queue import lanes
from outbox.queue.deliveries import (
    FAILING_WINDOW,
    FIRST_WINDOW,
    MOST_ATTEMPTS,
    Capacity,
    Claimed,
    Endpoint,
)
from outbox.queue.loading import endpoints_of, load

# A lane that this worker cannot serve now is looked at again when one of its sends settles; this
# is for the settle that never comes.
BUSY = 30_000_000
# Where the room for large bodies is used up, until some of it comes back.
CROWDED = 1_000_000
LANES_AT_ONCE = 256
RETRY_SHARE = 4
"""Of the places in a lane one in so many goes to a retry while first attempts wait too."""
DUE_LANES = """
select webhook_id, served from lanes
where active and due_at is not null and failing = $1 and due_at <= (select due_now())
order by due_at limit $2
/*postgres for update skip locked*/
"""

# Two ranges of one index. Of what waits first attempts go first, but for the $5 places of retries.
# The outer statement names ids alone: with a condition on `state` beside them PostgreSQL may start
# from all rows in that state, when its statistics are from an empty queue.
# A damaged number that cannot be raised must not fail the claim of the others.
CLAIM = f"""
update deliveries set state = 'in_flight', claim = $1, node_id = $2,
  attempts = case when attempts < {MOST_ATTEMPTS} then attempts + 1 else attempts end
where id /*sqlite in (*/ /*postgres = any (array(*/
  select id from (
    select id, retry, next_at, row_number() over (partition by retry order by next_at) as place
    from (
      select * from (
        select id, retry, next_at from deliveries
        where webhook_id = $3 and state = 'ready' and retry = false
          and next_at <= (select due_now())
        order by next_at limit $4 /*postgres for update skip locked*/
      ) as firsts
      union all
      select * from (
        select id, retry, next_at from deliveries
        where webhook_id = $3 and state = 'ready' and retry = true
          and next_at <= (select due_now())
        order by next_at limit $4 /*postgres for update skip locked*/
      ) as retries
    ) as due
  ) as placed
  order by case when retry and place <= $5 then 0 when retry then 2 else 1 end, next_at
  limit $4 /*sqlite )*/ /*postgres ))*/
returning id, webhook_id
"""

# Behind the others that are due by now: that makes the turns round.
TURN = f"""
update lanes set turned_at = (select due_now()), served = served + s.got,
  due_at = (select due_now()) + s.aside
from (
  select value ->> 0 as webhook, cast(value ->> 1 as bigint) as got,
    cast(value ->> 2 as bigint) as aside
  from {ITEMS}) as s
where lanes.webhook_id = s.webhook
"""


@dataclass(frozen=True, slots=True)
class Taken:
    """What a claim took, and when it is worth asking again.

    `more`: at once. `wait_us`: microseconds until a lane is due that there is room for, negative
    when one is due already but was not to be had. `crowded`: lanes wait for lack of room alone.
    """

    claimed: list[Claimed] = field(default_factory=list)
    endpoints: Mapping[str, Endpoint] = field(default_factory=dict)
    more: bool = False
    wait_us: int | None = None
    crowded: bool = False


@dataclass(slots=True)
class _Lane:
    """A due lane, locked: what its window has left, what it was asked for and what it gave."""

    webhook_id: str
    served: int
    window: int
    asked: int = 0
    got: int = 0

    def share(self) -> int:
        """How many of the places asked for are the retries'."""
        return (self.served + self.asked) // RETRY_SHARE - self.served // RETRY_SHARE


async def claim(tx: Tx, capacity: Capacity, born: Mapping[str, int]) -> Taken:
    """Take due deliveries within `capacity`; `born` counts what fan-out claimed, by webhook.

    Of webhooks whose last attempt failed a few go first and a share may go in all, so that neither
    they nor the healthy ones keep the others waiting.
    """
    slots = capacity.slots - sum(born.values())
    if slots <= 0:
        return Taken(crowded=True)
    failing = await _due(tx, True, min(capacity.failing_slots, slots), capacity, born)
    healthy = await _due(tx, False, slots, capacity, born)
    left = slots
    left -= _allot(failing, min(capacity.failing_first, left))
    left -= _allot(healthy, left)
    spent = sum(lane.asked for lane in failing)
    left -= _allot(failing, min(capacity.failing_slots - spent, left))
    by_id = {lane.webhook_id: lane for lane in (*failing, *healthy)}
    asks = [lane for lane in by_id.values() if lane.asked]
    ids: list[str] = []
    for row in await tx.many(
        CLAIM,
        [(capacity.claim, capacity.node_id, a.webhook_id, a.asked, a.share()) for a in asks],
    ):
        ids.append(row["id"])
        by_id[row["webhook_id"]].got += 1
    loaded, crowded = await load(tx, ids, capacity)
    await _put_back(tx, by_id.values(), crowded)
    endpoints = await endpoints_of(tx, {delivery.webhook_id for delivery in loaded})
    # By what was got: a lane that was due and had nothing leaves its places to those behind it.
    if len(ids) >= slots:
        return Taken(loaded, endpoints, crowded=True)
    failing_too = capacity.failing_slots > sum(lane.got for lane in failing)
    more = left > 0 and (
        len(healthy) == _lanes_for(slots)
        or (failing_too and len(failing) == _lanes_for(min(capacity.failing_slots, slots)))
    )
    return Taken(loaded, endpoints, more, await lanes.soonest(tx, failing_too))


def _lanes_for(slots: int) -> int:
    """How many lanes to look at: some have no window left, and each that is looked at is locked."""
    return min(LANES_AT_ONCE, 2 * slots + 8)


async def _due(
    tx: Tx, failing: bool, slots: int, capacity: Capacity, born: Mapping[str, int]
) -> list[_Lane]:
    """Lanes whose turn it is, locked, longest waiting first."""
    if slots <= 0:
        return []
    first = FAILING_WINDOW if failing else FIRST_WINDOW
    return [
        _Lane(
            row["webhook_id"], row["served"],
            max(capacity.windows.get(row["webhook_id"], first) - born.get(row["webhook_id"], 0), 0),
        )
        for row in await tx.all(DUE_LANES, failing, _lanes_for(slots))
    ]  # fmt: skip


def _allot(due: Sequence[_Lane], slots: int) -> int:
    """Give out `slots` places, one for each lane in turn while their windows last; how many."""
    left = slots
    open_lanes = [lane for lane in due if lane.asked < lane.window]
    while left > 0 and open_lanes:
        for lane in open_lanes[:left]:
            lane.asked += 1
        left -= min(left, len(open_lanes))
        open_lanes = [lane for lane in open_lanes if lane.asked < lane.window]
    return slots - max(left, 0)


async def _put_back(tx: Tx, looked_at: Iterable[_Lane], crowded: frozenset[str]) -> None:
    """Give each lane that was looked at its next time; those that got no place keep their turn."""
    turned: list[tuple[str, int, int]] = []
    rested: list[str] = []
    for lane in looked_at:
        if lane.webhook_id in crowded:
            turned.append((lane.webhook_id, lane.got, CROWDED))
        elif lane.asked == lane.window and lane.got == lane.asked:
            turned.append((lane.webhook_id, lane.got, BUSY))
        elif lane.asked:
            turned.append((lane.webhook_id, lane.got, 0))
            if lane.got < lane.asked:
                rested.append(lane.webhook_id)
    if turned:
        await tx.run(TURN, items(turned))
    await lanes.rest(tx, rested)
