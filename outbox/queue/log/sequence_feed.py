"""Read the numbered deliveries of one webhook, so that a receiver finds what it lacks.

Each number up to the last one is either an entry here or past the retention: no number is left
unexplained.
"""

from __future__ import annotations

from dataclasses import dataclass

from outbox.database.index_plans import by_index
from outbox.database.transaction import Row, Tx
from outbox.events.event_feed import Entry, entry_of
from outbox.queue.log.delivery_types import shown_as
from outbox.queue.state import sequences

# What ended without success may have been replayed with success, which then counts. Without the
# offset, PostgreSQL may read what all webhooks have repeated, once for the statement.
_PAGE = """
select d.sequence, d.event_id, d.record_id, d.next_at > due_now() as later, l.active,
  case when d.state in ('exhausted', 'gone', 'cancelled', 'dead') and exists (
      select 1 from deliveries r /*sqlite indexed by deliveries_repeated*/
      where r.webhook_id = d.webhook_id and r.repeats = d.sequence and r.repeats is not null
        and r.state = 'delivered' /*postgres offset 0*/)
    then 'delivered' else d.state end as state,
  e.id, e.name, e.record_version, e.occurred_at, e.request_id, e.erased_at, e.body
from deliveries d /*sqlite indexed by deliveries_sequence*/
join lanes l on l.webhook_id = d.webhook_id
left join events e on e.id = d.event_id
where d.webhook_id = $1 and d.sequence is not null and d.sequence >= $2 and d.sequence <= $3
order by d.sequence limit $4
"""
_WITH_BODY = frozenset({"ready", "in_flight", "held", "delivered"})
"""States in which a delivery was made or may still be made."""


@dataclass(frozen=True, slots=True)
class Numbered:
    """A delivery with its number and its event.

    `state` is as the log shows it, or `erased` when the person of the event was erased.
    The body is None for a delivery that ended without success, and after an erasure.
    """

    sequence: int
    state: str
    event: Entry


@dataclass(frozen=True, slots=True)
class Span:
    """The numbers from `first` to `last`, both included."""

    first: int
    last: int


@dataclass(frozen=True, slots=True)
class SequencePage:
    """Numbered deliveries in their order, and the numbers between them that retention removed.

    `last` is the last number of the webhook. `onward` is the number to continue with, None at the
    end of what was asked for.
    """

    entries: list[Numbered]
    expired: list[Span]
    last: int
    onward: int | None


async def page(tx: Tx, webhook_id: str, first: int, upto: int, limit: int) -> SequencePage | None:
    """Return up to `limit` deliveries with the numbers from `first` to `upto`.

    None when the webhook never had numbers.
    """
    last = await sequences.last(tx, webhook_id)
    if last is None:
        return None
    await by_index(tx)
    end = min(upto, last)
    rows = await tx.all(_PAGE, webhook_id, first, end, limit + 1)
    more = len(rows) > limit
    rows = rows[:limit]
    if more:
        end = int(rows[-1]["sequence"])
    entries: list[Numbered] = []
    expired: list[Span] = []
    following = first
    for row in rows:
        if row["id"] is None:
            # The event is past its retention, the delivery not yet.
            continue
        if row["sequence"] > following:
            expired.append(Span(following, int(row["sequence"]) - 1))
        following = int(row["sequence"]) + 1
        entries.append(_numbered(row))
    if following <= end:
        expired.append(Span(following, end))
    return SequencePage(entries, expired, last, end + 1 if more else None)


def _numbered(row: Row) -> Numbered:
    state = str(row["state"])
    shown = shown_as(state, active=bool(row["active"]), later=bool(row["later"]))
    return Numbered(
        int(row["sequence"]),
        shown if row["erased_at"] is None else "erased",
        entry_of(row, row["body"] if state in _WITH_BODY else None),
    )
