"""Lock, wake and rest lanes: a row per webhook with the time when a claim looks at its queue.

A transaction that makes a delivery ready also wakes the lane. Transactions take locks in one order,
lanes (by id), webhooks, deliveries, so that they cannot deadlock. Work that must not wait (fan-out,
claim, settle, rescue) takes the free lanes and returns for the others.
"""

from collections.abc import Iterable, Mapping, Sequence

from outbox.database import locks
from outbox.database.sql import IDS, ITEMS, items
from outbox.database.transaction import Row, Tx
from outbox.durations import SECOND
from outbox.queue.state import head_deliveries

RESTED = SECOND
"""Microseconds: a lane without a turn for this long counts as if it had waited this long."""

# It updates the row even without a change, so that a later reader of the row waits for it. A pause
# that the receiver asked for does not hold a delivery that passes it; the owner's rate does.
# Without the offsets, PostgreSQL may read the passes of all webhooks, once for the statement.
WAKE = f"""
update lanes set due_at = case
  when due_at is not null and due_at <= $2 then due_at
  when wait_until > $2 then case when rate_until < wait_until and exists (
      select 1 from passes p where p.webhook_id = lanes.webhook_id and p.pauses
      /*postgres offset 0*/)
    then /*sqlite max*/ /*postgres greatest*/(rate_until, turned_at, $2 - {RESTED})
    else wait_until end
  when probe_at > $2 and not exists (
      select 1 from passes p where p.webhook_id = lanes.webhook_id /*postgres offset 0*/)
    then probe_at
  else /*sqlite max*/ /*postgres greatest*/(turned_at, $2 - {RESTED}) end
where webhook_id in {IDS}
"""

LOCK = f"""
select webhook_id from lanes where webhook_id in {IDS} order by webhook_id
/*postgres for update*/
"""

# It locks the webhook's row too: a transaction with one row that waits for the other blocks both.
TRY = f"""
select l.webhook_id from lanes l join webhooks w on w.id = l.webhook_id
where l.webhook_id in {IDS} order by l.webhook_id
/*postgres for update of l, w skip locked*/
"""

THERE = f"select webhook_id from lanes where webhook_id in {IDS}"

# A lane is not due before its last turn: otherwise a lane with a backlog, whose oldest row was due
# long ago, would always come before the others. Two probes of the claim's index, because first
# attempts and retries are separate ranges. While the circuit is open, the lane is due at the next
# probe, or earlier for a delivery that may pass; so it is while its receiver has asked it to wait.
_HELD = """/*sqlite max*/ /*postgres greatest*/(
    case when lanes.probe_at is null or soonest >= lanes.probe_at then soonest
      else coalesce((
        select min(d.next_at) from passes p join deliveries d on d.id = p.delivery_id
        where p.webhook_id = lanes.webhook_id and d.state = 'ready'
          and d.next_at < lanes.probe_at), lanes.probe_at) end,
    {wait_until}, lanes.turned_at)"""
_PASSING = """(
    select case when min(d.next_at) is not null then /*sqlite max*/ /*postgres greatest*/(
      min(d.next_at), lanes.rate_until, lanes.turned_at) end
    from passes p join deliveries d on d.id = p.delivery_id
    where p.webhook_id = lanes.webhook_id and p.pauses and d.state = 'ready'
      and d.next_at < {wait_until})"""
DUE = f"""(
  select case when soonest is null then null
    when {{wait_until}} > (select due_now()) and lanes.rate_until < {{wait_until}}
    then coalesce({_PASSING}, {_HELD}) else {_HELD} end
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
  ) as head)"""
WAIT = "case when active then due_at - (select due_now()) end as wait"
REST = f"""
update lanes set due_at = {DUE.format(wait_until="lanes.wait_until")}
where webhook_id in {IDS} returning {WAIT}
"""
# Of two delays that receivers request, the longer one applies.
WAIT_UNTIL = """case when s.hold > 0 and (select due_now()) + s.hold > lanes.wait_until
  then (select due_now()) + s.hold else lanes.wait_until end"""
SETTLED = f"""
update lanes set failing = case when s.judged > 0 then s.since > 0 else failing end,
  failing_from = case when s.judged = 0 then failing_from when s.since = 0 then null
    when s.judged = 2 or failing_from is null then (select due_now()) else failing_from end,
  wait_until = {WAIT_UNTIL}, due_at = {DUE.format(wait_until=WAIT_UNTIL)},
  chain_place = coalesce(s.place, chain_place), chain_digest = coalesce(s.digest, chain_digest)
from (
  select value ->> 0 as webhook, cast(value ->> 1 as bigint) as judged,
    cast(value ->> 2 as bigint) as since, cast(value ->> 3 as bigint) as hold,
    cast(value ->> 4 as bigint) as place, value ->> 5 as digest
  from {ITEMS}) as s
where lanes.webhook_id = s.webhook returning {WAIT}, webhook_id,
  failing_from <= (select due_now()) - $2 as overdue
"""

# On PostgreSQL the due clock is the server's. On SQLite it is that of the process that serves.
MARK = """
update outbox_state set due_mark = due_now() where due_mark < due_now() and serves()
"""

# For RETURNING of a change of deliveries: place and digest that end the webhook's chain. One value,
# because each subquery takes a microsecond for each row.
CHAIN = """
  (select chain_place || ' ' || chain_digest from lanes l
   where l.webhook_id = deliveries.webhook_id) as chain
"""

# The due time of the first lane, with or without failing ones.
SOONEST = """
select min(due_at) from (
  select * from (select due_at from lanes
    where active and due_at is not null and failing = false
    order by due_at limit 1) as healthy
  union all
  select * from (select due_at from lanes
    where active and due_at is not null and failing = true and $1
    order by due_at limit 1) as failing
) as heads
"""

# By the partial index of claimed deliveries, which has only those in flight. An index on webhooks
# has all deliveries that a webhook ever had, so no condition here may match one.
IN_FLIGHT = f"""
select webhook_id, count(*) as n from deliveries /*sqlite indexed by deliveries_claimed*/
where state = 'in_flight' and webhook_id || '' in {IDS} group by webhook_id
"""

# The lock of fan-out: with it, no fan-out can add a delivery to any webhook.
NO_FAN_OUT = locks.held(locks.FAN_OUT)

NOTE = "insert into wakes (webhook_id, delivery_id) values ($1, $2)"
NOTED = "select distinct webhook_id from wakes limit 500"
FORGET = f"delete from wakes where webhook_id in {IDS} returning delivery_id"


async def due_now(tx: Tx) -> int:
    """Return the due clock, in microseconds."""
    row = await tx.one("select due_now() as due")
    assert row is not None
    return int(row["due"])


async def mark(tx: Tx) -> None:
    """Store the due clock, so that no stored time is ahead of it after the next start.

    A process that does not serve stores nothing: none of its times is ahead of the stored clock.
    """
    if tx.engine == "sqlite":
        await tx.run(MARK)


async def lock(tx: Tx, webhook_ids: Iterable[str]) -> list[str]:
    """Lock these lanes and wait for locked ones; return the existing lanes, in lock order."""
    ids = sorted(set(webhook_ids))
    return [row["webhook_id"] for row in await tx.all(LOCK, items(ids))] if ids else []


async def try_lock(tx: Tx, webhook_ids: Iterable[str]) -> tuple[list[str], list[str]]:
    """Lock those of these lanes and webhooks that are free; return the locked and the busy ones.

    Deleted ones are in neither list. Waits for no lock.
    """
    ids = sorted(set(webhook_ids))
    if not ids or tx.engine == "sqlite":
        # No other transaction runs on SQLite.
        return ids, []
    locked = [row["webhook_id"] for row in await tx.all(TRY, items(ids))]
    if len(locked) == len(ids):
        return locked, []
    others = sorted(set(ids).difference(locked))
    busy = [row["webhook_id"] for row in await tx.all(THERE, items(others))]
    return locked, busy


async def wake(tx: Tx, webhook_ids: Iterable[str], due: int) -> None:
    """Record that each of these webhooks has a delivery ready at `due`, which is now.

    Waits for locked lanes.
    """
    if ids := await lock(tx, webhook_ids):
        await tx.run(WAKE, items(ids), due)
        await mark(tx)


async def wake_or_note(tx: Tx, webhook_ids: Iterable[str], due: int) -> bool:
    """Wake free lanes and note locked ones for `wake_noted`; return whether any was locked.

    Waits for no lock.
    """
    free, busy = await try_lock(tx, webhook_ids)
    if free:
        await tx.run(WAKE, items(free), due)
    if busy:
        await tx.many(NOTE, [(webhook_id, None) for webhook_id in busy])
    return bool(busy)


async def line_up(
    tx: Tx, followers: Mapping[str, Mapping[str, str]], due: int
) -> tuple[set[str], bool]:
    """Find the heads of new held deliveries, by webhook and record, and wake their lanes.

    Return the webhooks with a delivery ready, and whether any lane was locked: its deliveries are
    noted for `wake_noted`. Waits for no lock.
    """
    free, busy = await try_lock(tx, followers)
    ready = set(
        await head_deliveries.promote(
            tx, [follower for lane in free for follower in followers[lane].values()]
        )
    )
    if ready:
        await tx.run(WAKE, items(sorted(ready)), due)
    if busy:
        await tx.many(
            NOTE, [(lane, follower) for lane in busy for follower in followers[lane].values()]
        )
    return ready, bool(busy)


async def wake_noted(tx: Tx) -> bool:
    """Wake lanes that fan-out found locked, at most 500; return whether any are left.

    Held deliveries among their notes may be the heads of their records by now.
    """
    webhook_ids = [row["webhook_id"] for row in await tx.all(NOTED)]
    free, busy = await try_lock(tx, webhook_ids)
    # A node takes the notes of a lane only with the lane's lock, so that two nodes never wait for
    # each other here.
    if done := sorted(set(webhook_ids).difference(busy)):
        notes = await tx.all(FORGET, items(done))
        await head_deliveries.promote(
            tx, [n["delivery_id"] for n in notes if n["delivery_id"] is not None]
        )
    await rest(tx, free)
    tx.wake = tx.wake or bool(free)
    return bool(busy)


async def rest(tx: Tx, webhook_ids: Iterable[str]) -> int | None:
    """Set the due time of locked lanes from their ready deliveries; null without any.

    Return microseconds until the first of them is due, None when none is.
    """
    ids = sorted(set(webhook_ids))
    if not ids:
        return None
    return _first(await tx.all(REST, items(ids)))


async def record_outcomes(
    tx: Tx, outcomes: Sequence[tuple[object, ...]], patience: int
) -> tuple[int | None, list[str]]:
    """Set the state and the due time of locked lanes after attempts.

    `outcomes` has for each webhook: its id; 0 if no attempt concerned the receiver, 2 if one
    succeeded, else 1; the failures since the last success; the microseconds that the receiver
    asked to wait; after attempts also the place and the digest that end its chain. Return as `rest`
    does, and the webhooks whose last attempt failed `patience` microseconds or more after their
    first failure.
    """
    rows = await tx.all(SETTLED, items(outcomes), patience) if outcomes else []
    failed = {outcome[0] for outcome in outcomes if outcome[2]}
    overdue = [row["webhook_id"] for row in rows if row["overdue"] and row["webhook_id"] in failed]
    return _first(rows), overdue


def _first(rows: Iterable[Row]) -> int | None:
    waits = [row["wait"] for row in rows]
    return min((int(wait) for wait in waits if wait is not None), default=None)


async def soonest(tx: Tx, failing_too: bool) -> int | None:
    """Return microseconds until a lane is due, with or without failing ones; None if none is."""
    row = await tx.one(f"select ({SOONEST}) - (select due_now()) as wait", failing_too)
    return None if row is None or row["wait"] is None else int(row["wait"])
