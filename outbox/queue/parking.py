"""What becomes of the deliveries that wait when a webhook is paused, activated again or removed.

A million of them may wait, so they are ended in many small transactions, while the lane is still
inactive: a claim cannot then take a row that the owner has decided against. The lane opens (or the
webhook goes) last, in the transaction that ends the remainder. If the process dies between, the
webhook is simply still paused and the owner asks again.
"""

from typing import Literal, get_args

from outbox.database.transaction import Database, Tx, patience
from outbox.queue import lanes

Parked = Literal["none", "newest", "all"]
CHOICES: tuple[Parked, ...] = get_args(Parked)
BATCH = 500

# Holds off an activation by somebody else; none when the webhook is active or has gone.
STILL_INACTIVE = """
select id from webhooks where id = $1 and state <> 'active' /*postgres for update*/
"""

# The states stand in the text because a partial index serves a literal alone, and SQLite is told
# which: without statistics it would walk the webhook's whole log. The outer statement names ids
# alone: see CLAIM in outbox.queue.claim.
END_READY = """
update deliveries set state = 'cancelled', reason = $2, finished_at = $3
where id /*sqlite in (*/ /*postgres = any (array(*/
  select id from deliveries /*sqlite indexed by deliveries_ready*/
  where webhook_id = $1 and state = 'ready' limit 500 /*sqlite )*/ /*postgres for update))*/
"""

END_HELD = """
update deliveries set state = 'cancelled', reason = $2, finished_at = $3
where id /*sqlite in (*/ /*postgres = any (array(*/
  select id from deliveries /*sqlite indexed by deliveries_held*/
  where webhook_id = $1 and state = 'held' limit 500 /*sqlite )*/ /*postgres for update))*/
"""

END_IN_FLIGHT = """
update deliveries
set state = 'cancelled', reason = $2, finished_at = $3, claim = null, node_id = null
where id /*sqlite in (*/ /*postgres = any (array(*/
  select id from deliveries /*sqlite indexed by deliveries_claimed*/
  where webhook_id = $1 and state = 'in_flight' /*sqlite )*/ /*postgres for update))*/
"""

PAGE_OF_READY = """
select id, next_at from deliveries
where webhook_id = $1 and state = 'ready' and retry = $2
  and next_at >= $3 and (next_at > $3 or id > $4)
order by next_at, id limit 500
"""

# A newer delivery of the same record waits too. Each origin has its own index on the event. The
# state is written so that no index of a state serves: with statistics from an empty queue
# PostgreSQL would start from all ready rows of the webhook, for each of those that it looks at.
NEWER = """exists (
    select 1 from events own
    join events later on later.owner_id = own.owner_id and later.record_id = own.record_id
      and later.pos >= own.pos
    join deliveries newer on newer.event_id = later.id
      and newer.webhook_id = deliveries.webhook_id and newer.origin {} 'event'
    where own.id = deliveries.event_id and newer.state || '' = 'ready'
      and (newer.seq > deliveries.seq or (newer.seq = deliveries.seq and newer.id > deliveries.id)))
"""

# Oldest first, so that the next newer one of the record is found at the first look.
END_OLDER = f"""
update deliveries set state = 'cancelled', reason = 'parked', finished_at = $7
where webhook_id = $1 and state = 'ready' and retry = $2
  and next_at >= $3 and (next_at > $3 or id > $4)
  and next_at <= $5 and (next_at < $5 or id <= $6)
  and ({NEWER.format("=")} or {NEWER.format("<>")})
"""

PAUSE = """
update webhooks set state = 'paused', version = version + 1, updated_at = $2
where id = $1 and state = 'active'
"""

ACTIVATE = """
update webhooks
set state = 'active', disabled_reason = null, failing_since = null, failures = 0,
    circuit = 'closed', circuit_opened_at = null, circuit_backoff = null,
    version = version + 1, updated_at = $2
where id = $1 and state <> 'active'
"""

OPEN_LANE = "update lanes set active = true, failing = false, wait_until = 0 where webhook_id = $1"

# Fan-out's own lock: after it no delivery can still be on its way to a webhook that is going.
NO_FAN_OUT = "select /*sqlite true*/ /*postgres pg_advisory_xact_lock(7201965)*/ as held"


async def count(tx: Tx, webhook_id: str, most: int) -> int:
    """How many deliveries of a webhook wait; counting stops at `most`."""
    row = await tx.one(
        """
        select count(*) as waiting from (
          select 1 as one from deliveries /*sqlite indexed by deliveries_ready*/
          where webhook_id = $1 and state = 'ready' limit $2) as waiting
        """,
        webhook_id, most,
    )  # fmt: skip
    return 0 if row is None else int(row["waiting"])


async def pause(tx: Tx, webhook_id: str) -> bool:
    """Send nothing more until it is activated; False when it was not active.

    Two rows change, however much waits: what waits is then parked, and more may join it.
    """
    await lanes.lock(tx, [webhook_id])
    done = await tx.run(PAUSE, webhook_id, tx.now)
    if done:
        tx.changed.add(webhook_id)
        await tx.run("update lanes set active = false where webhook_id = $1", webhook_id)
    return done == 1


async def activate(db: Database, webhook_id: str, parked: Parked) -> bool:
    """Let a paused or disabled webhook send again; False when it is active already or has gone.

    Of what waits, `none` is sent (it ends cancelled, reason "parked"), or the `newest` of each
    record, or `all`. What arrives while the older ones are being cancelled counts as parked under
    `none` and is kept under `newest`.
    """
    patience.set(None)
    if parked == "newest":
        # Retries are older: taken first, they find their newer rows still in place.
        for retry in (True, False):
            after = (0, "")
            while (page := await db.write(_end_older, webhook_id, retry, *after)) is not None:
                after = page
    while True:
        result = await db.write(_activate, webhook_id, parked)
        if result != "more":
            return result == "done"


async def remove(db: Database, webhook_id: str) -> bool:
    """Delete a webhook; its unfinished deliveries end cancelled; False when it has gone.

    Finished deliveries and their attempts stay in the log until retention takes them.
    """
    patience.set(None)
    await db.write(_stop, webhook_id)
    while True:
        result = await db.write(_remove, webhook_id)
        if result != "more":
            return result == "done"


async def _end_older(
    tx: Tx, webhook_id: str, retry: bool, after_next: int, after_id: str
) -> tuple[int, str] | None:
    """One page of `newest`; returns where the next one starts, or None at the end."""
    await lanes.lock(tx, [webhook_id])
    if await tx.one(STILL_INACTIVE, webhook_id) is None:
        return None
    page = await tx.all(PAGE_OF_READY, webhook_id, retry, after_next, after_id)
    if not page:
        return None
    last = (int(page[-1]["next_at"]), str(page[-1]["id"]))
    await tx.run(END_OLDER, webhook_id, retry, after_next, after_id, *last, tx.now)
    return last


async def _activate(tx: Tx, webhook_id: str, parked: Parked) -> Literal["done", "more", "no"]:
    await lanes.lock(tx, [webhook_id])
    if await tx.one(STILL_INACTIVE, webhook_id) is None:
        return "no"
    if parked == "none" and await _end_some(tx, webhook_id, "parked"):
        return "more"
    if not await tx.run(ACTIVATE, webhook_id, tx.now):
        return "no"
    await tx.run(OPEN_LANE, webhook_id)
    await lanes.rest(tx, [webhook_id])
    tx.changed.add(webhook_id)
    tx.wake = True
    return "done"


async def _stop(tx: Tx, webhook_id: str) -> None:
    await lanes.lock(tx, [webhook_id])
    tx.changed.add(webhook_id)
    await tx.run(
        """
        update webhooks set state = 'paused', version = version + 1, updated_at = $2
        where id = $1 and state <> 'paused'
        """,
        webhook_id, tx.now,
    )  # fmt: skip
    await tx.run("update lanes set active = false where webhook_id = $1", webhook_id)


async def _remove(tx: Tx, webhook_id: str) -> Literal["done", "more", "no"]:
    # A fan-out that was turned away meanwhile looks again after this commit.
    tx.wake = True
    await lanes.lock(tx, [webhook_id])
    if await tx.one(STILL_INACTIVE, webhook_id) is None:
        return "no"
    if await _end_some(tx, webhook_id, "webhook deleted"):
        return "more"
    # Only now, since everybody's fan-out waits for it.
    await tx.one(NO_FAN_OUT)
    # What is being sent loses its claim, so its settle changes nothing; the last fan-out that saw
    # the webhook may have begun it only now.
    await tx.run(END_IN_FLIGHT, webhook_id, "webhook deleted", tx.now)
    if await _end_some(tx, webhook_id, "webhook deleted"):
        return "more"
    tx.changed.add(webhook_id)
    return "done" if await tx.run("delete from webhooks where id = $1", webhook_id) else "no"


async def _end_some(tx: Tx, webhook_id: str, reason: str) -> bool:
    """Cancel a batch of what waits; True when more may be left."""
    ready = await tx.run(END_READY, webhook_id, reason, tx.now)
    held = await tx.run(END_HELD, webhook_id, reason, tx.now)
    return BATCH in (ready, held)
