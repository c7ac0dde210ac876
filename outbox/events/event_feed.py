"""Read the events feed: an owner's events in the order of `seq`, with the delivered bytes.

An event's id is its place in the feed, so a receiver can continue after its last event.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from outbox.database import times
from outbox.database.transaction import Row, Tx

SCANNED = 10_000
"""Events that one page examines for the requested names."""


class UnknownPlace(Exception):
    """`after` is not an event of this owner."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One event; `body` is None after the erasure of its person. Times are in microseconds UTC."""

    id: str
    name: str
    record_id: str
    record_version: int
    occurred_at: int
    request_id: str | None
    body: bytes | None
    erased_at: int | None


@dataclass(frozen=True, slots=True)
class FeedPage:
    """`place` is where to continue, None in an empty feed; `more`: whether events follow."""

    entries: list[Entry]
    place: str | None
    more: bool


_OWN = "owner_id = $1 and webhook_id is null and seq is not null"
_SEQ = "select seq from events where id = $1 and owner_id = $2"
_LAST = f"select id from events where {_OWN} order by seq desc limit 1"
_BOUND = f"select id, seq from events where {_OWN} and seq > $2 order by seq limit 1 offset $3"
_PAGE = f"""
select id, name, record_id, record_version, occurred_at, request_id, body, erased_at
from events where {_OWN} and seq > $2 and seq <= $3 and occurred_at >= $4 {{names}}
order by seq limit $5
"""
_END = 2**62
_EVER = -_END


async def page(
    tx: Tx,
    owner_id: str,
    *,
    after: str = "",
    names: Sequence[str] | None = None,
    age: int,
    limit: int,
) -> FeedPage:
    """Return up to `limit` events after the event `after`, no test events.

    With `names`, return only these: a page may then be short or empty and still have a next page.
    Without `after`, or after an event that was deleted because it is older than `age`, the page
    starts with the first event that is not. Raise UnknownPlace.
    """
    start, since = await _start(tx, owner_id, after, age)
    bound = None
    if names:
        bound = await tx.one(_BOUND, owner_id, start, SCANNED - 1)
    end = _END if bound is None else bound["seq"]
    rows: list[Row] = []
    if names is None or names:
        parameters = ", ".join(f"${n}" for n in range(6, 6 + len(names or ())))
        sql = _PAGE.format(names=f"and name in ({parameters})" if names else "")
        rows = await tx.all(sql, owner_id, start, end, since, limit + 1, *(names or ()))
    entries = [entry_of(row, row["body"]) for row in rows[:limit]]
    if len(rows) > limit:
        return FeedPage(entries, entries[-1].id, True)
    if bound is not None:
        return FeedPage(entries, bound["id"], True)
    last = await tx.one(_LAST, owner_id)
    return FeedPage(entries, after or None if last is None else last["id"], False)


async def _start(tx: Tx, owner_id: str, after: str, age: int) -> tuple[int, int]:
    """Return the seq after which a page starts, and the time of the oldest event that it shows.

    Behind a kept event nothing is left out for its time: a page would pass for ever what a clock
    that is wrong for a moment hides.
    """
    row = await tx.one(_SEQ, after, owner_id) if after else None
    if row is not None:
        # An event that is not in the feed yet has no successor in it.
        return _END if row["seq"] is None else int(row["seq"]), _EVER
    since = await times.earlier(tx) - age
    # An id begins with the milliseconds of its creation.
    if after and int(after[:12], 16) * 1000 >= since:
        raise UnknownPlace
    return 0, since


def entry_of(row: Row, body: bytes | None) -> Entry:
    """Return the entry of an event's row, with `body`."""
    return Entry(
        id=row["id"],
        name=row["name"],
        record_id=row["record_id"],
        record_version=row["record_version"],
        occurred_at=row["occurred_at"],
        request_id=row["request_id"],
        body=None if body is None else bytes(body),
        erased_at=row["erased_at"],
    )
