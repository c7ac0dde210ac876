"""Pause, activate and remove webhooks, with an effect on their waiting deliveries.

A million deliveries may wait, so they are cancelled in many small transactions while the lane is
inactive, so that no claim takes a cancelled row. The last transaction cancels the remainder and
activates the lane or deletes the webhook. If the process dies before, the webhook is still paused
and the owner repeats the request.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, get_args

from outbox.database.transaction import Database, Tx, patience
from outbox.queue.state import (
    attempt_counts,
    chain_gaps,
    circuits,
    deleted_webhooks,
    lanes,
    owner_reports,
)
from outbox.queue.upkeep.keep_newest import STILL_INACTIVE, end_older, tell_cancelled

Parked = Literal["none", "newest", "all"]
CHOICES: tuple[Parked, ...] = get_args(Parked)
Step = Literal["done", "more", "no"]
BATCH = 500
Also = Callable[[Tx], None]
"""What a caller adds to the transaction that activates or deletes a webhook."""


@dataclass(frozen=True, slots=True)
class Removed:
    """What became of the deliveries of a deleted webhook: cancelled, or still in flight."""

    cancelled: int
    sending: int


# The text contains literal states, because a partial index serves only a literal. SQLite gets the
# name of the index: without statistics it would read the webhook's whole log. The outer statement
# names only ids: see CLAIM in outbox.queue.drain.claim.
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

PAUSE = """
update webhooks set state = 'paused', version = version + 1, updated_at = $2
where id = $1 and state = 'active'
"""

TROUBLED = """
select owner_id from webhooks where id = $1 and (state = 'disabled' or circuit <> 'closed')
"""

ACTIVATE = """
update webhooks
set state = 'active', disabled_reason = null, failing_since = null, failures = 0,
    failed_events = null, circuit = 'closed', circuit_opened_at = null, circuit_backoff = null,
    version = version + 1, updated_at = $2
where id = $1 and state <> 'active'
"""

# A lane whose deliveries join lines opens when all have joined.
OPEN_LANE = """
update lanes set active = not turning, failing = false, wait_until = 0, rate_until = 0,
  probe_at = null,
  failing_from = null
where webhook_id = $1
"""


async def count(tx: Tx, webhook_id: str, most: int) -> int:
    """Return how many deliveries of a webhook wait; counting stops at `most`."""
    row = await tx.one(
        """
        select count(*) as waiting from (
          select 1 as one from deliveries /*sqlite indexed by deliveries_ready*/
          where webhook_id = $1 and state = 'ready'
          union all
          select 1 as one from deliveries /*sqlite indexed by deliveries_held*/
          where webhook_id = $1 and state = 'held'
          limit $2) as waiting
        """,
        webhook_id,
        most,
    )
    return 0 if row is None else int(row["waiting"])


async def count_records(tx: Tx, webhook_id: str, most: int) -> int:
    """Return of how many records deliveries of a webhook wait, among `most` of them."""
    row = await tx.one(
        """
        select count(distinct record_id) as records from (
          select * from (
            select record_id from deliveries /*sqlite indexed by deliveries_ready*/
            where webhook_id = $1 and state = 'ready' limit $2) as ready
          union all
          select * from (
            select record_id from deliveries /*sqlite indexed by deliveries_held*/
            where webhook_id = $1 and state = 'held' limit $2) as held
          limit $2) as waiting
        """,
        webhook_id,
        most,
    )
    return 0 if row is None else int(row["records"])


async def pause(tx: Tx, webhook_id: str) -> bool:
    """Stop sending until the webhook is activated; return False when it was not active.

    Two rows change, however many deliveries wait: these are then parked, and new ones join them.
    """
    await lanes.lock(tx, [webhook_id])
    done = await tx.run(PAUSE, webhook_id, tx.now)
    if done:
        tx.changed.add(webhook_id)
        await tx.run("update lanes set active = false where webhook_id = $1", webhook_id)
    return done == 1


def nothing(tx: Tx) -> None:
    """Add nothing."""


async def activate(db: Database, webhook_id: str, parked: Parked, also: Also = nothing) -> bool:
    """Activate a paused or disabled webhook; return False when it is already active or deleted.

    Of the parked deliveries, `none` sends none (they end cancelled, reason "parked"), `newest`
    sends the newest of each record, `all` sends all. Deliveries that arrive during the cancellation
    count as parked under `none` and are kept under `newest`.
    """
    patience.set(None)
    if parked == "newest":
        await end_older(db, webhook_id)
    while True:
        result, ended = await db.write(_activate, webhook_id, parked, also)
        tell_cancelled(db, webhook_id, ended)
        if result != "more":
            return result == "done"


async def remove(db: Database, webhook_id: str, also: Also = nothing) -> Removed | None:
    """Delete a webhook and cancel what waits; return None when it is deleted already.

    Requests in flight end by themselves, and their results are recorded. Deliveries and their
    attempts stay in the log until retention removes them.
    """
    patience.set(None)
    await db.write(stop, webhook_id)
    cancelled, more = 0, True
    while True:
        while more:
            more, ended = await db.write(_cancel, webhook_id)
            tell_cancelled(db, webhook_id, ended)
            cancelled += ended
        # Not before: a webhook that somebody activates meanwhile keeps its counts.
        while await db.write(_remove_counts, webhook_id):
            pass
        result, ended, sending = await db.write(_remove, webhook_id, also, cancelled)
        tell_cancelled(db, webhook_id, ended)
        cancelled += ended
        if result != "more":
            return Removed(cancelled, sending) if result == "done" else None
        more = True


async def _activate(tx: Tx, webhook_id: str, parked: Parked, also: Also) -> tuple[Step, int]:
    """Return whether it is active, and how many deliveries were cancelled."""
    await lanes.lock(tx, [webhook_id])
    if await tx.one(STILL_INACTIVE, webhook_id) is None:
        return "no", 0
    more, ended = await _end_some(tx, webhook_id, "parked") if parked == "none" else (False, 0)
    if more:
        return "more", ended
    troubled = await tx.one(TROUBLED, webhook_id)
    if not await tx.run(ACTIVATE, webhook_id, tx.now):
        return "no", ended
    if troubled is not None:
        await owner_reports.tell(tx, [owner_reports.activated(webhook_id, troubled["owner_id"])])
    await tx.run(OPEN_LANE, webhook_id)
    await circuits.forget_passes(tx, webhook_id)
    await lanes.rest(tx, [webhook_id])
    tx.changed.add(webhook_id)
    tx.wake = True
    also(tx)
    return "done", ended


async def stop(tx: Tx, webhook_id: str) -> None:
    """Stop sending, also from a disabled webhook, before it is removed."""
    await lanes.lock(tx, [webhook_id])
    tx.changed.add(webhook_id)
    await tx.run(
        """
        update webhooks set state = 'paused', version = version + 1, updated_at = $2
        where id = $1 and state <> 'paused'
        """,
        webhook_id,
        tx.now,
    )
    await tx.run("update lanes set active = false where webhook_id = $1", webhook_id)


async def _cancel(tx: Tx, webhook_id: str) -> tuple[bool, int]:
    """Cancel a batch of a stopped webhook; return whether more may be left, and how many it was."""
    # A fan-out that skipped its turn because of this lock runs after this commit.
    tx.wake = True
    await lanes.lock(tx, [webhook_id])
    if await tx.one(STILL_INACTIVE, webhook_id) is None:
        return False, 0
    return await _end_some(tx, webhook_id, deleted_webhooks.REASON)


async def _remove_counts(tx: Tx, webhook_id: str) -> bool:
    """Delete counts of a stopped webhook; return whether some may be left."""
    await lanes.lock(tx, [webhook_id])
    if await tx.one(STILL_INACTIVE, webhook_id) is None:
        return False
    return await attempt_counts.remove(tx, webhook_id, BATCH)


async def _remove(tx: Tx, webhook_id: str, also: Also, before: int) -> tuple[Step, int, int]:
    """Return whether it is deleted, how many deliveries were cancelled, and how many are sent.

    `before` is how many were cancelled in earlier transactions.
    """
    tx.wake = True
    await lanes.lock(tx, [webhook_id])
    if await tx.one(STILL_INACTIVE, webhook_id) is None:
        return "no", 0, 0
    # The fan-out of all nodes waits for this lock. The last one that saw the webhook may have made
    # deliveries only now, and counted: with its counts locked here, each would wait for the other.
    await tx.one(lanes.NO_FAN_OUT)
    more, ended = await _end_some(tx, webhook_id, deleted_webhooks.REASON)
    if more:
        return "more", ended, 0
    await attempt_counts.remove(tx, webhook_id, BATCH)
    await chain_gaps.end_chain(tx, webhook_id)
    await circuits.forget_passes(tx, webhook_id)
    await deleted_webhooks.note(tx, webhook_id, before + ended)
    sending = await deleted_webhooks.sending(tx, webhook_id)
    tx.changed.add(webhook_id)
    if not await tx.run("delete from webhooks where id = $1", webhook_id):
        return "no", ended, 0
    also(tx)
    return "done", ended, sending


async def _end_some(tx: Tx, webhook_id: str, reason: str) -> tuple[bool, int]:
    """Cancel a batch of waiting deliveries; return whether more may be left, and how many it was.

    Heads last, so that held deliveries still have a head when the process dies in between.
    """
    held = await tx.run(END_HELD, webhook_id, reason, tx.now)
    if held == BATCH:
        return True, held
    ready = await tx.run(END_READY, webhook_id, reason, tx.now)
    return ready == BATCH, held + ready
