"""Find waiting deliveries that a webhook would not get by other settings, and cancel them.

Fan-out decides by the settings of its moment, so what waits is sent whatever its webhook subscribes
to later. Its owner may want it so, or not. What people asked for (replays, tests) is left alone.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

from outbox.database.index_plans import by_index
from outbox.database.sql import IDS, items
from outbox.database.transaction import Database, Row, Tx, patience
from outbox.queue.state import head_deliveries, lanes
from outbox.queue.upkeep.keep_newest import tell_cancelled
from outbox.webhooks.conditions import Condition, hold, stored_facts

REASON = "no longer subscribed"
"""The reason of a delivery that its owner cancelled, because the settings have changed."""
PAGE = 500
LOOKED_AT = 10_000
"""Waiting deliveries that a count reads at most."""
JUDGED = 2_000
"""Of these, bodies that it judges by conditions."""
BODIES = 1_048_576
"""Bytes of bodies that are read together."""

_COLUMNS = (
    "d.id, d.next_at, d.record_id, d.seq, d.origin, d.event_id, e.name, length(e.body) as size"
)
_READY = f"""
select {_COLUMNS} from deliveries d /*sqlite indexed by deliveries_ready*/
left join events e on e.id = d.event_id
where d.webhook_id = $1 and d.state = 'ready' and d.retry = $2
  and d.next_at >= $3 and (d.next_at > $3 or d.id > $4)
order by d.next_at, d.id limit {PAGE}
"""
_HELD = f"""
select {_COLUMNS} from deliveries d /*sqlite indexed by deliveries_held*/
left join events e on e.id = d.event_id
where d.webhook_id = $1 and d.state = 'held' and (d.record_id, d.seq) > ($2, $3)
order by d.record_id, d.seq limit {PAGE}
"""
_BODIES = f"select id, body, body_digest, record_fields from events where id in {IDS}"
_SETTINGS = "select version from webhooks where id = $1"
_END = f"""
update deliveries set state = 'cancelled', reason = '{REASON}', finished_at = $2
where id in {IDS} and state || '' in ('ready', 'held') returning id, ordered
"""


@dataclass(frozen=True, slots=True)
class Wanted:
    """The events and the conditions that a delivery must match."""

    events: frozenset[str]
    conditions: Sequence[Condition]


@dataclass(frozen=True, slots=True)
class Unmatched:
    """How many waiting deliveries do not match; `more`: others were not looked at."""

    count: int = 0
    more: bool = False


async def count(db: Database, holder: str, webhook_id: str, wanted: Wanted) -> Unmatched:
    """Count what waits at a webhook and does not match; reads as `holder`, within bounds."""
    unmatched = looked = judged = 0
    async for page in _pages(db, holder, webhook_id):
        looked += len(page)
        judged += sum(row["name"] in wanted.events for row in page) if wanted.conditions else 0
        unmatched += len(await _left_out(db, holder, page, wanted))
        if looked >= LOOKED_AT or judged >= JUDGED:
            return Unmatched(unmatched, more=True)
    return Unmatched(unmatched)


async def cancel(db: Database, holder: str, webhook_id: str, version: int, wanted: Wanted) -> int:
    """Cancel what waits and does not match, until the webhook has another version; return it."""
    patience.set(None)
    cancelled = 0
    async for page in _pages(db, holder, webhook_id):
        left_out = await _left_out(db, holder, page, wanted)
        if not left_out:
            continue
        ended = await db.write(_end, webhook_id, version, left_out)
        if ended is None:
            break
        tell_cancelled(db, webhook_id, ended)
        cancelled += ended
    return cancelled


async def _pages(db: Database, holder: str, webhook_id: str) -> AsyncIterator[list[Row]]:
    """Yield what waits at a webhook.

    Held deliveries first: when a head is cancelled, the next of its record is ready, and judged.
    """
    record, seq = "", 0
    while page := await db.scan(holder, _rows, _HELD, webhook_id, record, seq):
        record, seq = str(page[-1]["record_id"]), int(page[-1]["seq"])
        yield page
        if len(page) < PAGE:
            break
    for retry in (True, False):
        after = (0, "")
        while page := await db.scan(holder, _rows, _READY, webhook_id, retry, *after):
            after = (int(page[-1]["next_at"]), str(page[-1]["id"]))
            yield page
            if len(page) < PAGE:
                break


async def _rows(tx: Tx, statement: str, *values: str | int) -> list[Row]:
    await by_index(tx)
    return await tx.all(statement, *values)


async def _left_out(db: Database, holder: str, page: Sequence[Row], wanted: Wanted) -> list[str]:
    """Return the deliveries of a page that do not match. One without its event matches."""
    asked = [row for row in page if row["origin"] == "event" and row["name"] is not None]
    out = [row["id"] for row in asked if row["name"] not in wanted.events]
    if not wanted.conditions:
        return out
    judged = [row for row in asked if row["name"] in wanted.events]
    while judged:
        size, some = 0, list[Row]()
        while judged and (not some or size + int(judged[-1]["size"] or 0) <= BODIES):
            some.append(judged.pop())
            size += int(some[-1]["size"] or 0)
        fails = await db.scan(holder, _failing, [row["event_id"] for row in some], wanted)
        out += [row["id"] for row in some if row["event_id"] in fails]
    return out


async def _failing(tx: Tx, event_ids: Sequence[str], wanted: Wanted) -> set[str]:
    """Return those of these events for which the conditions do not hold."""
    rows = await tx.all(_BODIES, items(event_ids))
    return {
        row["id"] for row in rows if not hold(wanted.conditions, stored_facts(row, row["body"]))
    }


async def _end(tx: Tx, webhook_id: str, version: int, ids: Sequence[str]) -> int | None:
    """Cancel those of these deliveries that still wait; None when the webhook has changed."""
    await lanes.lock(tx, [webhook_id])
    row = await tx.one(_SETTINGS, webhook_id)
    if row is None or int(row["version"]) != version:
        return None
    ended = await tx.all(_END, items(sorted(ids)), tx.now)
    if await head_deliveries.promote(tx, [row["id"] for row in ended if row["ordered"]]):
        tx.wake = True
    await lanes.rest(tx, [webhook_id])
    return len(ended)
