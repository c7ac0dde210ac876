"""Read an owner's events, newest first, with filters: by name, time, record and request.

A filter that no index serves is judged row by row, and a page then ends after a number of rows: it
may be short and still have a next page.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from outbox.database.index_plans import by_index
from outbox.database.sql import IDS, items
from outbox.database.transaction import Row, Tx
from outbox.durations import MINUTE
from outbox.events import event_index
from outbox.ids import first_at

SCANNED = 5_000
"""Events that one round examines."""
NO_TIME = 2**62
END = 2**62

_OWN = "e.owner_id = $1 and e.webhook_id is null and e.seq is not null"
COLUMNS = """e.id, e.seq, e.name, e.record_id, e.record_version, e.webhook_id, e.occurred_at,
  e.request_id, e.erased_at, length(e.body) as size"""
PAGE = f"""
select {COLUMNS}, {{hit}} as hit from events e
where {_OWN} and e.seq < $2 and e.seq >= $4 order by e.seq desc limit $3
"""
OF_SEQS = f"""
select {COLUMNS} from events e
where e.seq /*sqlite in*/ /*postgres = any (array*/
    (select cast(value as bigint) from {IDS} as given) /*postgres )*/
  and e.owner_id = $2 and e.webhook_id is null and {{judged}} order by e.seq desc
"""
REACHED = "select occurred_at from events where seq >= $1 order by seq limit 1"
ONE = f"select {COLUMNS} from events e where e.id = $1 and e.owner_id = $2"
# Events of all owners, because the search for one of a rare owner would read many rows.
NEWEST_BEFORE = """
select seq from events where id < $1 and seq is not null order by id desc limit 1
"""
OVERLAP_US = MINUTE
"""Ids and `seq` differ in their order by less than a transaction may last."""


@dataclass(frozen=True, slots=True)
class Listed:
    """One event without its body; `size` is that of the body in bytes. Times are microseconds."""

    id: str
    seq: int | None
    name: str
    record_id: str
    record_version: int
    webhook_id: str | None
    occurred_at: int
    request_id: str | None
    erased_at: int | None
    size: int | None


@dataclass(frozen=True, slots=True)
class EventQuery:
    """Which events; an empty text means all. `cause` is the id of a record or of a request."""

    name: str = ""
    cause: str = ""
    since: int = 0
    until: int = NO_TIME

    def fits(self, event: Listed) -> bool:
        """Return whether an event matches, whatever `cause` says."""
        return self.name in ("", event.name) and self.since <= event.occurred_at < self.until


@dataclass(frozen=True, slots=True)
class HistoryPage:
    """One page; `after` is where the next one starts, None at the end.

    `searched` means that the page ended before it was full, because many events did not match.
    """

    events: Sequence[Listed]
    after: int | None
    searched: bool = False
    examined: int | None = None
    """When the last event that was examined occurred."""


async def one(tx: Tx, owner_id: str, event_id: str) -> Listed | None:
    """Return an event of the owner, a test event too."""
    row = await tx.one(ONE, event_id, owner_id)
    return None if row is None else _listed(row)


async def owner_of(tx: Tx, event_id: str) -> str | None:
    """Return the owner of an event."""
    row = await tx.one("select owner_id from events where id = $1", event_id)
    return None if row is None else str(row["owner_id"])


async def page(
    tx: Tx, owner_id: str, query: EventQuery, after: int | None = None, size: int = 50
) -> HistoryPage:
    """Return a page of the events that match, without test events."""
    await by_index(tx)
    before = END if after is None else after
    if after is None and query.until < NO_TIME:
        before = await _before(tx, query.until)
    # The newest events alone have no marks, so these are read one by one.
    floor = await event_index.marked(tx) if query.cause else 0
    if before <= floor:
        return await _marked(tx, owner_id, query, before, size)
    values: list[Any] = [owner_id, before, 0, floor]
    judged = _judged(values, query)
    hit = f"case when {' and '.join(judged)} then 1 else 0 end" if judged else "1"
    most = SCANNED if judged else size + 1
    values[2] = most
    rows = await tx.all(PAGE.format(hit=hit), *values)
    events = [_listed(row) for row in rows if row["hit"]]
    if len(events) > size:
        return HistoryPage(events[:size], events[size - 1].seq)
    examined = rows[-1]["occurred_at"] if rows else tx.now
    if examined < query.since - OVERLAP_US or (len(rows) < most and not floor):
        return HistoryPage(events, None)
    following = floor if len(rows) < most else rows[-1]["seq"]
    return HistoryPage(events, following, len(events) < size, examined)


def _judged(values: list[Any], query: EventQuery) -> list[str]:
    judged = []
    if query.name:
        values.append(query.name)
        judged.append(f"e.name = ${len(values)}")
    if query.cause:
        values += [query.cause.lower(), query.cause]
        judged.append(f"(e.record_id = ${len(values) - 1} or e.request_id = ${len(values)})")
    if query.until < NO_TIME:
        values.append(query.until)
        judged.append(f"e.occurred_at < ${len(values)}")
    if query.since > 0:
        values.append(query.since)
        judged.append(f"e.occurred_at >= ${len(values)}")
    return judged


async def _marked(tx: Tx, owner_id: str, query: EventQuery, before: int, size: int) -> HistoryPage:
    """Return a page of events that marks lead to."""
    seqs, following = await event_index.places(tx, query.cause.lower(), query.cause, before)
    if len(seqs) > size:
        seqs = seqs[:size]
        following = seqs[-1]
    values: list[Any] = [items(seqs), owner_id]
    conditions = " and ".join(_judged(values, query))
    rows = await tx.all(OF_SEQS.format(judged=conditions), *values) if seqs else []
    events = [_listed(row) for row in rows]
    if following is None:
        return HistoryPage(events, None)
    reached = await tx.one(REACHED, following)
    examined = tx.now if reached is None else int(reached["occurred_at"])
    if examined < query.since - OVERLAP_US:
        return HistoryPage(events, None)
    return HistoryPage(events, following, len(events) < size, examined)


async def _before(tx: Tx, until: int) -> int:
    row = await tx.one(NEWEST_BEFORE, first_at(until + OVERLAP_US))
    return 0 if row is None else int(row["seq"]) + 1


def _listed(row: Row) -> Listed:
    return Listed(
        id=row["id"],
        seq=row["seq"],
        name=row["name"],
        record_id=row["record_id"],
        record_version=row["record_version"],
        webhook_id=row["webhook_id"],
        occurred_at=row["occurred_at"],
        request_id=row["request_id"],
        erased_at=row["erased_at"],
        size=row["size"],
    )
