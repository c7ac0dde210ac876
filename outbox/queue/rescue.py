"""Take back claims: of a claim without a sender, of a dead worker, of a lost result."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from outbox.database.sql import IDS, items
from outbox.database.transaction import Tx
from outbox.queue import figures, heads, lanes

MOST_RESCUES = 10
TOO_OFTEN = "the process ended ten times while sending this delivery"

OF_CLAIM = "select id, webhook_id from deliveries where claim = $1 and state = 'in_flight'"
OF_NODE = "select id, webhook_id from deliveries where node_id = $1 and state = 'in_flight'"

RELEASE = f"""
update deliveries set state = 'ready', claim = null, node_id = null, attempts = attempts - 1
where id in {IDS} and claim = $2
"""

# A delivery whose sending ends the process would otherwise end all nodes one after the other.
RESCUE = f"""
update deliveries set retry = true, claim = null, node_id = null, rescues = rescues + 1,
  next_at = (select due_now()),
  state = case when rescues + 1 < {MOST_RESCUES} then 'ready' else 'dead' end,
  reason = case when rescues + 1 < {MOST_RESCUES} then reason else '{TOO_OFTEN}' end,
  finished_at = case when rescues + 1 < {MOST_RESCUES} then null
    else cast($3 as bigint) end
where id in {IDS} and node_id = $2 and claim is not null
returning id, webhook_id, state
"""


RESCUED = f"""
select d.id, d.event_id, d.webhook_id, d.attempts, d.state, e.request_id, e.traceparent
from deliveries d left join events e on e.id = d.event_id where d.id in {IDS}
"""


@dataclass(frozen=True, slots=True)
class Rescued:
    """A delivery taken back: the receiver may have got its attempt, whose result is unknown."""

    delivery_id: str
    event_id: str
    webhook_id: str
    attempt: int
    state: str
    request_id: str | None
    traceparent: str | None


async def release(tx: Tx, claim: str) -> bool:
    """Release claimed but unsent deliveries of `claim`; return whether all are released.

    Waits for no lock: those in locked lanes are released a little later.
    """
    rows = await tx.all(OF_CLAIM, claim)
    taken = {row["id"]: row["webhook_id"] for row in rows}
    free, held = await lanes.try_lock(tx, taken.values())
    there = set(held)
    ids = sorted(one for one, webhook_id in taken.items() if webhook_id not in there)
    done = await tx.run(RELEASE, items(ids), claim) if ids else 0
    await lanes.rest(tx, free)
    tx.wake = tx.wake or bool(done)
    return not held


async def unheld(tx: Tx, node_id: str, but: Collection[str]) -> bool:
    """Return whether a node has deliveries in flight other than those in `but`."""
    return any(row["id"] not in but for row in await tx.all(OF_NODE, node_id))


async def rescue(tx: Tx, node_id: str, but: Collection[str] = ()) -> list[Rescued]:
    """Make a node's deliveries in flight ready again, except those in `but`; return them.

    Waits for no lock: those in locked lanes are left for the next run.
    """
    rows = await tx.all(OF_NODE, node_id)
    lost = {row["id"]: row["webhook_id"] for row in rows if row["id"] not in but}
    free, held = await lanes.try_lock(tx, lost.values())
    there = set(held)
    ids = sorted(one for one, webhook_id in lost.items() if webhook_id not in there)
    done = await tx.all(RESCUE, items(ids), node_id, tx.now) if ids else []
    dead = [row for row in done if row["state"] == "dead"]
    await figures.count_dead(tx, [row["webhook_id"] for row in dead])
    await heads.promote(tx, [row["id"] for row in dead])
    await lanes.rest(tx, free)
    if done:
        await lanes.mark(tx)
    tx.wake = tx.wake or bool(done)
    return [
        Rescued(
            row["id"], row["event_id"], row["webhook_id"], row["attempts"], row["state"],
            row["request_id"], row["traceparent"],
        )
        for row in (await tx.all(RESCUED, items([row["id"] for row in done])) if done else ())
    ]  # fmt: skip
