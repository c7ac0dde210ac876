"""Open and close circuits: after many failures in a row a webhook gets only occasional probes.

A circuit opens and closes in the transaction that records the attempts. The lane stores the time of
the next probe, which each claim reads, so that the circuit applies on all nodes after this commit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from outbox.database.sql import IDS, ITEMS, items
from outbox.database.transaction import Row, Tx
from outbox.durations import DAY, MINUTE, SECOND
from outbox.queue.state.claimed_deliveries import Result
from outbox.states import Change

FAILURES = 10
"""Failures in a row that open a circuit."""
# Microseconds. The first probe comes after the schedule's next delay, within these bounds; after
# each failed probe the delay is twice as long.
SHORTEST_WAIT = SECOND
FIRST_WAIT = 30 * SECOND
LONGEST_WAIT = 15 * MINUTE
DISABLED_AFTER = 5 * DAY
"""Microseconds from the first failure since the last success to the failure that disables."""
FAILING = "failing"
"""The reason of a webhook that was disabled because it failed for so long."""


@dataclass(frozen=True, slots=True)
class Transition:
    """A change that attempts made to a webhook: its circuit, or that it is disabled.

    `reason` is the last attempt's outcome; of a disabled webhook `gone` or `failing`. `since` is
    when the failures began, of a closed circuit when it had opened, in microseconds UTC.
    """

    webhook_id: str
    owner_id: str
    to: Change
    reason: str
    since: int | None


_OPEN = f"""
update webhooks set circuit = 'open', circuit_opened_at = $2, circuit_backoff = s.wait
from (select value ->> 0 as webhook, cast(value ->> 1 as bigint) as wait from {ITEMS}) as s
where webhooks.id = s.webhook
"""
_OPEN_LANES = f"""
update lanes set probe_at = (select due_now()) + s.wait
from (select value ->> 0 as webhook, cast(value ->> 1 as bigint) as wait from {ITEMS}) as s
where lanes.webhook_id = s.webhook
"""
# What waited for the circuit is due from now on, so that its wait does not count as a stall.
_CLOSE_LANES = f"""
update lanes set probe_at = null,
  wait_until = /*sqlite max*/ /*postgres greatest*/(wait_until, (select due_now()))
where webhook_id in {IDS}
"""
_CLOSE = f"""
update webhooks set circuit = 'closed', circuit_opened_at = null, circuit_backoff = null
where id in {IDS}
"""
_BACK_OFF = f"""
update webhooks set circuit_backoff =
  case when circuit_backoff < {LONGEST_WAIT // 2} then circuit_backoff * 2 else {LONGEST_WAIT} end
where id in {IDS} returning id, circuit_backoff
"""
_PROBE_NOW = f"""
update lanes set probe_at = (select due_now()) where webhook_id in {IDS} and probe_at is not null
"""
_FORGET = f"delete from passes where webhook_id in {IDS}"
_ADMIT = """
insert into passes (delivery_id, webhook_id, pauses)
select $1, l.webhook_id, $3 from lanes l
where l.webhook_id = $2 and (l.probe_at is not null or ($3 and l.wait_until > due_now()))
on conflict (delivery_id) do update set pauses = excluded.pauses or passes.pauses
"""
_FORGET_USED = """
delete from passes where webhook_id = $1 and not exists (
  select 1 from deliveries d where d.id = passes.delivery_id and d.state || '' = 'ready')
"""
_NEXT = """
select coalesce(due_at, probe_at) - due_now() as wait from lanes
where webhook_id = $1 and probe_at is not null
"""
_DISABLE = """
update webhooks set state = 'disabled', disabled_reason = $2, version = version + 1,
  updated_at = $3
where id = $1 and state = 'active' and (url = $4 or $4 is null)
returning owner_id, failing_since
"""


async def judge(
    tx: Tx, webhooks: Sequence[Row], batches: Mapping[str, Sequence[Result]]
) -> list[Transition]:
    """Open and close circuits after attempts, and delay the next probe after a failed one.

    `webhooks` are rows of the judged webhooks, with the columns of RETURNED after the attempts; the
    caller has the locks of their lanes.
    """
    opened: list[tuple[str, int]] = []
    closed: list[str] = []
    failed: list[str] = []
    changes: list[Transition] = []
    for row in webhooks:
        if row["circuit"] == "closed":
            if row["failures"] >= FAILURES and row["state"] == "active":
                opened.append((row["id"], _first_wait(batches[row["id"]])))
                changes.append(_transition(row, "open", row["failing_since"]))
        elif row["failures"] < FAILURES:
            closed.append(row["id"])
            changes.append(_transition(row, "closed", row["circuit_opened_at"]))
        elif any(
            s.delivery.attempt.probe and s.decision.counts_as_failure for s in batches[row["id"]]
        ):
            failed.append(row["id"])
    if opened:
        await tx.run(_OPEN, items(opened), tx.now)
        await tx.run(_OPEN_LANES, items(opened))
    if closed:
        await tx.run(_CLOSE, items(closed))
        await tx.run(_CLOSE_LANES, items(closed))
    if opened or closed:
        await tx.run(_FORGET, items([*closed, *(webhook for webhook, _ in opened)]))
    unjudged = set(batches).difference(row["id"] for row in webhooks)
    if aborted := sorted(w for w in unjudged if any(s.delivery.attempt.probe for s in batches[w])):
        # The probe was aborted; probe again now.
        await tx.run(_PROBE_NOW, items(aborted))
    if failed:
        rows = await tx.all(_BACK_OFF, items(failed))
        await tx.run(_OPEN_LANES, items([(row["id"], row["circuit_backoff"]) for row in rows]))
    return changes


RETURNED = """id, owner_id, state, failures, failing_since, failed_events, last_outcome, circuit,
  circuit_opened_at"""


async def let_pass(tx: Tx, deliveries: Sequence[tuple[str, str]], *, pauses: bool = False) -> None:
    """Let these deliveries (id and webhook) pass a circuit that is open.

    With `pauses` they also pass a pause that the receiver asked for. Call it before `lanes.wake`;
    where nothing holds the webhook, nothing changes.
    """
    if deliveries:
        await tx.many(_ADMIT, [(*one, pauses) for one in deliveries])


async def forget_used(tx: Tx, webhook_id: str) -> None:
    """Forget passes whose deliveries went when the pause was over; the lane is locked."""
    await tx.run(_FORGET_USED, webhook_id)


async def next_probe(tx: Tx, webhook_id: str) -> int | None:
    """Return microseconds until the next probe, 0 for now; None while the circuit is closed."""
    row = await tx.one(_NEXT, webhook_id)
    return None if row is None else max(int(row["wait"]), 0)


async def forget_passes(tx: Tx, webhook_id: str) -> None:
    """Forget what may pass the circuit of a webhook."""
    await tx.run(_FORGET, items([webhook_id]))


async def disable(tx: Tx, webhook_id: str, reason: str, url: str | None) -> list[Transition]:
    """Disable a webhook if it is active, and with `url` only while that is its address."""
    row = await tx.one(_DISABLE, webhook_id, reason, tx.now, url)
    if row is None:
        return []
    await tx.run("update lanes set active = false where webhook_id = $1", webhook_id)
    tx.changed.add(webhook_id)
    return [Transition(webhook_id, row["owner_id"], "disabled", reason, row["failing_since"])]


def _first_wait(batch: Sequence[Result]) -> int:
    delays = [
        s.decision.delay_us
        for s in batch
        if s.decision.counts_as_failure and s.decision.delay_us is not None
    ]
    return min(max(min(delays, default=FIRST_WAIT), SHORTEST_WAIT), FIRST_WAIT)


def _transition(row: Row, to: Change, since: int | None) -> Transition:
    return Transition(row["id"], row["owner_id"], to, row["last_outcome"], since)
