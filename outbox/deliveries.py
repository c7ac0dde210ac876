"""The delivery state machine: claim what is due, settle what was sent, rescue, release."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from outbox import bulk, lanes
from outbox.bulk import IDS, ITEMS, items
from outbox.database import Row, Tx
from outbox.outcome import Outcome
from outbox.policy import Decision

# How many sends at once a webhook starts with; one, when its last attempt failed.
FIRST_WINDOW = 2
FAILING_WINDOW = 1
# A lane that this worker cannot serve now is looked at again when one of its sends settles; this
# is for the settle that never comes.
BUSY = 30_000_000
LANES_AT_ONCE = 256


@dataclass(frozen=True, slots=True)
class Claimed:
    """A delivery that this worker holds, with everything that its request needs."""

    id: str
    owner_id: str
    event_id: str
    webhook_id: str
    origin: Literal["event", "replay", "test"]
    tries: int
    attempt: int
    retry: bool
    lag_us: int
    claim: str
    event_name: str
    record_version: int
    occurred_at: int
    request_id: str | None
    traceparent: str | None
    body: bytes | None


@dataclass(frozen=True, slots=True)
class Target:
    """A webhook as the worker needs it; secrets and headers still sealed."""

    id: str
    version: int
    url: str
    timeout_ms: int | None
    schedule: str | None
    headers: bytes | None
    secret: bytes
    staged_secret: bytes | None
    old_secret: bytes | None
    old_secret_until: int | None
    failures: int


@dataclass(frozen=True, slots=True)
class Room:
    """How much a worker can take on, as it was when it asked: a unit may run twice.

    `slots` and `failing_slots` count sends; `windows` holds what is left of each webhook's window
    where that differs from a fresh one.
    """

    node_id: str
    claim: str
    slots: int
    failing_slots: int
    windows: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Settled:
    """A finished attempt and what was decided about its delivery."""

    delivery: Claimed
    decision: Decision
    outcome: Outcome | None
    started_at: int
    request_headers: Sequence[tuple[str, str]]
    url: str
    node_id: str
    kind: Literal["event", "replay", "test", "probe"]


COLUMNS = """d.id, d.owner_id, d.event_id, d.webhook_id, d.origin, d.tries, d.attempts, d.retry,
  (select due_now()) - d.next_at as lag_us, e.name as event_name, e.record_version, e.occurred_at,
  e.request_id, e.traceparent, e.body"""

DUE_LANES = """
select webhook_id from lanes
where active and due_at is not null and failing = $1 and due_at <= (select due_now())
order by due_at limit $2
/*postgres for update skip locked*/
"""

# Two ranges of one index: first attempts go before retries. The state stands in the text because
# the index is partial.
CLAIM = """
update deliveries set state = 'in_flight', claim = $1, node_id = $2, attempts = attempts + 1
where state = 'ready' and id in (
  select id from (
    select * from (
      select id, retry, next_at from deliveries
      where webhook_id = $3 and state = 'ready' and retry = false and next_at <= (select due_now())
      order by next_at limit $4 /*postgres for update skip locked*/
    ) as firsts
    union all
    select * from (
      select id, retry, next_at from deliveries
      where webhook_id = $3 and state = 'ready' and retry = true and next_at <= (select due_now())
      order by next_at limit $4 /*postgres for update skip locked*/
    ) as retries
  ) as due order by retry, next_at limit $4)
returning id, webhook_id
"""

# Behind the others that are due by now: that makes the turns round.
TURN = f"update lanes set due_at = (select due_now()) where webhook_id in {IDS}"
SET_ASIDE = f"update lanes set due_at = (select due_now()) + {BUSY} where webhook_id in {IDS}"

LOAD = f"""
select {COLUMNS} from deliveries d join events e on e.id = d.event_id
where d.id in {IDS} order by d.retry, d.next_at
"""

TARGETS = f"""
select id, version, url, timeout_ms, schedule, headers, secret, staged_secret, old_secret,
  old_secret_until, failures
from webhooks where id in {IDS}
"""

SETTLE = f"""
update deliveries set state = s.new_state, reason = s.why, retry = true,
  next_at = (select due_now()) + s.delay, tries = s.used, claim = null, node_id = null,
  finished_at = s.finished, last_outcome = s.outcome, last_status = s.status
from (
  select value ->> 0 as delivery, value ->> 1 as token, value ->> 2 as new_state,
    value ->> 3 as why, cast(value ->> 4 as bigint) as delay, cast(value ->> 5 as bigint) as used,
    cast(value ->> 6 as bigint) as finished, value ->> 7 as outcome,
    cast(value ->> 8 as bigint) as status
  from {ITEMS}) as s
where deliveries.id = s.delivery and deliveries.claim = s.token and deliveries.state = 'in_flight'
returning id
"""

ATTEMPT = (
    "owner_id", "delivery_id", "webhook_id", "event_id", "number", "kind", "outcome",
    "status", "error", "started_at", "dns_us", "connect_us", "tls_us", "first_byte_us",
    "total_us", "address", "url", "request_headers", "response_headers", "response_body",
    "truncated", "node_id",
)  # fmt: skip

# The first failure since the last success is kept: it decides when a webhook is given up.
HEALTH = f"""
update webhooks set last_attempt_at = $2, last_outcome = s.outcome, last_status = s.status,
  last_success_at = case when s.succeeded = 1 then $2 else last_success_at end,
  failing_since = case when s.since = 0 then null
    when s.succeeded = 1 or failing_since is null then $2 else failing_since end,
  failures = case when s.succeeded = 1 then s.since else failures + s.since end
from (
  select value ->> 0 as webhook, value ->> 1 as outcome, cast(value ->> 2 as bigint) as status,
    cast(value ->> 3 as bigint) as succeeded, cast(value ->> 4 as bigint) as since
  from {ITEMS}) as s
where webhooks.id = s.webhook
"""

LANE = f"""
update lanes set failing = (s.since > 0),
  wait_until = case when s.hold > 0 then (select due_now()) + s.hold else wait_until end
from (
  select value ->> 0 as webhook, cast(value ->> 4 as bigint) as since,
    cast(value ->> 5 as bigint) as hold
  from {ITEMS}) as s
where lanes.webhook_id = s.webhook
"""

DISABLE = """
update webhooks set state = 'disabled', disabled_reason = $2, version = version + 1,
  updated_at = $3
where id = $1 and state = 'active'
"""

MARK = "update outbox_state set due_mark = due_now() where due_mark < due_now()"


async def claim(tx: Tx, room: Room) -> tuple[list[Claimed], bool]:
    """Take due deliveries within `room`, lanes in turn; whether more may be due at once.

    Healthy webhooks are asked first, and those whose last attempt failed share only
    `failing_slots`, so that any number of dead receivers leaves the others their room.
    """
    taken: list[str] = []
    left = room.slots
    more = False
    for failing in (False, True):
        first = FAILING_WINDOW if failing else FIRST_WINDOW
        if failing:
            left = min(left, room.failing_slots)
        if left <= 0:
            continue
        rows = await tx.all(DUE_LANES, failing, LANES_AT_ONCE)
        more = more or len(rows) == LANES_AT_ONCE
        asks: list[tuple[str, int]] = []
        aside: list[str] = []
        for row in rows:
            webhook_id = row["webhook_id"]
            window = room.windows.get(webhook_id, first)
            if window <= 0:
                aside.append(webhook_id)
            elif left > 0:
                asks.append((webhook_id, min(window, left)))
                left -= min(window, left)
        got: dict[str, int] = {}
        for row in await tx.many(
            CLAIM, [(room.claim, room.node_id, webhook_id, most) for webhook_id, most in asks]
        ):
            taken.append(row["id"])
            got[row["webhook_id"]] = got.get(row["webhook_id"], 0) + 1
        more = await _put_back(tx, room.windows, first, asks, got, aside) or more
    return await load(tx, taken, room.claim), more and left > 0


async def _put_back(
    tx: Tx,
    windows: Mapping[str, int],
    first: int,
    asks: list[tuple[str, int]],
    got: Mapping[str, int],
    aside: list[str],
) -> bool:
    """Give each lane that was asked its next time; whether one of them has more right now."""
    rested: list[str] = []
    turned: list[str] = []
    for webhook_id, most in asks:
        if got.get(webhook_id, 0) < most:
            rested.append(webhook_id)
        elif most >= windows.get(webhook_id, first):
            aside.append(webhook_id)
        else:
            turned.append(webhook_id)
    await lanes.rest(tx, rested)
    if turned:
        await tx.run(TURN, items(turned))
    if aside:
        await tx.run(SET_ASIDE, items(aside))
    return bool(turned)


async def load(tx: Tx, ids: Sequence[str], claim: str) -> list[Claimed]:
    """The claimed deliveries of these ids with their events, first attempts first."""
    if not ids:
        return []
    rows = await tx.all(LOAD, items(ids))
    return [
        Claimed(
            row["id"], row["owner_id"], row["event_id"], row["webhook_id"], row["origin"],
            row["tries"], row["attempts"], bool(row["retry"]), row["lag_us"], claim,
            row["event_name"], row["record_version"], row["occurred_at"], row["request_id"],
            row["traceparent"], row["body"],
        )
        for row in rows
    ]  # fmt: skip


async def targets(tx: Tx, webhook_ids: Sequence[str]) -> dict[str, Target]:
    """What is needed to send to these webhooks."""
    if not webhook_ids:
        return {}
    rows = await tx.all(TARGETS, items(webhook_ids))
    return {row["id"]: _target(row) for row in rows}


def _target(row: Row) -> Target:
    return Target(
        row["id"], row["version"], row["url"], row["timeout_ms"], row["schedule"], row["headers"],
        row["secret"], row["staged_secret"], row["old_secret"], row["old_secret_until"],
        row["failures"],
    )  # fmt: skip


async def settle(tx: Tx, batch: Sequence[Settled]) -> list[str]:
    """Write how attempts ended; the ids of those whose claim still held.

    A settle that lost its claim changes nothing at all: somebody else has the delivery now.
    """
    ends = [
        (
            s.delivery.id, s.delivery.claim, s.decision.state, s.decision.reason,
            s.decision.delay_us or 0, s.delivery.tries + s.decision.uses_try,
            None if s.decision.state == "ready" else tx.now,
            s.outcome.outcome if s.outcome else None, s.outcome.status if s.outcome else None,
        )
        for s in batch
    ]  # fmt: skip
    held = {row["id"] for row in await tx.all(SETTLE, items(ends))}
    kept = [s for s in batch if s.delivery.id in held]
    made = [_attempt(s, s.outcome) for s in kept if s.outcome is not None]
    await bulk.insert(tx, "attempts", ATTEMPT, made)
    by_webhook: dict[str, list[Settled]] = {}
    for s in kept:
        by_webhook.setdefault(s.delivery.webhook_id, []).append(s)
    await _health(tx, by_webhook)
    await lanes.rest(tx, by_webhook)
    if tx.engine == "sqlite":
        await tx.run(MARK)
    return [s.delivery.id for s in kept]


def _attempt(s: Settled, outcome: Outcome) -> tuple[object, ...]:
    d = s.delivery
    return (
        d.owner_id, d.id, d.webhook_id, d.event_id, d.attempt, s.kind,
        outcome.outcome, outcome.status, outcome.error, s.started_at, outcome.dns_us,
        outcome.connect_us, outcome.tls_us, outcome.first_byte_us, outcome.total_us,
        outcome.address, s.url, items(s.request_headers), items(outcome.response_headers),
        outcome.response_body, outcome.truncated, s.node_id,
    )  # fmt: skip


def _tells(outcome: Outcome) -> bool:
    """Whether it says anything of the receiver: not what we cut, nor a connection gone stale."""
    return outcome.outcome != "aborted" and not outcome.stale


async def _health(tx: Tx, by_webhook: Mapping[str, Sequence[Settled]]) -> None:
    """Fold a batch into each webhook's health and lane, one row each."""
    folded: list[tuple[object, ...]] = []
    for webhook_id, batch in sorted(by_webhook.items()):
        judged = [s for s in batch if s.outcome is not None and _tells(s.outcome)]
        if not judged:
            continue
        since = 0
        succeeded = 0
        for s in judged:
            if s.decision.counts_as_failure:
                since += 1
            else:
                since, succeeded = 0, 1
        hold = max(s.decision.webhook_wait_us or 0 for s in judged)
        last = judged[-1].outcome
        assert last is not None
        folded.append((webhook_id, last.outcome, last.status, succeeded, since, hold))
    if not folded:
        return
    await tx.run(HEALTH, items(folded), tx.now)
    for webhook_id, batch in sorted(by_webhook.items()):
        if any(s.decision.disable for s in batch):
            await tx.run(DISABLE, webhook_id, "gone", tx.now)
            await tx.run("update lanes set active = false where webhook_id = $1", webhook_id)
    await tx.run(LANE, items(folded))


async def release(tx: Tx, claim: str) -> int:
    """Give back what a claim took and nobody sent, as if it had not been taken."""
    rows = await tx.all(
        """
        update deliveries set state = 'ready', claim = null, node_id = null,
          attempts = attempts - 1
        where claim = $1 and state = 'in_flight' returning webhook_id
        """,
        claim,
    )
    await lanes.wake(tx, {row["webhook_id"] for row in rows}, await lanes.due_now(tx))
    return len(rows)


async def rescue(tx: Tx, node_id: str) -> int:
    """Make ready again what a node had in flight when it died; how many."""
    rows = await tx.all(
        """
        update deliveries set state = 'ready', retry = true, claim = null, node_id = null,
          next_at = due_now()
        where node_id = $1 and state = 'in_flight' returning webhook_id
        """,
        node_id,
    )
    await lanes.wake(tx, {row["webhook_id"] for row in rows}, await lanes.due_now(tx))
    return len(rows)
