"""Take back claims: of a claim without a sender, of a dead worker, of a lost result."""

from __future__ import annotations

from collections.abc import Collection

from outbox.database.sql import IDS, items
from outbox.database.transaction import Tx
from outbox.queue import figures, lanes

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
returning webhook_id, state
"""


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


async def rescue(tx: Tx, node_id: str, but: Collection[str] = ()) -> int:
    """Make a node's deliveries in flight ready again, except those in `but`; return how many.

    Waits for no lock: those in locked lanes are left for the next run.
    """
    rows = await tx.all(OF_NODE, node_id)
    lost = {row["id"]: row["webhook_id"] for row in rows if row["id"] not in but}
    free, held = await lanes.try_lock(tx, lost.values())
    there = set(held)
    ids = sorted(one for one, webhook_id in lost.items() if webhook_id not in there)
    done = await tx.all(RESCUE, items(ids), node_id, tx.now) if ids else []
    await figures.count_dead(tx, [row["webhook_id"] for row in done if row["state"] == "dead"])
    await lanes.rest(tx, free)
    tx.wake = tx.wake or bool(done)
    return len(done)
