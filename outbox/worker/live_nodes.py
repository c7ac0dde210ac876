"""The live worker processes: one row each, with a lease that only its process renews."""

from __future__ import annotations

from outbox.database.transaction import Tx
from outbox.durations import SECOND
from outbox.queue.drain.rescue import Rescued, Waits, rescue

LEASE = 30 * SECOND
"""Microseconds that a node's claims last after its last renewal."""

JOIN = """
insert into nodes (id, epoch, started_at, alive_until)
values ($1, 1, $2, (select due_now()) + $3)
on conflict (id) do update set alive_until = excluded.alive_until
"""
RENEW = """
update nodes set alive_until = (select due_now()) + $2
where id = $1 and alive_until >= (select due_now())
"""
# Nobody removes the row of a valid lease, so without one the database was replaced by a backup.
REPLACED = """
insert into nodes (id, epoch, started_at, alive_until)
values ($1, 1, $2, (select due_now()) + $3) on conflict (id) do nothing
"""

# A node without a row may still have deliveries in flight.
LOST = """
select distinct d.node_id as id from deliveries d
left join nodes n on n.id = d.node_id
where d.state = 'in_flight' and d.node_id is not null and d.node_id <> $1
  and (n.id is null or n.alive_until < (select due_now()))
"""
BURY = """
delete from nodes where id in (
  select id from nodes
  where alive_until < (select due_now()) and id <> $1 /*postgres for update skip locked*/)
"""
EVERY = "select distinct node_id as id from deliveries where state = 'in_flight'"


async def join(tx: Tx, node_id: str) -> list[Rescued]:
    """Add this node to those that share the database."""
    await tx.run(JOIN, node_id, tx.now, LEASE)
    return []


async def join_alone(tx: Tx, node_id: str, waits: Waits) -> list[Rescued]:
    """Make this node the only one, and rescue the deliveries of earlier ones. Return these."""
    rescued: list[Rescued] = []
    for row in await tx.all(EVERY):
        rescued += await rescue(tx, row["id"], waits)
    await tx.run("delete from nodes")
    await join(tx, node_id)
    return rescued


async def renew(tx: Tx, node_id: str) -> bool:
    """Extend this node's lease; return False when it has expired."""
    return await tx.run(RENEW, node_id, LEASE) == 1


async def replaced(tx: Tx, node_id: str) -> bool:
    """Add the row of a node with a valid lease again; return False when it has one."""
    return await tx.run(REPLACED, node_id, tx.now, LEASE) == 1


async def rescue_lost(tx: Tx, waits: Waits, own: str = "") -> list[Rescued]:
    """Rescue the deliveries of nodes whose lease has expired, but for `own`; return them."""
    rescued: list[Rescued] = []
    for row in await tx.all(LOST, own):
        rescued += await rescue(tx, row["id"], waits)
    await tx.run(BURY, own)
    return rescued


async def leave(tx: Tx, node_id: str, waits: Waits) -> list[Rescued]:
    """Rescue the deliveries of this node, which lives, and remove its row. Return them."""
    return await _remove(tx, node_id, await rescue(tx, node_id, waits, unstored=()))


async def take_over(tx: Tx, node_id: str, waits: Waits) -> list[Rescued]:
    """Rescue the deliveries of a node whose process has ended, and remove its row. Return them."""
    return await _remove(tx, node_id, await rescue(tx, node_id, waits))


async def _remove(tx: Tx, node_id: str, rescued: list[Rescued]) -> list[Rescued]:
    await tx.run("delete from nodes where id = $1", node_id)
    return rescued
