"""Choose the events that a webhook should get again, or for the first time, in their order.

The order and the place in it are those of `seq`: ids and times let late commits hide.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from outbox.database.plans import by_index
from outbox.database.sql import items
from outbox.database.transaction import Tx
from outbox.states import End
from outbox.webhooks import conditions, subscription
from outbox.webhooks.conditions import Condition

PAGE = 1_000
"""Events of one statement."""
SLACK = 86_400_000_000
"""Microseconds by which an earlier event may have a later time, because a clock was set back."""
BODIES = 100
"""Bodies in memory at a time."""
NEAR = 1_000
"""The search for the first event ends this near to it."""
UNDECIDED = frozenset({"ready", "in_flight", "held", "delivered"})
"""States after which an event is not recovered, unless the state is an end that was chosen."""

_OWN = "owner_id = $1 and webhook_id is null and seq is not null"
_NEXT = f"select seq, occurred_at from events where {_OWN} and seq > $2 order by seq limit 1"
_PAGE = f"""
select id, seq, name, occurred_at, erased_at from events
where {_OWN} and seq > $2 and seq <= $3 order by seq limit {PAGE}
"""
# An array on PostgreSQL, which may otherwise walk the ids for each row of the table.
OF_IDS = (
    "/*sqlite in (select value from json_each($1))*/"
    " /*postgres = any (array(select json_array_elements_text(cast($1 as json))))*/"
)
# Two probes for each event, because each of the two indexes has a part of the deliveries.
_DELIVERIES = f"""
select event_id, id, state from deliveries /*sqlite indexed by deliveries_once*/
where event_id {OF_IDS} and webhook_id = $2 and origin = 'event'
union all
select event_id, id, state from deliveries /*sqlite indexed by deliveries_again*/
where event_id {OF_IDS} and webhook_id = $2 and origin <> 'event'
"""


_BODIES = f"select id, body from events where id {OF_IDS}"
_SUBSCRIBED = "select events, conditions from webhooks where id = $1"


@dataclass(frozen=True, slots=True)
class Choice:
    """Which events of an owner, for one webhook; `since` and `until` are microseconds UTC.

    With `ends`, those whose last delivery has ended so; without, those that have no delivery. No
    event behind `last_seq` is chosen, and none for which the `conditions` do not hold.
    """

    owner_id: str
    webhook_id: str
    ends: tuple[End, ...]
    names: frozenset[str] | None
    since: int
    until: int
    last_seq: int
    conditions: tuple[Condition, ...] = ()


@dataclass(frozen=True, slots=True)
class Found:
    """Chosen events in their order, and the place up to which events were looked at.

    `erased` counts those whose body was erased. `more`: events follow.
    """

    events: Sequence[str]
    place: int
    erased: int
    more: bool


async def within(tx: Tx, choice: Choice) -> Choice:
    """Return the choice of a backfill within what its webhook subscribes to now.

    What failed is recovered whatever the webhook subscribes to now: it was for the webhook once.
    """
    if choice.ends:
        return choice
    row = await tx.one(_SUBSCRIBED, choice.webhook_id)
    names = frozenset((subscription(row["events"]) if row else None) or ())
    judged = conditions.of(row) if row else None
    if judged is None:
        names = frozenset()
    chosen = names if choice.names is None else names & choice.names
    return replace(choice, names=chosen, conditions=judged or ())


async def start(tx: Tx, choice: Choice) -> int:
    """Return a place before the first event of the choice, near to it."""
    low, high = 0, choice.last_seq
    while high - low > NEAR:
        middle = (low + high) // 2
        row = await tx.one(_NEXT, choice.owner_id, middle)
        if row is None or row["occurred_at"] >= choice.since - SLACK:
            high = middle
        else:
            low = max(middle, min(int(row["seq"]), high))
    return low


async def look(tx: Tx, choice: Choice, place: int, most: int) -> Found:
    """Look at a page of events behind `place`; return up to `most` chosen ones."""
    await by_index(tx)
    page = await tx.all(_PAGE, choice.owner_id, place, choice.last_seq)
    fitting = [
        row
        for row in page
        if choice.since <= row["occurred_at"] < choice.until
        and (choice.names is None or row["name"] in choice.names)
    ]
    wanted = await undelivered(tx, choice, [row["id"] for row in fitting])
    if choice.conditions and wanted:
        wanted = await _judged(tx, choice, wanted)
    events: list[str] = []
    last, erased = place, 0
    for row in fitting:
        if row["id"] not in wanted:
            continue
        if len(events) == most:
            return Found(events, last, erased, True)
        last = int(row["seq"])
        if row["erased_at"] is None:
            events.append(row["id"])
        else:
            erased += 1
    more = len(page) == PAGE
    return Found(events, int(page[-1]["seq"]) if more else choice.last_seq, erased, more)


async def undelivered(tx: Tx, choice: Choice, events: Collection[str]) -> frozenset[str]:
    """Return those of these events whose deliveries at the webhook fit the choice."""
    if not events:
        return frozenset()
    states: dict[str, list[tuple[str, str]]] = {event_id: [] for event_id in events}
    for row in await tx.all(_DELIVERIES, items(sorted(events)), choice.webhook_id):
        states[row["event_id"]].append((row["id"], row["state"]))
    return frozenset(one for one in events if _fits(states[one], choice.ends))


async def _judged(tx: Tx, choice: Choice, events: Collection[str]) -> frozenset[str]:
    """Return those of these events for which the conditions hold."""
    ids = sorted(events)
    held: list[str] = []
    for first in range(0, len(ids), BODIES):
        for row in await tx.all(_BODIES, items(ids[first : first + BODIES])):
            body = None if row["body"] is None else bytes(row["body"])
            if conditions.hold(choice.conditions, conditions.data_of(body)):
                held.append(row["id"])
    return frozenset(held)


def _fits(deliveries: Sequence[tuple[str, str]], ends: Sequence[End]) -> bool:
    """Judge by the last delivery that was accepted, may be yet, or ended as chosen."""
    if not ends:
        return not deliveries
    known: Mapping[str, str] = dict(deliveries)
    counting = [one for one in known if known[one] in UNDECIDED or known[one] in ends]
    return bool(counting) and known[max(counting)] in ends
