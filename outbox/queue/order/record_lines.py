"""Read the lines of an ordered webhook: which heads fail, since when, and how many wait behind.

An owner may skip a head: it ends cancelled, and the next delivery of its record is sent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from outbox.database.transaction import Tx
from outbox.errors import OutboxError
from outbox.queue.state import head_deliveries, lanes

SKIPPED = "skipped"
"""The reason of a head that somebody skipped."""
LOOKED_AT = 5_000
"""Heads of one webhook that are read at most."""
SHOWN = 20
COUNTED = 1_000

BEHIND = f"""(
  select count(*) from (
    select 1 as one from deliveries h /*sqlite indexed by deliveries_held*/
    where h.webhook_id = {{d}}.webhook_id and h.record_id = {{d}}.record_id and h.state = 'held'
    limit {COUNTED}) as followers)"""
# The heads that failed and keep others waiting, the oldest first.
STUCK = f"""
select * from (
  select s.id, s.record_id, e.name as event, s.state, s.tries, s.created_at, s.last_outcome,
    s.last_status, s.next_at - (select due_now()) as due_in, s.seq, {BEHIND.format(d="s")} as behind
  from (
    select * from deliveries d /*sqlite indexed by deliveries_heads*/
    where d.webhook_id = $1 and d.ordered and d.state in ('ready', 'in_flight')
    limit {LOOKED_AT}) as s
  left join events e on e.id = s.event_id
  where s.retry
) as failed
where behind > 0 order by seq limit {SHOWN}
"""
HELD = f"""
select count(*) as held from (
  select 1 as one from deliveries /*sqlite indexed by deliveries_held*/
  where webhook_id = $1 and state = 'held' limit {COUNTED}) as held
"""
PLACE = f"""
select d.state, d.ordered, {BEHIND.format(d="d")} as behind,
  {head_deliveries.HEAD.format(webhook="d.webhook_id", record="d.record_id")} as head
from deliveries d where d.id = $1
"""
FIND = "select webhook_id, state, ordered from deliveries where id = $1"
SKIP = f"""
update deliveries set state = 'cancelled', reason = '{SKIPPED}', finished_at = $2 where id = $1
"""


@dataclass(frozen=True, slots=True)
class Line:
    """A record whose first delivery failed and is tried again, while others wait behind it.

    `delivery_id` is the head. `due_in` is in microseconds; `behind` is counted up to COUNTED.
    """

    delivery_id: str
    record_id: str
    event: str | None
    state: str
    tries: int
    created_at: int
    due_in: int
    last_outcome: str | None
    last_status: int | None
    behind: int


@dataclass(frozen=True, slots=True)
class Lines:
    """The lines of a webhook: how many deliveries are held, up to COUNTED, and the stuck ones."""

    held: int
    stuck: Sequence[Line]


@dataclass(frozen=True, slots=True)
class Place:
    """The place of a delivery in its line: the head that it waits for, and what waits behind it."""

    head: str | None
    behind: int


class NoHead(OutboxError):
    """This delivery is not the waiting head of a line; the text explains the reason."""


async def of_webhook(tx: Tx, webhook_id: str) -> Lines:
    """Return the stuck lines of a webhook, the oldest first, at most SHOWN."""
    row = await tx.one(HELD, webhook_id)
    if row is None or not row["held"]:
        return Lines(0, ())
    stuck = [
        Line(
            delivery_id=head["id"],
            record_id=head["record_id"],
            event=head["event"],
            state=head["state"],
            tries=head["tries"],
            created_at=head["created_at"],
            due_in=head["due_in"],
            last_outcome=head["last_outcome"],
            last_status=head["last_status"],
            behind=head["behind"],
        )
        for head in await tx.all(STUCK, webhook_id)
    ]
    return Lines(row["held"], stuck)


async def place(tx: Tx, delivery_id: str) -> Place | None:
    """Return the place of an unfinished delivery in its line; None when it is in no line."""
    row = await tx.one(PLACE, delivery_id)
    if row is None or not row["ordered"] or row["state"] not in ("ready", "in_flight", "held"):
        return None
    if row["state"] == "held":
        return Place(row["head"], 0)
    return Place(None, row["behind"])


async def skip(tx: Tx, delivery_id: str) -> str:
    """Cancel the head of a line, so that the next delivery of its record is sent.

    Return its webhook. Raise NoHead, also while its request is under way.
    """
    row = await tx.one(FIND, delivery_id)
    if row is None:
        raise NoHead("This delivery is no longer in the log.")
    await lanes.lock(tx, [row["webhook_id"]])
    row = await tx.one(FIND, delivery_id)
    if row is None or not row["ordered"] or row["state"] not in ("ready", "in_flight"):
        raise NoHead("This delivery holds up no others any more.")
    if row["state"] == "in_flight":
        raise NoHead("This delivery is being sent right now; try again in a moment.")
    await tx.run(SKIP, delivery_id, tx.now)
    await head_deliveries.promote(tx, [delivery_id])
    await lanes.rest(tx, [row["webhook_id"]])
    tx.wake = True
    return str(row["webhook_id"])
