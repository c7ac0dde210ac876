"""Erase persons from events and attempts, in small transactions after a request for it.

The body of an event becomes null, with `erased_at`; deliveries that wait are cancelled, and none
can be replayed. Responses of its attempts go too, since a receiver may repeat what it got; their
digest stays, so that the chain of attempts still verifies. A delivery in flight is recorded first,
and a request stays open until then.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from outbox.database.plans import by_index
from outbox.database.sql import IDS, items
from outbox.database.transaction import DUTIES, Database, Tx
from outbox.queue import heads, lanes
from outbox.queue.chain import answer_of
from outbox.queue.retention import Ledger, NoLedger

REASON = "erased"
PAGE = 2_000
"""Events of an owner that one look passes."""
EVENTS = 10
"""Events that one transaction erases."""
ANSWERS_AT_ONCE = 50
UNFINISHED = ("ready", "held", "in_flight")

REQUEST = """
insert into erasures (id, owner_id, record_ids, kept_names, upto_pos, seq, created_at)
values ($1, $2, $3, $4, (select coalesce(max(pos), 0) from events), 0, $5)
"""
OPEN = "select id, owner_id, record_ids, kept_names, upto_pos, seq from erasures order by id"
# Until then, events from before the request may come later in the order of the feed.
UNSEEN = "select 1 as found from events where seq is null and pos <= $1 limit 1"
LAST = "select seq from outbox_state"
LOOK = f"""
select id, seq, record_id in {IDS} and name not in (
  select value from /*sqlite json_each($2)*/
    /*postgres json_array_elements_text(cast($2 as json)) as kept(value)*/) as hit
from events
where owner_id = $3 and seq > $4 and seq <= $5 and webhook_id is null and seq is not null
order by seq limit $6
"""
DONE = "delete from erasures where id = $1"
MOVE = "update erasures set seq = $2 where id = $1"

# One probe of each of the two partial indexes on the event.
OF_EVENTS = f"""(
  select id, webhook_id, state from deliveries
  where event_id in {IDS} and origin = 'event'
  union all
  select id, webhook_id, state from deliveries
  where event_id in {IDS} and origin <> 'event') as d"""
WEBHOOKS = f"select distinct webhook_id from {OF_EVENTS} where state in ('ready', 'held')"
TAKE = f"select id from events where id in {IDS} /*postgres for update*/"
DELIVERIES = f"select id, webhook_id, state from {OF_EVENTS} order by id"
CANCEL = f"""
update deliveries set state = 'cancelled', reason = '{REASON}', finished_at = $2
where id in {IDS} and state in ('ready', 'held') returning id, webhook_id, ordered
"""
ERASE = f"""
update events set body = null, erased_at = $2
where id in {IDS} and (body is not null or erased_at is null)
"""
ANSWERS = f"""
select delivery_id, number, response_headers, response_body from attempts
where delivery_id in (select id from {OF_EVENTS}) and answer_digest is null limit $2
"""
TOMBSTONE = """
update attempts set response_headers = null, response_body = null, answer_digest = $3
where delivery_id = $1 and number = $2
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


async def request(
    tx: Tx, owner_id: str, record_ids: Sequence[str], kept_names: Sequence[str] = ()
) -> None:
    """Have the events of these records erased soon, in whatever webhooks and states they are.

    `kept_names` are events without personal data, such as the one of the removal. The caller holds
    the locks of the records, so that no earlier event of them commits later.
    """
    await tx.run(
        REQUEST, tx.new_id(), owner_id, json.dumps(record_ids), json.dumps(kept_names), tx.now
    )


class Erasure:
    """Works off requests. Run one at a time; a run may be interrupted."""

    def __init__(self, db: Database, ledger: Ledger | None = None) -> None:
        self._db = db
        self._ledger = ledger or NoLedger()

    async def any_open(self) -> bool:
        """Return whether there is a request."""
        return bool(await self._db.read(_open))

    async def run_once(self) -> None:
        """Erase what all requests ask for; those that must wait for a delivery stay."""
        for one in await self._db.read(_open):
            await self._work(one)

    async def _work(self, one: Request) -> None:
        # First this: what is not seen now has a later place in the order than `last`.
        unseen, last = await self._db.read(_limits, one.upto_pos)
        after, held = one.seq, False
        while after < last:
            found, reached = await self._db.scan(DUTIES, _look, one, after, last)
            while found:
                some, found = found[:EVENTS], found[EVENTS:]
                in_flight, cancelled = await self._db.write(erase_events, some)
                held = held or in_flight
                while await self._db.write(erase_answers, some, ANSWERS_AT_ONCE) == ANSWERS_AT_ONCE:
                    pass
                for webhook_id in cancelled.elements():
                    self._ledger.delivery_finished(webhook_id, "cancelled", None)
            after = reached
            if not held:
                await self._db.write(_move, one.id, after)
        if not held and not unseen:
            await self._db.write(_done, one.id)


async def erase_events(tx: Tx, event_ids: Sequence[str]) -> tuple[bool, Counter[str]]:
    """Erase these events.

    Return whether a delivery of one is in flight, so that this must be repeated, and the number of
    cancelled deliveries by webhook.
    """
    await by_index(tx)
    ids = items(event_ids)
    names = {row["webhook_id"] for row in await tx.all(WEBHOOKS, ids)}
    locked = await lanes.lock(tx, names)
    await tx.all(TAKE, ids)
    deliveries = await tx.all(DELIVERIES, ids)
    waiting = [
        row["id"] for row in deliveries
        if row["state"] in ("ready", "held") and row["webhook_id"] in names
    ]  # fmt: skip
    cancelled = await tx.all(CANCEL, items(waiting), tx.now) if waiting else []
    await heads.promote(tx, [row["id"] for row in cancelled if row["ordered"]])
    await tx.run(ERASE, ids, tx.now)
    await lanes.rest(tx, locked)
    ended = set(waiting)
    left = any(row["state"] in UNFINISHED and row["id"] not in ended for row in deliveries)
    return left, Counter(row["webhook_id"] for row in cancelled)


async def erase_answers(tx: Tx, event_ids: Sequence[str], most: int) -> int:
    """Replace up to `most` responses to these events by their digests; return how many."""
    await by_index(tx)
    answers = await tx.all(ANSWERS, items(event_ids), most)
    for row in answers:
        body = None if row["response_body"] is None else bytes(row["response_body"])
        answer = answer_of(row["response_headers"], body)
        await tx.run(TOMBSTONE, row["delivery_id"], row["number"], answer)
    return len(answers)


async def _open(tx: Tx) -> list[Request]:
    return [
        Request(
            row["id"], row["owner_id"], tuple(json.loads(row["record_ids"])),
            tuple(json.loads(row["kept_names"])), int(row["upto_pos"]), int(row["seq"]),
        )
        for row in await tx.all(OPEN)
    ]  # fmt: skip


async def _limits(tx: Tx, upto_pos: int) -> tuple[bool, int]:
    await by_index(tx)
    unseen = await tx.one(UNSEEN, upto_pos) is not None
    row = await tx.one(LAST)
    return unseen, 0 if row is None else int(row["seq"])


async def _look(tx: Tx, one: Request, after: int, last: int) -> tuple[list[str], int]:
    """Return the events to erase among the next PAGE of the owner, and how far that is."""
    await by_index(tx)
    rows = await tx.all(
        LOOK, items(one.record_ids), items(one.kept_names), one.owner_id, after, last, PAGE
    )
    reached = int(rows[-1]["seq"]) if len(rows) == PAGE else last
    return [row["id"] for row in rows if row["hit"]], reached


async def _move(tx: Tx, request_id: str, seq: int) -> None:
    await tx.run(MOVE, request_id, seq)


async def _done(tx: Tx, request_id: str) -> None:
    await tx.run(DONE, request_id)
