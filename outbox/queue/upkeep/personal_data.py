"""Remove what events, deliveries and attempts store about a person, in units of bounded work.

The bodies of events are erased first: then nobody can replay them, and fan-out has made all their
deliveries before. Then the deliveries are read in pages: those that wait are cancelled, and
responses are replaced by their digests.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from outbox.database.index_plans import by_index
from outbox.database.sql import IDS, items
from outbox.database.transaction import Row, Tx
from outbox.queue.state import head_deliveries, lanes
from outbox.queue.state.chain import answer_of
from outbox.queue.upkeep import erasure_requests
from outbox.queue.upkeep.erasure_requests import Counts

Whose = Mapping[str, Sequence[str]]
"""The requests that are counted, by the ids of the events that they erase."""
NOBODY: Whose = {}
REASON = "erased"
WAITING = frozenset({"ready", "held"})
UNFINISHED = WAITING | {"in_flight"}

ERASE = f"""
update events set body = null, record_fields = null, erased_at = $2
where id in {IDS} and (body is not null or erased_at is null) returning id
"""
# One range of each of the two partial indexes on the event.
FIRST, AGAIN = (
    f"""
select id, event_id, webhook_id, state from deliveries
where event_id = $1 and origin {sign} 'event' and (webhook_id, id) > ($2, $3)
order by webhook_id, id limit $4
"""
    for sign in ("=", "<>")
)
STATES = f"select id, event_id, webhook_id, state from deliveries where id in {IDS}"
CANCEL = f"""
update deliveries set state = 'cancelled', reason = '{REASON}', finished_at = $2
where id in {IDS} and state in ('ready', 'held') returning id, event_id, webhook_id, ordered
"""
ANSWERS = f"""
select delivery_id, event_id, number, response_headers, response_body from attempts
where delivery_id in {IDS} and answer_digest is null limit $2
"""
TOMBSTONE = """
update attempts set response_headers = null, response_body = null, answer_digest = $3
where delivery_id = $1 and number = $2
"""


@dataclass(frozen=True, slots=True)
class Place:
    """How far the deliveries of some events were read; `part` counts the ranges before."""

    part: int = 0
    webhook_id: str = ""
    delivery_id: str = ""


async def erase_bodies(tx: Tx, event_ids: Sequence[str], whose: Whose = NOBODY) -> None:
    """Erase the bodies of these events, which fan-out has seen."""
    await by_index(tx)
    erased = await tx.all(ERASE, items(event_ids), tx.now)
    await _count(tx, whose, "events", (row["id"] for row in erased))


async def deliveries(
    tx: Tx, event_ids: Sequence[str], after: Place, most: int
) -> tuple[list[Row], Place | None]:
    """Return up to `most` deliveries of these events behind `after`, and where to go on, if so."""
    await by_index(tx)
    rows: list[Row] = []
    for part in range(after.part, 2 * len(event_ids)):
        range_, behind = (AGAIN if part % 2 else FIRST), ("", "")
        if part == after.part:
            behind = after.webhook_id, after.delivery_id
        rows += await tx.all(range_, event_ids[part // 2], *behind, most - len(rows))
        if len(rows) == most:
            return rows, Place(part, rows[-1]["webhook_id"], rows[-1]["id"])
    return rows, None


async def cancel(
    tx: Tx, delivery_ids: Sequence[str], webhooks: Collection[str], whose: Whose = NOBODY
) -> tuple[set[str], Counter[str]]:
    """Cancel those of these deliveries that wait at one of `webhooks`.

    Return the events of unfinished ones, for which this must be repeated, and the number of
    cancelled deliveries by webhook.
    """
    await by_index(tx)
    locked = await lanes.lock(tx, webhooks)
    rows = await tx.all(STATES, items(delivery_ids))
    waiting = {
        row["id"] for row in rows if row["state"] in WAITING and row["webhook_id"] in webhooks
    }
    ended = await tx.all(CANCEL, items(sorted(waiting)), tx.now) if waiting else []
    await head_deliveries.promote(tx, [row["id"] for row in ended if row["ordered"]])
    await lanes.rest(tx, locked)
    await _count(tx, whose, "deliveries", (row["event_id"] for row in ended))
    events_left = {
        row["event_id"] for row in rows if row["state"] in UNFINISHED and row["id"] not in waiting
    }
    return events_left, Counter(row["webhook_id"] for row in ended)


async def erase_answers(
    tx: Tx, delivery_ids: Sequence[str], most: int, whose: Whose = NOBODY
) -> int:
    """Replace up to `most` responses to these deliveries by their digests; return how many."""
    await by_index(tx)
    answers = await tx.all(ANSWERS, items(delivery_ids), most)
    for row in answers:
        body = None if row["response_body"] is None else bytes(row["response_body"])
        answer = answer_of(row["response_headers"], body)
        await tx.run(TOMBSTONE, row["delivery_id"], row["number"], answer)
    await _count(tx, whose, "answers", (row["event_id"] for row in answers))
    return len(answers)


async def _count(
    tx: Tx,
    whose: Whose,
    kind: Literal["events", "deliveries", "answers"],
    event_ids: Iterable[str],
) -> None:
    """Count what was erased of these events for the requests that asked for it."""
    found = Counter(one for event_id in event_ids for one in whose.get(event_id, ()))
    await erasure_requests.count(tx, {one: Counts(**{kind: n}) for one, n in found.items()})
