"""Claim due deliveries: owners take turns, then the lanes of each, within the capacity."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from outbox.database.sql import ITEMS, items
from outbox.database.transaction import Row, Tx
from outbox.durations import SECOND
from outbox.queue.drain import owner_limits, owners, probes
from outbox.queue.drain.loading import endpoints_of, load
from outbox.queue.state import lanes
from outbox.queue.state.claimed_deliveries import (
    FAILING_WINDOW,
    FIRST_WINDOW,
    MOST_ATTEMPTS,
    Capacity,
    Claimed,
    Endpoint,
)
from outbox.queue.state.fair_shares import ClaimSlots, divide

# When this worker has no capacity for a lane, it checks the lane again after one of its sends is
# recorded, and at the latest after this time.
BUSY = 30 * SECOND
# The delay when the memory for large bodies is used up.
CROWDED = SECOND
LANES_AT_ONCE = 256
CLAIMS_AT_ONCE = {"sqlite": 128, "postgres": 10_000}
"""The limit of one claim; on SQLite the event loop runs nothing else during a claim."""
RETRY_SHARE = 4
"""One in this many places of a lane goes to a retry while first attempts wait too."""
DUE_LANES = f"""
select * from (
  select {owners.LANE} from lanes
  where active and due_at is not null and failing = true and due_at <= (select due_now())
  order by due_at limit $1 /*postgres for update skip locked*/
) as failing_lanes
union all
select * from (
  select {owners.LANE} from lanes
  where active and due_at is not null and failing = false and due_at <= (select due_now())
  order by due_at limit $2 /*postgres for update skip locked*/
) as healthy_lanes
"""

# Two ranges of one index. First attempts come before retries, apart from the $5 places for retries.
# The outer statement names only ids: with a condition on `state` beside them PostgreSQL may start
# from all rows in that state, when its statistics are from an empty queue. A damaged number that
# cannot be incremented must not fail the claim of the other rows.
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

# The lane goes behind all lanes that are due now, so that lanes take turns.
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
    """The result of a claim and the time until the next useful claim.

    `more`: claim again at once. `wait_us`: microseconds until a lane with capacity is due, negative
    when one is due already but could not be claimed. `crowded`: lanes wait only for lack of
    capacity.
    """

    claimed: list[Claimed] = field(default_factory=list)
    endpoints: Mapping[str, Endpoint] = field(default_factory=dict)
    more: bool = False
    wait_us: int | None = None
    crowded: bool = False


@dataclass(slots=True)
class _Lane:
    """A due, locked lane: the rest of its window, and the numbers requested and claimed.

    `open_for`: microseconds since its receiver, rate or circuit stopped holding it, `rate_open`
    since its rate did. `probe_in`: microseconds until a probe is due; None while its circuit is
    closed.
    """

    webhook_id: str
    owner_id: str
    served: int
    window: int
    open_for: int
    rate_open: int
    probe_in: int | None
    concurrency: int | None
    rate: int | None
    requested: int = 0
    got: int = 0

    @property
    def held(self) -> bool:
        """Whether only what passes its pause or its open circuit may go."""
        return self.probe_in is not None or self.open_for < 0

    def share(self) -> int:
        """Return how many of the requested places belong to retries."""
        return (self.served + self.requested) // RETRY_SHARE - self.served // RETRY_SHARE


async def claim(
    tx: Tx, capacity: Capacity, preclaimed: Mapping[str, int], at_once: int | None = None
) -> Taken:
    """Claim due deliveries within `capacity`, at most `at_once` of them.

    `preclaimed` counts the claims of fan-out by webhook. A few deliveries of failing webhooks go
    first, and all of these together get at most a share, so that neither failing nor healthy
    webhooks keep the others waiting. The further places of `capacity` are for healthy webhooks.
    """
    new = sum(preclaimed.values())
    slots = max(capacity.slots - new, 0)
    further = capacity.shares.further - max(new - capacity.slots, 0)
    if slots <= 0 and further <= 0:
        return Taken(crowded=True)
    limit = at_once or CLAIMS_AT_ONCE[tx.engine]
    most = min(slots, limit)
    further = max(min(further, limit - most), 0)
    places = ClaimSlots(most, further, capacity.shares)
    failing, healthy, all_seen = await _due(tx, places, capacity, preclaimed)
    await owner_limits.narrow(tx, (*failing, *healthy))
    first = divide(failing, places, min(capacity.failing_first, most))
    count = first + divide(healthy, places, most + further)
    count += divide(failing, places, min(capacity.failing_slots - first, places.left))
    by_id = {lane.webhook_id: lane for lane in (*failing, *healthy)}
    requests = [lane for lane in by_id.values() if lane.requested and not lane.held]
    ids: list[str] = []
    for row in await tx.many(
        CLAIM,
        [
            (capacity.claim, capacity.node_id, lane.webhook_id, lane.requested, lane.share())
            for lane in requests
        ],
    ):
        ids.append(row["id"])
        by_id[row["webhook_id"]].got += 1
    probing = {lane.webhook_id: lane for lane in by_id.values() if lane.requested and lane.held}
    probe_claims = await probes.take(tx, capacity, probing) if probing else probes.NONE
    for delivery_id, webhook_id in probe_claims.webhooks.items():
        ids.append(delivery_id)
        by_id[webhook_id].got += 1
    loaded, crowded = await load(tx, ids, capacity, by_id, probe_claims.probes)
    for webhook_id in crowded:
        # What was released gets no request: it uses up neither a turn nor the rate.
        by_id[webhook_id].got = sum(delivery.webhook_id == webhook_id for delivery in loaded)
    await _put_back(tx, by_id.values(), crowded)
    endpoints = await endpoints_of(tx, {delivery.webhook_id for delivery in loaded})
    # Count claimed rows, so that unused places go to later lanes.
    if places.left <= 0 and len(ids) >= count:
        return Taken(loaded, endpoints, more=most < slots, crowded=most == slots)
    failing_too = capacity.failing_slots > sum(lane.got for lane in failing)
    more = places.left > 0 and not (all_seen[False] and (all_seen[True] or not failing_too))
    return Taken(loaded, endpoints, more, await lanes.soonest(tx, failing_too))


def _lanes_for(slots: int) -> int:
    """Return how many lanes to examine: some have no window left, and each one gets locked."""
    return min(LANES_AT_ONCE, 2 * slots + 8) if slots > 0 else 0


async def _due(
    tx: Tx, places: ClaimSlots, capacity: Capacity, preclaimed: Mapping[str, int]
) -> tuple[list[_Lane], list[_Lane], dict[bool, bool]]:
    """Return the failing and the healthy lanes whose turn it may be, locked, longest waiting first.

    Return also by `failing` whether these are all that are due.
    """
    slots = places.left
    limits = {
        True: _lanes_for(min(capacity.failing_slots, slots)),
        False: _lanes_for(slots) or _lanes_for(places.further),
    }
    rows: dict[bool, list[Row]] = {True: [], False: []}
    if slots:
        for row in await tx.all(DUE_LANES, limits[True], limits[False]):
            rows[bool(row["failing"])].append(row)
    due: dict[bool, list[_Lane]] = {}
    for failing, oldest in rows.items():
        limit = limits[failing]
        hidden: list[Row] = []
        if limit and (not slots or len(oldest) == limit):
            seen = {row["owner_id"] for row in oldest}
            hidden = await owners.hidden(tx, failing, limit, places, seen)
        by_id = {row["webhook_id"]: row for row in (*oldest, *hidden)}
        due[failing] = [
            _lane(row, capacity, preclaimed)
            for row in sorted(by_id.values(), key=lambda row: int(row["due_at"]))
        ]
    return due[True], due[False], {f: len(oldest) < limits[f] for f, oldest in rows.items()}


def _lane(row: Row, capacity: Capacity, preclaimed: Mapping[str, int]) -> _Lane:
    webhook_id = row["webhook_id"]
    window = capacity.windows.get(webhook_id, FAILING_WINDOW if row["failing"] else FIRST_WINDOW)
    window -= preclaimed.get(webhook_id, 0)
    probe_in = row["probe_in"]
    if probe_in is not None or row["open_for"] < 0:
        window = min(window, 1)
    return _Lane(
        webhook_id=webhook_id,
        owner_id=row["owner_id"],
        served=row["served"],
        window=max(window, 0),
        open_for=row["open_for"],
        rate_open=row["rate_open"],
        probe_in=probe_in,
        concurrency=row["concurrency"],
        rate=row["rate"],
    )


async def _put_back(tx: Tx, due: Collection[_Lane], crowded: frozenset[str]) -> None:
    """Give each examined lane its next time; those without a place keep their turn."""
    turned: list[tuple[str, int, int]] = []
    rested: list[str] = []
    for lane in due:
        if lane.webhook_id in crowded:
            turned.append((lane.webhook_id, lane.got, CROWDED))
        elif lane.requested == lane.window and lane.got == lane.requested:
            turned.append((lane.webhook_id, lane.got, BUSY))
        elif lane.requested:
            turned.append((lane.webhook_id, lane.got, 0))
            if lane.got < lane.requested:
                rested.append(lane.webhook_id)
        elif lane.rate is not None and lane.open_for < 0:
            # Its limits leave no room: it waits for them.
            rested.append(lane.webhook_id)
    if turned:
        await tx.run(TURN, items(turned))
    await owner_limits.hold(tx, due)
    await lanes.rest(tx, rested)
