"""Record results of attempts: delivery, attempt row, and the webhook's health and lane, at once.

It is one module because one unit writes all of it, in an order that each part relies on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from outbox.database.sql import IDS, ITEMS, items
from outbox.database.transaction import Insert, Tx, brief
from outbox.durations import SECOND
from outbox.queue.drain.rescue import uncount
from outbox.queue.state import (
    attempt_counts,
    chain,
    circuits,
    deleted_webhooks,
    lanes,
    owner_reports,
)
from outbox.queue.state.chain import Head
from outbox.queue.state.circuits import Transition
from outbox.queue.state.claimed_deliveries import Result
from outbox.queue.state.head_deliveries import promote
from outbox.queue.state.policy import DELIVERED
from outbox.sending.outcome import Outcome
from outbox.sending.permission import Permission
from outbox.sending.request_targets import requested
from outbox.states import NOT_THE_RECEIVER

# The claim implies that the delivery is in flight; a condition on `state` beside it would let
# PostgreSQL start from all rows in that state, when its statistics are from an empty queue.
SETTLE = f"""
update deliveries set state = s.new_state, reason = s.why, retry = retry or s.used > 0,
  next_at = (select due_now()) + s.delay, tries = s.used,
  rescues = case when s.outcome is null then rescues else 0 end, claim = null, node_id = null,
  attempts = attempts - s.unsent,
  finished_at = s.finished, last_outcome = s.outcome, last_status = s.status
from (
  select value ->> 0 as delivery, value ->> 1 as token, value ->> 2 as new_state,
    value ->> 3 as why, cast(value ->> 4 as bigint) as delay, cast(value ->> 5 as bigint) as used,
    cast(value ->> 6 as bigint) as finished, value ->> 7 as outcome,
    cast(value ->> 8 as bigint) as status, cast(value ->> 9 as bigint) as unsent
  from {ITEMS}) as s
where deliveries.id = s.delivery and deliveries.claim = s.token
returning id, ordered and state <> 'ready' as over, {lanes.CHAIN}
"""

# Put off, so that PostgreSQL writes it with the transaction's last statement.
ATTEMPT = Insert("attempts", (*chain.COVERED, *chain.LINK), referred=False)

# The first failure since the last success stays: it decides when a webhook is disabled. Without a
# number of failures (`since`) the attempt is not judged: it only is the last one. A success behind
# another one changes times alone, which are kept to the second: the row is left as it is.
HEALTH = f"""
update webhooks set last_attempt_at = $2, last_outcome = s.outcome, last_status = s.status,
  unreadable = null,
  last_success_at = case when s.succeeded = 1 then $2 else last_success_at end,
  failing_since = case when s.since is null then failing_since when s.since = 0 then null
    when s.succeeded = 1 or failing_since is null then $2 else failing_since end,
  failures = case when s.succeeded = 1 then s.since else failures + coalesce(s.since, 0) end,
  failed_events = case when s.since is null then failed_events else s.failed end
from (
  select value ->> 0 as webhook, value ->> 1 as outcome, cast(value ->> 2 as bigint) as status,
    cast(value ->> 3 as bigint) as succeeded, cast(value ->> 4 as bigint) as since,
    value ->> 5 as failed
  from {ITEMS}) as s
where webhooks.id = s.webhook
  and case when s.succeeded = 1 and s.since = 0 and last_outcome = 'success'
    and last_success_at between cast($2 as bigint) - {SECOND} and cast($2 as bigint)
    and last_status = s.status and circuit = 'closed' and failures = 0
    and failing_since is null and failed_events is null and unreadable is null
    then false else true end
returning {circuits.RETURNED}
"""

URLS = f"select id, url, failed_events from webhooks where id in {IDS}"

UNREADABLE = f"""
update webhooks set unreadable = s.why
from (select value ->> 0 as webhook, value ->> 1 as why from {ITEMS}) as s
where webhooks.id = s.webhook and coalesce(unreadable, '') <> s.why
returning id, unreadable
"""

PERMISSION = "update webhooks set allowed_at = $3, allowed_rate = $4 where id = $1 and version = $2"
# The lower one of what the owner and the receiver allow.
ALLOWED_RATE = """
update lanes set rate = (
  select case when w.rate <= w.allowed_rate or w.allowed_rate is null then w.rate
    else w.allowed_rate end from webhooks w where w.id = $1)
where webhook_id = $1
"""


@dataclass(frozen=True, slots=True)
class Settlement:
    """The result of a batch: ids that still had their claims, and results whose lanes were locked.

    `wait_us`: microseconds until one of its lanes is due again, None when none is. `transitions`:
    what became of webhooks. `unreadable`: webhooks that cannot sign any more, with the
    reasons. `ended`: by delivery, results of deleted webhooks as they were recorded.
    """

    held: frozenset[str]
    deferred: list[Result]
    wait_us: int | None
    transitions: Sequence[Transition] = ()
    unreadable: Sequence[tuple[str, str]] = ()
    ended: Mapping[str, Result] = field(default_factory=dict)


@brief
async def settle(tx: Tx, batch: Sequence[Result]) -> Settlement:
    """Record the results of attempts.

    A result whose claim is lost changes nothing: another worker has the delivery now. This waits
    for no lock: results in locked lanes are recorded a little later.
    """
    _, busy = await lanes.try_lock(tx, {s.delivery.webhook_id for s in batch})
    deferred = [s for s in batch if s.delivery.webhook_id in busy]
    ends: list[tuple[Any, ...]] = [
        (
            s.delivery.id, s.delivery.claim, s.decision.state, s.decision.reason,
            s.decision.delay_us or 0, s.delivery.attempt.tries + s.decision.uses_try,
            None if s.decision.state == "ready" else tx.now,
            s.outcome.outcome if s.outcome else None, s.outcome.status if s.outcome else None,
            # Nothing was sent: the first request of a delivery is its first attempt.
            int(not s.request_headers and s.outcome is None and s.decision.state == "ready"),
        )
        for s in batch if s.delivery.webhook_id not in busy
    ]  # fmt: skip
    rows = await tx.all(SETTLE, items(ends)) if ends else []
    chains: dict[str, str | None] = {row["id"]: row["chain"] for row in rows}
    if over := [row["id"] for row in rows if row["over"]]:
        await promote(tx, over)
    if fenced := [(end[0], end[1]) for end in ends if end[0] not in chains]:
        await uncount(tx, fenced)
    settled = [s for s in batch if s.delivery.id in chains]
    # A lane always has a chain.
    late = [s for s in settled if chains[s.delivery.id] is None]
    ended: dict[str, Result] = {}
    if late:
        ended = await deleted_webhooks.ended(tx, late)
        settled = [ended.get(s.delivery.id, s) for s in settled]
        of_deleted = await deleted_webhooks.chains(tx, [s.delivery.webhook_id for s in late])
        chains |= {s.delivery.id: of_deleted.get(s.delivery.webhook_id) for s in late}
    attempts, heads = chain.link(
        [
            (
                attempt_of(s, s.outcome), s.delivery.event.body_digest, event_digest_of(s),
                s.decision.state,
            )
            for s in settled if s.outcome is not None
        ],
        {s.delivery.webhook_id: chains[s.delivery.id] for s in settled},
    )  # fmt: skip
    for attempt in attempts:
        tx.later(ATTEMPT, attempt)
    if late:
        gone = {s.delivery.webhook_id for s in late}
        await deleted_webhooks.go_on(tx, {w: head for w, head in heads.items() if w in gone})
        settled = [s for s in settled if s.delivery.webhook_id not in gone]
    await attempt_counts.count_results(tx, settled)
    by_webhook: dict[str, list[Result]] = {}
    for s in settled:
        by_webhook.setdefault(s.delivery.webhook_id, []).append(s)
    permissions: dict[str, Permission] = {}
    for s in batch:
        # A lost claim does not matter: the receiver has said it.
        if s.permission is not None and s.delivery.webhook_id not in busy:
            permissions[s.delivery.webhook_id] = s.permission
    if permissions:
        await _note_permissions(tx, permissions)
    unreadable = await _unreadable(tx, settled)
    wait_us, transitions = await _health(tx, by_webhook, heads)
    troubled = bool(transitions) or not all(s.decision is DELIVERED for s in settled)
    if troubled:
        await owner_reports.tell(tx, transitions, settled)
    if over or troubled:
        # A success for which nobody waits stores no time at which something is due.
        await lanes.mark(tx)
    return Settlement(frozenset(chains), deferred, wait_us, transitions, unreadable, ended)


def attempt_of(s: Result, outcome: Outcome) -> tuple[Any, ...]:
    """Return the values of chain.COVERED."""
    d = s.delivery
    return (
        d.owner_id, d.id, d.webhook_id, d.event.id, d.attempt.number,
        "probe" if d.attempt.probe else d.origin,
        outcome.outcome, outcome.status, outcome.error, s.started_at, outcome.dns_us,
        outcome.connect_us, outcome.tls_us, outcome.first_byte_us, outcome.total_us,
        outcome.address, requested(s.url), items(s.request_headers),
        items(outcome.response_headers), outcome.response_body, outcome.truncated, s.node_id,
    )  # fmt: skip


def event_digest_of(s: Result) -> bytes:
    """Return the digest of the event without its body."""
    event = s.delivery.event
    return chain.event_of(event.name, event.record_id, event.record_version, event.occurred_at)


async def _unreadable(tx: Tx, settled: Sequence[Result]) -> list[tuple[str, str]]:
    """Store why webhooks cannot sign; return those for which that is new."""
    reasons = {s.delivery.webhook_id: s.decision.reason for s in settled if s.unreadable}
    if not reasons:
        return []
    rows = await tx.all(UNREADABLE, items(sorted(reasons.items())))
    return [(row["id"], row["unreadable"]) for row in rows]


async def _note_permissions(tx: Tx, permissions: Mapping[str, Permission]) -> None:
    """Note what receivers have allowed, and hold their lanes to the rates."""
    for webhook_id, one in sorted(permissions.items()):
        at = tx.now if one.granted else None
        if await tx.run(PERMISSION, webhook_id, one.version, at, one.rate):
            await tx.run(ALLOWED_RATE, webhook_id)


def _concerns_receiver(outcome: Outcome) -> bool:
    """Return whether an outcome concerns the receiver, which a stale connection does not."""
    return outcome.outcome not in NOT_THE_RECEIVER and not outcome.stale


async def _of_past_urls(
    tx: Tx, by_webhook: Mapping[str, Sequence[Result]]
) -> tuple[set[tuple[str, str]], Mapping[str, str | None]]:
    """Return webhooks and URLs of failed requests whose webhook has another URL by now.

    They say nothing about the new URL. Successes are not read: they do a new URL no harm. Return
    also which events have failed before, of the webhooks with failures.
    """
    failed = {
        (webhook_id, s.url)
        for webhook_id, batch in by_webhook.items()
        for s in batch
        if s.outcome is not None and (s.decision.counts_as_failure or s.decision.webhook_wait_us)
    }
    if not failed:
        return set(), {}
    rows = await tx.all(URLS, items(sorted({webhook_id for webhook_id, _ in failed})))
    return (
        failed - {(row["id"], row["url"]) for row in rows},
        {row["id"]: row["failed_events"] for row in rows},
    )


async def _health(
    tx: Tx, by_webhook: Mapping[str, Sequence[Result]], heads: Mapping[str, Head]
) -> tuple[int | None, list[Transition]]:
    """Fold a batch into each webhook's health, circuit and lane, one row each.

    `heads` end the chains. Return microseconds until the first of the lanes is due, None when none
    is, and the transitions of the webhooks.
    """
    past, failed_events = await _of_past_urls(tx, by_webhook)
    health: list[tuple[object, ...]] = []
    outcomes: list[tuple[object, ...]] = []
    for webhook_id, batch in sorted(by_webhook.items()):
        relevant = [
            s
            for s in batch
            if s.outcome is not None
            and _concerns_receiver(s.outcome)
            and (webhook_id, s.url) not in past
        ]
        if not relevant:
            hold = max((s.decision.webhook_wait_us or 0 for s in batch if s.unreadable), default=0)
            outcomes.append((webhook_id, 0, 0, hold, *heads.get(webhook_id, ())))
            if any(s.outcome is not None and s.outcome.outcome == "proxy_error" for s in batch):
                # Its owner sees it as the last outcome. A probe comes again as it was due.
                health.append((webhook_id, "proxy_error", None, 0, None, None))
            continue
        since = 0
        succeeded = 0
        for s in relevant:
            if s.decision.counts_as_failure:
                since += 1
            else:
                since, succeeded = 0, 1
        hold = max(s.decision.webhook_wait_us or 0 for s in relevant)
        last = relevant[-1].outcome
        assert last is not None
        earlier_events = failed_events.get(webhook_id)
        failed = relevant[-1].needed.after(earlier_events, relevant) if since else None
        health.append((webhook_id, last.outcome, last.status, succeeded, since, failed))
        outcomes.append((webhook_id, 1 + succeeded, since, hold, *heads.get(webhook_id, ())))
    rows = await tx.all(HEALTH, items(health), tx.now) if health else []
    transitions = await circuits.judge(tx, rows, by_webhook)
    disabled = {
        (s.delivery.webhook_id, s.url)
        for batch in by_webhook.values()
        for s in batch
        if s.decision.disable
    }
    for webhook_id, url in sorted(disabled):
        transitions += await circuits.disable(tx, webhook_id, "gone", url)
    wait_us, overdue = await lanes.record_outcomes(tx, outcomes, circuits.DISABLED_AFTER)
    judged = {row["id"]: row for row in rows}
    for webhook_id in sorted(overdue):
        row = judged[webhook_id]
        needed = by_webhook[webhook_id][-1].needed
        if not needed.suffices(int(row["failures"]), row["failed_events"]):
            continue
        transitions += await circuits.disable(tx, webhook_id, circuits.FAILING, None)
    return wait_us, transitions
