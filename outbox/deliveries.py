"""The delivery state machine: claim what is due, settle what was sent, rescue, release."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from outbox import lanes
from outbox.database import Row, Tx
from outbox.policy import Decision
from outbox.send import Outcome

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
  due_now() - d.next_at as lag_us, e.name as event_name, e.record_version, e.occurred_at,
  e.request_id, e.traceparent, e.body"""

DUE_LANES = """
select webhook_id from lanes
where active and due_at is not null and failing = $1 and due_at <= due_now()
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
      where webhook_id = $3 and state = 'ready' and retry = false and next_at <= due_now()
      order by next_at limit $4 /*postgres for update skip locked*/
    ) as firsts
    union all
    select * from (
      select id, retry, next_at from deliveries
      where webhook_id = $3 and state = 'ready' and retry = true and next_at <= due_now()
      order by next_at limit $4 /*postgres for update skip locked*/
    ) as retries
  ) as due order by retry, next_at limit $4)
returning id, webhook_id
"""

# Behind the others that are due by now: that makes the turns round.
TURN = "update lanes set due_at = due_now() where webhook_id = $1"
SET_ASIDE = f"update lanes set due_at = due_now() + {BUSY} where webhook_id = $1"

IDS = "(select value from /*sqlite json_each($1)*/ /*postgres json_array_elements_text(cast($1 as json)) as ids(value)*/)"  # noqa: E501 - one expression

LOAD = f"""
select {COLUMNS} from deliveries d join events e on e.id = d.event_id
where d.id in {IDS} order by d.retry, d.next_at
"""

TARGETS = f"""
select id, version, url, timeout_ms, schedule, headers, secret, staged_secret, old_secret,
  old_secret_until, failures
from webhooks where id in {IDS}
"""

SETTLE = """
update deliveries set state = $3, reason = $4, retry = true, next_at = due_now() + $5,
  tries = $6, claim = null, node_id = null, finished_at = $7, last_outcome = $8, last_status = $9
where id = $1 and claim = $2 and state = 'in_flight'
returning id
"""

ATTEMPT = """
insert into attempts
  (id, owner_id, delivery_id, webhook_id, event_id, number, kind, outcome, status, error,
   started_at, dns_us, connect_us, tls_us, first_byte_us, total_us, address, url,
   request_headers, response_headers, response_body, truncated, node_id)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19,
  $20, $21, $22, $23)
"""

# The first failure since the last success is kept: it decides when a webhook is given up.
HEALTH = """
update webhooks set last_attempt_at = $2, last_outcome = $3, last_status = $4,
  last_success_at = case when $5 then $2 else last_success_at end,
  failing_since = case when $6 = 0 then null when $5 or failing_since is null then $2
    else failing_since end,
  failures = case when $5 then $6 else failures + $6 end
where id = $1
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
    await tx.many(TURN, [(webhook_id,) for webhook_id in sorted(turned)])
    await tx.many(SET_ASIDE, [(webhook_id,) for webhook_id in sorted(aside)])
    return bool(turned)


async def load(tx: Tx, ids: Sequence[str], claim: str) -> list[Claimed]:
    """The claimed deliveries of these ids with their events, first attempts first."""
    if not ids:
        return []
    rows = await tx.all(LOAD, json.dumps(ids))
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
    rows = await tx.all(TARGETS, json.dumps(webhook_ids))
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
    rows = await tx.many(
        SETTLE,
        [
            (
                s.delivery.id, s.delivery.claim, s.decision.state, s.decision.reason,
                s.decision.delay_us or 0, s.delivery.tries + s.decision.uses_try,
                None if s.decision.state == "ready" else tx.now,
                s.outcome.outcome if s.outcome else None, s.outcome.status if s.outcome else None,
            )
            for s in batch
        ],
    )  # fmt: skip
    held = {row["id"] for row in rows}
    kept = [s for s in batch if s.delivery.id in held]
    await tx.many(ATTEMPT, [_attempt(tx, s, s.outcome) for s in kept if s.outcome is not None])
    by_webhook: dict[str, list[Settled]] = {}
    for s in kept:
        by_webhook.setdefault(s.delivery.webhook_id, []).append(s)
    await _health(tx, by_webhook)
    await lanes.rest(tx, by_webhook)
    if tx.engine == "sqlite":
        await tx.run(MARK)
    return [s.delivery.id for s in kept]


def _attempt(tx: Tx, s: Settled, outcome: Outcome) -> tuple[object, ...]:
    d = s.delivery
    return (
        tx.new_id(), d.owner_id, d.id, d.webhook_id, d.event_id, d.attempt, s.kind,
        outcome.outcome, outcome.status, outcome.error, s.started_at, outcome.dns_us,
        outcome.connect_us, outcome.tls_us, outcome.first_byte_us, outcome.total_us,
        outcome.address, s.url, json.dumps(s.request_headers),
        json.dumps(outcome.response_headers), outcome.response_body, outcome.truncated, s.node_id,
    )  # fmt: skip


async def _health(tx: Tx, by_webhook: Mapping[str, Sequence[Settled]]) -> None:
    """Fold a batch into each webhook's health and lane, one row each."""
    health: list[tuple[object, ...]] = []
    turned: list[tuple[object, ...]] = []
    for webhook_id, batch in sorted(by_webhook.items()):
        judged = [s for s in batch if s.outcome is not None and s.outcome.outcome != "aborted"]
        if not judged:
            continue
        last = judged[-1]
        assert last.outcome is not None
        since = 0
        succeeded = False
        for s in judged:
            if s.decision.counts_as_failure:
                since += 1
            else:
                since, succeeded = 0, True
        health.append(
            (webhook_id, tx.now, last.outcome.outcome, last.outcome.status, succeeded, since)
        )
        wait = max((s.decision.webhook_wait_us or 0 for s in judged), default=0)
        turned.append((webhook_id, since > 0, wait))
    await tx.many(HEALTH, health)
    for webhook_id, batch in sorted(by_webhook.items()):
        if any(s.decision.disable for s in batch):
            await tx.run(DISABLE, webhook_id, "gone", tx.now)
            await tx.run("update lanes set active = false where webhook_id = $1", webhook_id)
    await tx.many(
        """
        update lanes set failing = $2,
          wait_until = case when cast($3 as bigint) > 0 then due_now() + $3 else wait_until end
        where webhook_id = $1
        """,
        turned,
    )


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
