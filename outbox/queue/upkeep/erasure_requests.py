"""Store requests to erase a person, and find the events of each one."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from outbox.database.index_plans import by_index
from outbox.database.moving_owners import is_here
from outbox.database.sql import IDS, ITEMS, items
from outbox.database.transaction import Tx
from outbox.queue.state import fanout_remainders

DAMAGED = "the request is stored in a damaged row"
PAGE = 1_000
"""Requests that one read returns."""
WORK = 200
"""Statements and rows of one `look` for events; at least one request is looked through."""
HALVINGS = 8
"""After so many halvings a unit is one row."""

REQUEST = """
insert into erasures (id, owner_id, record_ids, kept_names, upto_pos, seq, created_at, subject)
values ($1, $2, $3, $4, (select coalesce(max(pos), 0) from events), 0, $5, $6)
"""
ANY_OPEN = "select 1 as one from erasures where error is null and done_at is null limit 1"
OPEN = f"""
select id, owner_id, record_ids, kept_names, upto_pos, seq, subject, put_aside from erasures
where id > $1 and error is null and done_at is null and {is_here("erasures.owner_id")}
order by id limit $2
"""
PUT_ASIDE = "update erasures set put_aside = put_aside + 1 where id = $1 and put_aside < $2"
FAIL = "update erasures set error = $2 where id = $1"
# Until fan-out sees them, events from before a request may come later in the order of the feed.
UNSEEN = "select pos from events where seq is null order by pos limit 1"
LAST = "select seq from outbox_state"
# One range of each of the two partial indexes on the record: the events of the feed, and those that
# snapshots made for a webhook. PostgreSQL sorts both together, so each is limited; SQLite merges
# them.
_LOOK = """
/*postgres (*/
select id, seq, name, length(body) as size from events /*sqlite indexed by {}*/
where owner_id = $1 and record_id = $2 and seq > $3 and seq <= $4
  and {} is {} null and seq is not null
/*postgres order by seq limit $5)*/
"""
LOOK = f"""
{_LOOK.format("events_record", "webhook_id", "")} union all
{_LOOK.format("events_about", "about_id", "not")} order by seq limit $5
"""
DONE = f"delete from erasures where id in {IDS} and subject is null"
FINISHED = f"update erasures set done_at = $2 where id in {IDS} and subject is not null"
COUNT = f"""
update erasures set events = erasures.events + s.events,
  deliveries = erasures.deliveries + s.deliveries, answers = erasures.answers + s.answers
from (select value ->> 0 as id, cast(value ->> 1 as bigint) as events,
  cast(value ->> 2 as bigint) as deliveries, cast(value ->> 3 as bigint) as answers
  from {ITEMS}) as s
where erasures.id = s.id
"""
UNDONE = f"select distinct subject from erasures where subject in {IDS} and done_at is null"
DROP_DAMAGED = "delete from erasures where subject = $1 and error is not null"
TAKE = """
delete from erasures where id in (
  select id from erasures where subject = $1 and done_at is not null order by id limit $2
) returning events, deliveries, answers
"""
ANY_EVENT = """
select 1 as one from events where owner_id = $1 and record_id = $2 and name = $3
  and webhook_id is null and seq is not null limit 1
"""
MOVE = f"""
update erasures set seq = s.reached
from (select value ->> 0 as id, cast(value ->> 1 as bigint) as reached from {ITEMS}) as s
where erasures.id = s.id
"""


@dataclass(frozen=True, slots=True)
class Request:
    """A request: the records about a person, and events that have no data about one."""

    id: str
    owner_id: str
    record_ids: tuple[str, ...]
    kept_names: tuple[str, ...]
    upto_pos: int
    seq: int
    subject: str | None = None
    put_aside: int = 0

    def part(self, most: int) -> int:
        """Return the size of a unit that has `most` at first: half as much for each failure."""
        return max(most >> self.put_aside, 1)


@dataclass(frozen=True, slots=True)
class Counts:
    """What requests erased: bodies of events, deliveries that waited, responses to attempts."""

    events: int = 0
    deliveries: int = 0
    answers: int = 0


@dataclass(slots=True)
class EventPage:
    """Events to erase, with the sizes of their bodies, and those of each request.

    `reached`: up to which place of the feed each request was looked through.
    """

    sizes: dict[str, int] = field(default_factory=dict)
    events: dict[str, set[str]] = field(default_factory=dict)
    reached: dict[str, int] = field(default_factory=dict)

    def counted(self, group: Sequence[Request]) -> Mapping[str, Sequence[str]]:
        """Return the requests that are counted, by the events that they erase."""
        whose: dict[str, list[str]] = {}
        for one in group:
            for event_id in self.events.get(one.id, ()) if one.subject is not None else ():
                whose.setdefault(event_id, []).append(one.id)
        return whose


async def request(
    tx: Tx,
    owner_id: str,
    record_ids: Sequence[str],
    kept_names: Sequence[str] = (),
    subject: str | None = None,
) -> None:
    """Request that the events of these records are erased soon, whatever their deliveries are.

    `kept_names` are events without personal data, such as the one of the removal. The caller holds
    the locks of the records, so that no earlier event of them commits later. With a `subject`, the
    request is kept with its counts until `take`.
    """
    await tx.run(
        REQUEST, tx.new_id(), owner_id, json.dumps(record_ids), json.dumps(kept_names), tx.now,
        subject,
    )  # fmt: skip


async def any_event(tx: Tx, owner_id: str, record_id: str, name: str) -> bool:
    """Return whether fan-out has seen an event of this record with this name."""
    await by_index(tx)
    return await tx.one(ANY_EVENT, owner_id, record_id, name) is not None


async def count(tx: Tx, found: Mapping[str, Counts]) -> None:
    """Add what was erased to the requests, by their ids."""
    if found:
        lines = [
            (one, counts.events, counts.deliveries, counts.answers)
            for one, counts in sorted(found.items())
        ]
        await tx.run(COUNT, items(lines))


async def undone(tx: Tx, subjects: Sequence[str]) -> set[str]:
    """Return those of the subjects that have a request which is not done, or is damaged."""
    return {row["subject"] for row in await tx.all(UNDONE, items(subjects))}


async def take(tx: Tx, subject: str, limit: int) -> list[Counts]:
    """Delete requests of a subject that are done, so many at most; return what each has erased."""
    rows = await tx.all(TAKE, subject, limit)
    return [Counts(int(one["events"]), int(one["deliveries"]), int(one["answers"])) for one in rows]


async def renew(
    tx: Tx, owner_id: str, record_ids: Sequence[str], kept_names: Sequence[str], subject: str
) -> None:
    """Request these records of a subject again, in place of its damaged requests."""
    await tx.run(DROP_DAMAGED, subject)
    await request(tx, owner_id, record_ids, kept_names, subject)


async def look(tx: Tx, group: Sequence[Request], ends: Mapping[str, int]) -> EventPage:
    """Return the next events of these requests, as far as WORK goes; `ends` limit their places."""
    await by_index(tx)
    page, work, enough = EventPage(), 0, min(request.part(WORK) for request in group)
    for request in group:
        if work >= enough:
            break
        most = max((enough - work) // len(request.record_ids) if request.record_ids else 0, 1)
        reached = ends[request.id]
        rows = []
        for record_id in request.record_ids:
            events = await tx.all(
                LOOK, request.owner_id, record_id, request.seq, ends[request.id], most
            )
            if len(events) == most:
                reached = min(reached, int(events[-1]["seq"]))
            rows += events
            work += 1 + len(events)
        hits = {
            row["id"]: row["size"] or 0
            for row in rows
            if row["seq"] <= reached and row["name"] not in request.kept_names
        }
        page.sizes |= hits
        page.events[request.id] = set(hits)
        page.reached[request.id] = reached
    return page


async def any_open(tx: Tx) -> bool:
    """Return whether there is a request."""
    return await tx.one(ANY_OPEN) is not None


async def next_open(tx: Tx, after: str) -> tuple[list[Request], list[tuple[str, str]], str]:
    """Return the next requests, id and owner of damaged ones, and where to go on, if so."""
    requests: list[Request] = []
    damaged: list[tuple[str, str]] = []
    rows = await tx.all(OPEN, after, PAGE)
    for row in rows:
        try:
            records, kept = (_texts(row[name]) for name in ("record_ids", "kept_names"))
            upto, seq = int(row["upto_pos"]), int(row["seq"])
        except (ValueError, TypeError):
            damaged.append((row["id"], row["owner_id"]))
        else:
            requests.append(
                Request(
                    id=row["id"],
                    owner_id=row["owner_id"],
                    record_ids=records,
                    kept_names=kept,
                    upto_pos=upto,
                    seq=seq,
                    subject=row["subject"],
                    put_aside=row["put_aside"],
                )
            )
    return requests, damaged, rows[-1]["id"] if len(rows) == PAGE else ""


def _texts(text: str) -> tuple[str, ...]:
    """Parse a list of texts. Raise ValueError, TypeError."""
    return tuple(msgspec.json.decode(text, type=list[str]))


async def put_aside(tx: Tx, request_id: str) -> bool:
    """Halve the next units of a request, and let others go first; return if they were larger."""
    return await tx.run(PUT_ASIDE, request_id, HALVINGS) == 1


async def fail(tx: Tx, request_id: str) -> None:
    """Mark a damaged request, so that it is not read again."""
    await tx.run(FAIL, request_id, DAMAGED)


async def limits(tx: Tx, owner_id: str) -> tuple[int | None, int, bool]:
    """Return the position of the first event that fan-out has not seen, and the end of the feed.

    The feed of this owner ends before a remainder of fan-out, which has not all its deliveries yet.
    The third value is whether there is a remainder.
    """
    await by_index(tx)
    unseen, row = await tx.one(UNSEEN), await tx.one(LAST)
    last = 0 if row is None else int(row["seq"])
    unfinished = await fanout_remainders.first_of(tx, owner_id)
    if unfinished is not None:
        last = min(last, unfinished - 1)
    return None if unseen is None else int(unseen["pos"]), last, unfinished is not None


async def settle(tx: Tx, done: Sequence[str], moved: Sequence[tuple[str, int]]) -> None:
    """End requests that are done, and store how far others were looked through."""
    if moved:
        await tx.run(MOVE, items(moved))
    if done:
        await tx.run(DONE, items(done))
        await tx.run(FINISHED, items(done), tx.now)
