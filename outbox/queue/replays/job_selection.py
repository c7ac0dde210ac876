"""Choose the events that a webhook should get again, or for the first time, in their order.

Order and place are those of `seq`: in the order of ids or times, late commits would be missed.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from outbox.database.index_plans import by_index
from outbox.database.sql import AMONG_IDS, items
from outbox.database.transaction import Row, Tx
from outbox.durations import DAY
from outbox.queue.state import deletion_marks, fanout_remainders
from outbox.states import End
from outbox.webhooks import conditions, subscription
from outbox.webhooks.conditions import Condition, Facts, stored_facts

PAGE = 1_000
"""Most events of one statement."""
FIRST = 100
"""Events of the first statement of a search; each page is twice as large as the one before."""
SLACK = DAY
"""Microseconds by which an earlier event may have a later time, because a clock was set back."""
BODIES = 100
BODIES_BYTES = 1024 * 1024
"""Bodies of one statement, by number and by size, besides its first one."""
JUDGED_BYTES = 4 * 1024 * 1024
"""Bytes of bodies that one `look` reads, besides those of its last statement."""
NEAR = 1_000
"""The search for the first event ends when it is this near."""
UNDECIDED = frozenset({"ready", "in_flight", "held", "delivered"})
"""States after which an event is not recovered, unless the selection has the state as an end."""

_OWN = "owner_id = $1 and webhook_id is null and seq is not null"
_NEXT = f"select seq, occurred_at from events where {_OWN} and seq > $2 order by seq limit 1"
_PAGE = f"""
select id, seq, name, occurred_at, erased_at from events
where {_OWN} and seq > $2 and seq <= $3 order by seq limit $4
"""
# Two probes for each event, because each of the two indexes has a part of the deliveries.
_DELIVERIES = f"""
select event_id, id, state, nth, coalesce(sequence, repeats) as sequence
from deliveries /*sqlite indexed by deliveries_once*/
where event_id {AMONG_IDS} and webhook_id = $2 and origin = 'event'
union all
select event_id, id, state, nth, coalesce(sequence, repeats) as sequence
from deliveries /*sqlite indexed by deliveries_again*/
where event_id {AMONG_IDS} and webhook_id = $2 and origin <> 'event'
"""


_SIZES = f"select id, length(body) as size from events where id {AMONG_IDS}"
_BODIES = f"select id, body, body_digest, record_fields from events where id {AMONG_IDS}"
_SUBSCRIBED = "select events, conditions from webhooks where id = $1"


@dataclass(frozen=True, slots=True)
class Selection:
    """Which events of an owner, for one webhook; `since` and `until` are microseconds UTC.

    With `ends`, those whose last delivery ended with one of them; without, those behind
    `deleted_upto` that have no delivery. Never chosen are events behind `last_seq` and those for
    which the `conditions` do not hold.
    """

    owner_id: str
    webhook_id: str
    ends: tuple[End, ...]
    names: frozenset[str] | None
    since: int
    until: int
    last_seq: int
    conditions: tuple[Condition, ...] = ()
    deleted_upto: int = 0


@dataclass(frozen=True, slots=True)
class EventPage:
    """Chosen events in their order, and the place up to which events were read.

    `erased` counts those whose body was erased. `more`: events follow.
    """

    events: Sequence[str]
    place: int
    erased: int
    more: bool


async def within(tx: Tx, selection: Selection) -> Selection:
    """Limit the selection of a backfill to what its webhook subscribes to and may still get.

    Failed deliveries are recovered whatever the webhook subscribes to now.
    """
    if selection.ends:
        return selection
    row = await tx.one(_SUBSCRIBED, selection.webhook_id)
    names = frozenset((subscription(row["events"]) if row else None) or ())
    criteria = conditions.of(row) if row else None
    if criteria is None:
        names = frozenset()
    chosen_names = names if selection.names is None else names & selection.names
    upto = await deletion_marks.upto(tx, selection.webhook_id)
    return replace(selection, names=chosen_names, conditions=criteria or (), deleted_upto=upto)


async def start(tx: Tx, selection: Selection) -> int:
    """Return a place before the first event of the selection, near to it."""
    low, high = 0, selection.last_seq
    while high - low > NEAR:
        middle = (low + high) // 2
        row = await tx.one(_NEXT, selection.owner_id, middle)
        if row is None or row["occurred_at"] >= selection.since - SLACK:
            high = middle
        else:
            low = max(middle, min(int(row["seq"]), high))
    return low


async def look(tx: Tx, selection: Selection, place: int, most: int, size: int = FIRST) -> EventPage:
    """Read a page of events behind `place`; return up to `most` chosen ones.

    The page has `size` events, or `most` if these are more, and PAGE at most.
    """
    await by_index(tx)
    size = min(max(size, most), PAGE)
    place = max(place, selection.deleted_upto)
    last_seq = selection.last_seq
    if not selection.ends:
        # Fan-out may still make deliveries of these events, so the job waits for it.
        unfinished = await fanout_remainders.first_of(tx, selection.owner_id)
        if unfinished is not None:
            last_seq = min(last_seq, unfinished - 1)
    page = await tx.all(_PAGE, selection.owner_id, place, last_seq, size)
    fitting = [
        row
        for row in page
        if selection.since <= row["occurred_at"] < selection.until
        and (selection.names is None or row["name"] in selection.names)
    ]
    missing = await undelivered(tx, selection, [row["id"] for row in fitting])
    rows = [row for row in fitting if row["id"] in missing]
    upto = None
    if selection.conditions and rows:
        rows, upto = await _fulfilling(tx, selection.conditions, rows, most)
    events: list[str] = []
    last, erased = place, 0
    for row in rows:
        if len(events) == most:
            return EventPage(events, last, erased, True)
        last = int(row["seq"])
        if row["erased_at"] is None:
            events.append(row["id"])
        else:
            erased += 1
    if upto is not None:
        return EventPage(events, upto, erased, True)
    if len(page) == size:
        return EventPage(events, int(page[-1]["seq"]), erased, True)
    return EventPage(events, max(place, last_seq), erased, last_seq < selection.last_seq)


@dataclass(frozen=True, slots=True)
class Next:
    """The next delivery of an event: its `nth`, and the number that it repeats."""

    nth: int = 0
    repeats: int | None = None


async def undelivered(tx: Tx, selection: Selection, events: Collection[str]) -> dict[str, Next]:
    """Return those of these events whose deliveries at the webhook fit the selection."""
    if not events:
        return {}
    deliveries: dict[str, list[Row]] = {event_id: [] for event_id in events}
    for row in await tx.all(_DELIVERIES, items(sorted(events)), selection.webhook_id):
        deliveries[row["event_id"]].append(row)
    return {
        event_id: _after(rows)
        for event_id, rows in deliveries.items()
        if _fits(rows, selection.ends)
    }


async def _fulfilling(
    tx: Tx, criteria: Sequence[Condition], rows: Sequence[Row], most: int
) -> tuple[list[Row], int | None]:
    """Return those of these events for which the conditions hold; stop at more than `most`.

    Return also the place of the last evaluated event, None when all were evaluated.
    """
    sizes = {
        row["id"]: int(row["size"] or 0)
        for row in await tx.all(_SIZES, items(sorted(row["id"] for row in rows)))
    }
    fitting: list[Row] = []
    read = done = 0
    while done < len(rows):
        group, size = [rows[done]], sizes.get(rows[done]["id"], 0)
        for row in rows[done + 1 : done + BODIES]:
            size += sizes.get(row["id"], 0)
            if size > BODIES_BYTES:
                break
            group.append(row)
        facts = await _facts(tx, [row["id"] for row in group])
        fitting += [
            row
            for row in group
            if row["id"] in facts and conditions.hold(criteria, facts[row["id"]])
        ]
        read += sum(sizes.get(row["id"], 0) for row in group)
        done += len(group)
        if done < len(rows) and (len(fitting) > most or read >= JUDGED_BYTES):
            return fitting, int(group[-1]["seq"])
    return fitting, None


async def _facts(tx: Tx, ids: Sequence[str]) -> dict[str, Facts | None]:
    rows = await tx.all(_BODIES, items(sorted(ids)))
    return {row["id"]: stored_facts(row, row["body"]) for row in rows}


def _after(deliveries: Sequence[Row]) -> Next:
    nth = max((int(row["nth"]) for row in deliveries), default=-1) + 1
    return Next(nth, max((row["sequence"] or 0 for row in deliveries), default=0) or None)


def _fits(deliveries: Sequence[Row], ends: Sequence[End]) -> bool:
    """Return whether the last delivery that is accepted, unfinished or in `ends` has such an end.

    The last one has the greatest number: ids follow the wall clock, which may go back.
    """
    if not ends:
        return not deliveries
    counting = [row for row in deliveries if row["state"] in UNDECIDED or row["state"] in ends]
    last = max(counting, key=lambda row: (row["nth"], row["id"]), default=None)
    return last is not None and last["state"] in ends
