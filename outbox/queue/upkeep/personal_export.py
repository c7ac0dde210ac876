"""Read what events and deliveries store about records, for the export of personal data."""

from __future__ import annotations

from collections.abc import Sequence

from outbox.database.index_plans import by_index
from outbox.database.sql import IDS, items
from outbox.database.transaction import Row, Tx

_EVENTS = """
/*postgres (*/
select id, seq, name, record_id, occurred_at, body, erased_at
from events /*sqlite indexed by {}*/
where owner_id = $1 and record_id = $2 and seq > $3 and {} is {} null and seq is not null
/*postgres order by seq limit $4)*/
"""
# Those of the feed, and those that snapshots made for a webhook. PostgreSQL sorts both together, so
# each is limited; SQLite merges them.
EVENTS = f"""
{_EVENTS.format("events_record", "webhook_id", "")} union all
{_EVENTS.format("events_about", "about_id", "not")} order by seq limit $4
"""
# One range of each of the two partial indexes on the event.
DELIVERIES = " union all ".join(
    f"""
select id, event_id, webhook_id, state, attempts, created_at, finished_at, last_outcome, last_status
from deliveries where event_id in {IDS} and origin {sign} 'event'
"""
    for sign in ("=", "<>")
)


async def events(tx: Tx, owner_id: str, record_id: str, after: int, most: int) -> list[Row]:
    """Return events of a record behind a place in their order."""
    await by_index(tx)
    return await tx.all(EVENTS, owner_id, record_id, after, most)


async def deliveries(tx: Tx, event_ids: Sequence[str]) -> list[Row]:
    """Return the deliveries of some events."""
    await by_index(tx)
    return await tx.all(DELIVERIES, items(event_ids))
