"""Take back deliveries whose claim has no sender, whose worker died or whose result was lost.

A rescue counts when the process that sent the delivery seems to have ended. It stops counting when
that process reports a result after all: it hung, or was cut off, for longer than its lease. A
recorded attempt sets the count to zero.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from outbox.database.sql import IDS, ITEMS, items
from outbox.database.transaction import Row, Tx
from outbox.queue.state import attempt_counts, deleted_webhooks, head_deliveries, lanes
from outbox.queue.state.policy import (
    MOST_RESCUES,
    RESCUES_AT_ONCE,
    Schedule,
    parse_schedule,
    rescued,
)

ENDED = "the process ended while sending"
UNSTORED = "the result could not be stored"

OF_CLAIM = "select id, webhook_id from deliveries where claim = $1 and state = 'in_flight'"
# Cast, because a damaged count must not fail the rescue of the other rows.
OF_NODE = """
select id, webhook_id, cast(rescues as bigint) as rescues from deliveries
where node_id = $1 and state = 'in_flight'
"""
SCHEDULES = f"select id, schedule from webhooks where id in {IDS} and schedule is not null"

RELEASE = f"""
update deliveries set state = 'ready', claim = null, node_id = null, attempts = attempts - 1
where id in {IDS} and claim = $2
"""

RESCUE = f"""
update deliveries set retry = true, claim = null, node_id = null, rescues = s.times,
  lost_claim = case when s.times > deliveries.rescues then claim else lost_claim end,
  next_at = (select due_now()) + s.delay, state = s.new_state, reason = coalesce(s.why, reason),
  finished_at = s.finished
from (
  select value ->> 0 as delivery, cast(value ->> 1 as bigint) as times,
    cast(value ->> 2 as bigint) as delay, value ->> 3 as new_state, value ->> 4 as why,
    cast(value ->> 5 as bigint) as finished
  from {ITEMS}) as s
where deliveries.id = s.delivery and node_id = $2 and claim is not null
returning id, webhook_id, state
"""
UNCOUNT = f"""
update deliveries set rescues = rescues - 1, lost_claim = null,
  reason = case when state = 'ready' then last_outcome else reason end,
  next_at = case when state = 'ready' and next_at > (select due_now()) then (select due_now())
    else next_at end
from (select value ->> 0 as delivery, value ->> 1 as token from {ITEMS}) as s
where deliveries.id = s.delivery and lost_claim = s.token and rescues > 0
  and state in ('ready', 'in_flight')
returning webhook_id
"""

RESCUED = f"""
select d.id, d.event_id, d.webhook_id, d.attempts, d.state, e.request_id, e.traceparent
from deliveries d left join events e on e.id = d.event_id where d.id in {IDS}
"""


@dataclass(frozen=True, slots=True)
class Waits:
    """How long rescued deliveries wait, at webhooks without a schedule of their own."""

    schedule: Schedule
    dice: Callable[[], float]


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


async def release(tx: Tx, claim: str) -> tuple[bool, Collection[str]]:
    """Release claimed but unsent deliveries of `claim`; return whether all are released.

    Return also the webhook of each that ended, because its webhook was deleted meanwhile. Waits for
    no lock: those in locked lanes are released a little later.
    """
    rows = await tx.all(OF_CLAIM, claim)
    free, busy = await lanes.try_lock(tx, {row["webhook_id"] for row in rows})
    locked = set(busy)
    ids = sorted(row["id"] for row in rows if row["webhook_id"] not in locked)
    done = await tx.run(RELEASE, items(ids), claim) if ids else 0
    over = await deleted_webhooks.end_left(tx, ids)
    await lanes.rest(tx, free)
    tx.wake = tx.wake or bool(done)
    return not busy, over.values()


async def unheld(tx: Tx, node_id: str, but: Collection[str]) -> bool:
    """Return whether a node has deliveries in flight other than those in `but`."""
    return any(row["id"] not in but for row in await tx.all(OF_NODE, node_id))


async def rescue(
    tx: Tx,
    node_id: str,
    waits: Waits,
    *,
    but: Collection[str] = (),
    unstored: Collection[str] | None = None,
) -> list[Rescued]:
    """Make a node's deliveries in flight ready again, except those in `but`; return them.

    Each rescue counts as an end of the process. A process that rescues its own deliveries passes
    the ids in `unstored`, whose results it could not store: only these count. Waits for no lock:
    those in locked lanes are left for the next run.
    """
    rows = await tx.all(OF_NODE, node_id)
    lost = {row["id"]: row for row in rows if row["id"] not in but}
    free, busy = await lanes.try_lock(tx, {row["webhook_id"] for row in lost.values()})
    locked = set(busy)
    rows = [row for delivery_id, row in sorted(lost.items()) if row["webhook_id"] not in locked]
    ends = await _ends(tx, rows, waits, unstored)
    done = await tx.all(RESCUE, items(ends), node_id) if ends else []
    await deleted_webhooks.end_left(tx, [row["id"] for row in done])
    dead = [row for row in done if row["state"] == "dead"]
    await attempt_counts.count_dead(tx, [row["webhook_id"] for row in dead])
    await head_deliveries.promote(tx, [row["id"] for row in dead])
    await lanes.rest(tx, free)
    if done:
        await lanes.mark(tx)
    tx.wake = tx.wake or bool(done)
    return [
        Rescued(
            delivery_id=row["id"],
            event_id=row["event_id"],
            webhook_id=row["webhook_id"],
            attempt=row["attempts"],
            state=row["state"],
            request_id=row["request_id"],
            traceparent=row["traceparent"],
        )
        for row in (await tx.all(RESCUED, items([row["id"] for row in done])) if done else ())
    ]


async def uncount(tx: Tx, claims: Sequence[tuple[str, str]]) -> None:
    """Subtract the rescues that ended these claims (delivery and token): their process lives.

    What waits because of them is due now. The caller has locked the lanes.
    """
    if webhooks := [row["webhook_id"] for row in await tx.all(UNCOUNT, items(claims))]:
        await lanes.rest(tx, webhooks)
        tx.wake = True


async def _ends(
    tx: Tx, rows: Sequence[Row], waits: Waits, unstored: Collection[str] | None
) -> list[tuple[object, ...]]:
    """Return for each delivery its count, delay, state, reason and end, for RESCUE."""
    often = {row["webhook_id"] for row in rows if row["rescues"] >= RESCUES_AT_ONCE}
    schedules = await _schedules(tx, often)
    ends: list[tuple[object, ...]] = []
    for row in rows:
        if unstored is not None and row["id"] not in unstored:
            ends.append((row["id"], row["rescues"], 0, "ready", None, None))
            continue
        times = min(max(row["rescues"], 0) + 1, MOST_RESCUES)
        decision = rescued(
            times,
            ENDED if unstored is None else UNSTORED,
            schedule=schedules.get(row["webhook_id"], waits.schedule),
            dice=waits.dice(),
        )
        ends.append(
            (
                row["id"], times, decision.delay_us or 0, decision.state, decision.reason,
                None if decision.state == "ready" else tx.now,
            )
        )  # fmt: skip
    return ends


async def _schedules(tx: Tx, webhook_ids: Collection[str]) -> Mapping[str, Schedule]:
    """Return the schedules of webhooks that have one; a damaged one counts as none."""
    schedules: dict[str, Schedule] = {}
    for row in await tx.all(SCHEDULES, items(sorted(webhook_ids))) if webhook_ids else ():
        try:
            schedules[row["id"]] = parse_schedule(row["schedule"])
        except (ValueError, TypeError, ArithmeticError):
            continue
    return schedules
