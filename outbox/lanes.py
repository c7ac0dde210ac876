"""A webhook's queue as one row: when a claim should look at it next.

Whoever makes a delivery ready wakes the lane in the same transaction. Every writer locks the
lane's row before it reads the webhook's ready rows: on PostgreSQL two that only looked could each
miss what the other was about to commit, and the lane would sleep over a due delivery.
"""

from collections.abc import Iterable

from outbox.bulk import IDS, items
from outbox.database import Tx

# Always an update, even when nothing changes: the lock is the point.
WAKE = f"""
update lanes set due_at = case
  when due_at is not null and due_at <= $2 then due_at
  when wait_until > $2 then wait_until
  else $2 end
where webhook_id in {IDS}
"""

LOCK = f"select webhook_id from lanes where webhook_id in {IDS} order by webhook_id for update"

# Two probes of the claim's own index, because first attempts and retries are ranges of their own.
REST = f"""
update lanes set due_at = (
  select case when soonest < lanes.wait_until then lanes.wait_until else soonest end from (
    select min(next_at) as soonest from (
      select * from (
        select next_at from deliveries
        where webhook_id = lanes.webhook_id and state = 'ready' and retry = false
        order by next_at limit 1
      ) as firsts
      union all
      select * from (
        select next_at from deliveries
        where webhook_id = lanes.webhook_id and state = 'ready' and retry = true
        order by next_at limit 1
      ) as retries
    ) as heads
  ) as head)
where webhook_id in {IDS}
"""


async def due_now(tx: Tx) -> int:
    """The due clock, microseconds."""
    row = await tx.one("select due_now() as due")
    assert row is not None
    return int(row["due"])


async def wake(tx: Tx, webhook_ids: Iterable[str], due: int) -> None:
    """Each of these webhooks has a delivery ready at `due`."""
    if ids := await _locked(tx, webhook_ids):
        await tx.run(WAKE, ids, due)


async def rest(tx: Tx, webhook_ids: Iterable[str]) -> None:
    """Set each lane's due time from what is ready now; null when nothing is."""
    if ids := await _locked(tx, webhook_ids):
        await tx.run(REST, ids)


async def _locked(tx: Tx, webhook_ids: Iterable[str]) -> str | None:
    """The parameter that names these lanes, locked; None when there are none."""
    ids = sorted(set(webhook_ids))
    if not ids:
        return None
    if tx.engine == "postgres":
        # Always in the order of ids, so that two transactions never wait for each other.
        await tx.all(LOCK, items(ids))
    return items(ids)


async def soonest(tx: Tx) -> int | None:
    """Microseconds until a lane is due, None when none waits."""
    row = await tx.one(
        """
        select min(due_at) - due_now() as wait from (
          select * from (select due_at from lanes
            where active and due_at is not null and failing = false
            order by due_at limit 1) as healthy
          union all
          select * from (select due_at from lanes
            where active and due_at is not null and failing = true
            order by due_at limit 1) as failing
        ) as heads
        """
    )
    return None if row is None or row["wait"] is None else int(row["wait"])
