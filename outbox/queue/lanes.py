"""A webhook's queue as one row: when a claim should look at it next.

Whoever makes a delivery ready wakes the lane in the same transaction. Locks are taken in one order
everywhere, lanes (by id), webhooks, deliveries, so that no two transactions wait for each other in
a circle. What must not be held up (fan-out, claim, settle, rescue) takes the lanes that are free
and comes back for the others.
"""

from collections.abc import Iterable

from outbox.database.sql import IDS, items
from outbox.database.transaction import Tx

RESTED = 1_000_000
"""Microseconds: a lane that had no turn for so long comes in as if it had waited them."""

# Always an update, even when nothing changes: a later reader of the row waits for it.
WAKE = f"""
update lanes set due_at = case
  when due_at is not null and due_at <= $2 then due_at
  when wait_until > $2 then wait_until
  else /*sqlite max*/ /*postgres greatest*/(turned_at, $2 - {RESTED}) end
where webhook_id in {IDS}
"""

LOCK = f"""
select webhook_id from lanes where webhook_id in {IDS} order by webhook_id
/*postgres for update*/
"""

# The webhook's row too: who has the one and waits for the other would hold up both.
TRY = f"""
select l.webhook_id from lanes l join webhooks w on w.id = l.webhook_id
where l.webhook_id in {IDS} order by l.webhook_id
/*postgres for update of l, w skip locked*/
"""

THERE = f"select webhook_id from lanes where webhook_id in {IDS}"

# Not before its last turn: else a lane with a backlog, whose oldest row was due long ago, would
# always be asked before the others. Two probes of the claim's own index, because first attempts
# and retries are ranges of their own.
REST = f"""
update lanes set due_at = (
  select case when soonest is not null
    then /*sqlite max*/ /*postgres greatest*/(soonest, lanes.wait_until, lanes.turned_at) end
  from (
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
returning case when active then due_at - (select due_now()) end as wait
"""

NOTE = "insert into wakes (webhook_id) values ($1)"
NOTED = "select distinct webhook_id from wakes limit 500"
FORGET = f"delete from wakes where webhook_id in {IDS}"


async def due_now(tx: Tx) -> int:
    """The due clock, microseconds."""
    row = await tx.one("select due_now() as due")
    assert row is not None
    return int(row["due"])


async def lock(tx: Tx, webhook_ids: Iterable[str]) -> list[str]:
    """Lock these lanes, waiting where somebody has one; those that exist, in their order."""
    ids = sorted(set(webhook_ids))
    return [row["webhook_id"] for row in await tx.all(LOCK, items(ids))] if ids else []


async def try_lock(tx: Tx, webhook_ids: Iterable[str]) -> tuple[list[str], list[str]]:
    """Lock what is free of these lanes and their webhooks; what was locked, and what was not.

    Those that were deleted are in neither list. Waits for nobody.
    """
    ids = sorted(set(webhook_ids))
    if not ids:
        return [], []
    got = [row["webhook_id"] for row in await tx.all(TRY, items(ids))]
    if len(got) == len(ids):
        return got, []
    others = sorted(set(ids).difference(got))
    there = [row["webhook_id"] for row in await tx.all(THERE, items(others))]
    return got, there


async def wake(tx: Tx, webhook_ids: Iterable[str], due: int) -> None:
    """Each of these webhooks has a delivery ready at `due`, which is now.

    Waits for lanes that others hold.
    """
    if ids := await lock(tx, webhook_ids):
        await tx.run(WAKE, items(ids), due)


async def wake_or_note(tx: Tx, webhook_ids: Iterable[str], due: int) -> bool:
    """As `wake`, but waits for nobody: held lanes are noted for `wake_noted`; whether any were."""
    free, held = await try_lock(tx, webhook_ids)
    if free:
        await tx.run(WAKE, items(free), due)
    await tx.many(NOTE, [(webhook_id,) for webhook_id in held])
    return bool(held)


async def wake_noted(tx: Tx) -> bool:
    """Look again at lanes that fan-out found held, 500 at most; whether some still are."""
    noted = [row["webhook_id"] for row in await tx.all(NOTED)]
    free, held = await try_lock(tx, noted)
    # Only whoever has the lane takes its notes, so that two never wait for each other here.
    if done := sorted(set(noted).difference(held)):
        await tx.run(FORGET, items(done))
    await rest(tx, free)
    tx.wake = tx.wake or bool(free)
    return bool(held)


async def rest(tx: Tx, webhook_ids: Iterable[str]) -> int | None:
    """Set the due time of lanes that are locked already from what is ready; null when nothing is.

    Microseconds until the first of them is due, None when none is.
    """
    ids = sorted(set(webhook_ids))
    if not ids:
        return None
    waits = [row["wait"] for row in await tx.all(REST, items(ids))]
    return min((int(wait) for wait in waits if wait is not None), default=None)


async def soonest(tx: Tx, failing_too: bool) -> int | None:
    """Microseconds until a lane is due, with or without those that fail; None if none waits."""
    row = await tx.one(
        """
        select min(due_at) - due_now() as wait from (
          select * from (select due_at from lanes
            where active and due_at is not null and failing = false
            order by due_at limit 1) as healthy
          union all
          select * from (select due_at from lanes
            where active and due_at is not null and failing = true and $1
            order by due_at limit 1) as failing
        ) as heads
        """,
        failing_too,
    )
    return None if row is None or row["wait"] is None else int(row["wait"])
