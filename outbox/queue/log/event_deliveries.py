"""Read the deliveries of events: all of a few events, or a part of those of many."""

from collections.abc import Sequence
from typing import NamedTuple

from outbox.database.index_plans import by_index
from outbox.database.sql import items
from outbox.database.transaction import Tx
from outbox.queue.log.delivery_pages import GIVEN, by_ids
from outbox.queue.log.delivery_types import Delivery

# One probe of each of the two partial indexes for each event.
OF_EVENTS = f"""
select id, event_id, created_at from deliveries where event_id {GIVEN} and origin = 'event'
union all
select id, event_id, created_at from deliveries where event_id {GIVEN} and origin <> 'event'
"""
IDS_OF_EVENTS = f"select id from ({OF_EVENTS}) as d"
# Deliveries outlive their event, and a test event has no `seq`.
PLACES = f"""
select coalesce(e.seq, 0) as seq, d.id, coalesce(e.occurred_at, d.created_at) as occurred_at
from ({OF_EVENTS}) as d left join events e on e.id = d.event_id
where coalesce(e.seq, 0) < $2 or d.id < $3 order by 1 desc, 2 desc limit $4
"""


class Place(NamedTuple):
    """The place of a delivery among those of events: by its event, and by its id within it."""

    seq: int
    """That of the event; 0 when it has none."""
    id: str
    occurred_at: int
    """When the event occurred, or the delivery was made when the event is not stored any more."""


async def of_events(
    tx: Tx, owner_id: str, event_ids: Sequence[str], most: int = 500
) -> list[Delivery]:
    """Return all deliveries of events, newest first, replays and tests too."""
    if not event_ids:
        return []
    await by_index(tx)
    ids = sorted((row["id"] for row in await tx.all(IDS_OF_EVENTS, items(event_ids))), reverse=True)
    return [one for one in await by_ids(tx, ids[:most]) if one.owner_id == owner_id]


async def places(
    tx: Tx, event_ids: Sequence[str], seq: int, last: str, most: int
) -> Sequence[Place]:
    """Return where the first deliveries of events are, the newest event first.

    They are those of events before `seq`, and of that event those before the delivery `last`.
    """
    if not event_ids:
        return []
    await by_index(tx)
    rows = await tx.all(PLACES, items(event_ids), seq, last, most)
    return [Place(int(row["seq"]), row["id"], int(row["occurred_at"])) for row in rows]
