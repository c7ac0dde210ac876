"""The webhooks table: units to create, read and change a webhook.

Pausing, activating and removing a webhook also affects waiting deliveries and is in
outbox.queue.upkeep.parking. The caller validates a Draft before creating it.
It is one module because each setting has its place in all of these statements.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from outbox.database import locks
from outbox.database.transaction import Row, Tx
from outbox.sending import client_credentials
from outbox.sending.client_certificates import ClientCertificate
from outbox.sending.client_credentials import ClientCredentials
from outbox.webhooks import conditions, operational
from outbox.webhooks.conditions import Condition
from outbox.webhooks.operational import is_operational
from outbox.webhooks.sealed_settings import seal_headers
from outbox.webhooks.secrets import KeyRing

State = Literal["active", "paused", "disabled"]
Trouble = Literal["gone", "disabled", "failing"]
"""Disabled by an answer 410, disabled after days of failures, or an open circuit."""


@dataclass(frozen=True, slots=True)
class Draft:
    """The validated settings of a webhook. Each POST carries `headers`."""

    url: str
    events: tuple[str, ...]
    description: str | None = None
    timeout_ms: int | None = None
    headers: tuple[tuple[str, str], ...] = ()
    schedule: tuple[float, ...] | None = None
    """Seconds before each retry; None for the schedule of the installation."""
    ordered: bool = False
    conditions: tuple[Condition, ...] = ()
    sequenced: bool = False
    """Whether each delivery has its number among those of the webhook."""
    name: str | None = None
    """What the owner calls it in files; no two webhooks of an owner have the same."""
    ed25519: bool = False
    """Sign `v1a` too, by the keys of the installation."""
    concurrency: int | None = None
    """Requests in flight at once; None for what fairness gives."""
    rate: int | None = None
    """Requests per 1,000 seconds; None for what fairness gives."""
    certificate: ClientCertificate | None = None
    proxy: str | None = None
    """The name of one of the operator's egress proxies."""
    thin: bool = False
    """Whether requests have the address of the record instead of its data."""
    oauth2: ClientCredentials | None = None
    """Its receiver wants an access token that these get."""
    format: str | None = None
    """A content mode of CloudEvents; None for the form of the contract."""
    handshake: bool = False
    """Whether the receiver must have allowed requests before any is sent."""


@dataclass(frozen=True, slots=True)
class Webhook:
    """One webhook as its owner sees it, without its secrets; times are microseconds UTC."""

    id: str
    owner_id: str
    version: int
    url: str
    events: tuple[str, ...]
    description: str | None
    state: State
    disabled_reason: str | None
    timeout_ms: int | None
    headers: bytes | None
    schedule: str | None
    ordered: bool
    conditions: tuple[Condition, ...] | None
    """None for damaged ones: each event then ends as a dead delivery."""
    created_at: int
    updated_at: int
    last_success_at: int | None
    failing_since: int | None
    failures: int
    last_outcome: str | None
    last_status: int | None
    last_attempt_at: int | None
    circuit: Literal["closed", "open", "half_open"]
    sequenced: bool
    operational: bool
    unreadable: str | None
    """Why nothing is sent although it is active: its secret or headers cannot be decrypted."""
    name: str | None
    app: str | None
    """The id of the app that the owner allowed to make it."""
    ed25519: bool
    concurrency: int | None
    rate: int | None
    certificate: bytes | None
    certificate_until: int | None
    """When the client certificate expires."""
    proxy: str | None
    thin: bool
    oauth2: bytes | None
    format: str | None
    handshake: bool
    allowed_at: int | None
    """When the receiver last allowed requests; None before, and after a refusal or a change."""
    allowed_rate: int | None
    """What it allowed, in requests per 1,000 seconds; None without a limit."""


READ = frozenset(
    {
        "events", "ordered", "conditions", "sequenced", "operational", "ed25519", "thin",
        "handshake",
    }
)  # fmt: skip
"""The fields of a Webhook whose columns have another form."""
COLUMNS = """id, owner_id, version, url, events, description, state, disabled_reason, timeout_ms,
  headers, schedule, ordered, conditions, created_at, updated_at, last_success_at,
  failing_since, failures, last_outcome, last_status, last_attempt_at, circuit, sequenced,
  operational, unreadable, name, app, ed25519, concurrency, rate, certificate,
  certificate_until, proxy, thin, oauth2, format, handshake, allowed_at, allowed_rate"""

# Creations of one owner wait for each other, so that two cannot both take the last place.
ONE_AT_A_TIME = locks.held_of(locks.WEBHOOKS_OF)

# The columns that both statements below write behind the others.
OPTIONS = (
    "schedule", "ordered", "conditions", "sequenced", "name", "ed25519", "concurrency", "rate",
    "certificate", "certificate_until", "proxy", "thin", "oauth2", "format", "handshake",
)  # fmt: skip

INSERT = f"""
insert into webhooks
  (id, owner_id, version, url, events, description, state, timeout_ms, headers, secret,
   operational, since_pos, since_snapshot, created_at, updated_at, {", ".join(OPTIONS)})
values ($1, $2, 1, $3, $4, $5, 'active', $6, $7, $8, $10,
  /*sqlite (select coalesce((select seq from sqlite_sequence where name = 'events'), 0))*/
  /*postgres (select coalesce(max(pos), 0) from events)*/,
  /*sqlite null*/ /*postgres cast(pg_current_snapshot() as text)*/,
  $9, $9, {", ".join(f"${n}" for n, _ in enumerate(OPTIONS, 11))})
"""

# The lock of fan-out, shared: no event is fanned out between this snapshot and its commit.
NO_FAN_OUT = locks.held(locks.FAN_OUT, shared=True)

INSERT_LANE = """
insert into lanes (webhook_id, owner_id, active, failing, due_at, concurrency, rate)
values ($1, $2, true, false, null, $3, $4)
"""
# Where numbers were turned off, they continue after the last one.
START_COUNT = """
insert into sequences (webhook_id, last) values ($1, 0) on conflict (webhook_id) do nothing
"""

CHANGE = f"""
update webhooks
set url = $3, events = $4, description = $5, timeout_ms = $6, headers = $7,
    {", ".join(f"{name} = ${n}" for n, name in enumerate(OPTIONS, 9))},
    allowed_at = null, allowed_rate = null, version = version + 1, updated_at = $8
where id = $1 and version = $2
"""
# A changed limit applies at once: the lane may wait for the old one. A wait that the receiver asked
# for ends with it.
NEW_LIMITS = """
update lanes set concurrency = $3, rate = $4, wait_until = (select due_now()), rate_until = 0,
  due_at = case when due_at is null then null else (select due_now()) end
where webhook_id = $1 and (coalesce(concurrency, 0) <> $5 or coalesce(rate, 0) <> $6) and exists (
  select 1 from webhooks w where w.id = $1 and w.version = $2)
"""
# Failures belong to a URL, so a new one starts healthy. The lane comes first, because lanes are
# locked before webhooks.
NEW_URL = """
update lanes set failing = false, failing_from = null, probe_at = null,
  wait_until = (select due_now())
where webhook_id = $1 and exists (
  select 1 from webhooks w where w.id = $1 and w.version = $2 and w.url <> $3)
"""
START_HEALTHY = """
update webhooks set failing_since = null, failures = 0, failed_events = null, circuit = 'closed',
  circuit_opened_at = null, circuit_backoff = null
where id = $1
"""


COUNT = """
select count(*) as had, coalesce(sum(case when operational then 1 else 0 end), 0) as listening
from webhooks where owner_id = $1
"""


NAMED = "select id from webhooks where owner_id = $1 and name = $2 and id <> $3"

# The condition of the index, word for word.
TROUBLED = """
select id, url, description, state, disabled_reason from webhooks
where owner_id = $1 and (state = 'disabled' or circuit <> 'closed')
  and state <> 'paused'
order by case when state <> 'disabled' then 2 when disabled_reason = 'gone' then 0 else 1 end, id
limit $2
"""


@dataclass(frozen=True, slots=True)
class Troubled:
    """A webhook in trouble."""

    id: str
    url: str
    description: str | None
    trouble: Trouble


class TooMany(Exception):
    """The owner has the maximum number of webhooks, `most`; `listens`: of operational ones."""

    def __init__(self, most: int, listens: bool = False) -> None:
        super().__init__(most)
        self.most = most
        self.listens = listens


async def create(
    tx: Tx, *, owner_id: str, draft: Draft, secret: str, ring: KeyRing, most: int = 0
) -> str:
    """Create an active webhook with its lane; return its id.

    It receives the events whose transactions this one cannot see, in whatever order they commit.
    Its events decide whether it is operational. `secret` is the `whsec_…` string. Raise TooMany
    above `most` webhooks per owner (0: no limit).
    """
    listens = is_operational(draft.events)
    if most or listens:
        await tx.one(ONE_AT_A_TIME, owner_id)
        row = await tx.one(COUNT, owner_id)
        assert row is not None
        if most and row["had"] >= most:
            raise TooMany(most)
        if listens and row["listening"] >= operational.MOST:
            raise TooMany(operational.MOST, listens)
    webhook_id = tx.new_id()
    await tx.one(NO_FAN_OUT)
    await tx.run(
        INSERT,
        webhook_id, owner_id, draft.url, json.dumps(draft.events), draft.description,
        draft.timeout_ms, seal_headers(draft.headers, ring, webhook_id),
        ring.seal(secret.encode(), webhook_id), tx.now, listens, *_options(draft, ring, webhook_id),
    )  # fmt: skip
    await tx.run(INSERT_LANE, webhook_id, owner_id, draft.concurrency, draft.rate)
    if draft.sequenced:
        await tx.run(START_COUNT, webhook_id)
    # A fan-out that skipped its turn because of this lock runs again after this commit.
    tx.wake = True
    return webhook_id


async def belong_to_app(tx: Tx, webhook_id: str, app: str) -> None:
    """Note the app that a new webhook was made for."""
    await tx.run("update webhooks set app = $2 where id = $1", webhook_id, app)


async def count(tx: Tx, owner_id: str) -> int:
    """Return how many webhooks an owner has."""
    row = await tx.one(COUNT, owner_id)
    assert row is not None
    return int(row["had"])


async def change(tx: Tx, webhook_id: str, version: int, draft: Draft, ring: KeyRing) -> bool:
    """Update the webhook's settings if it is still at `version`; return False otherwise.

    A new URL starts healthy: failures, circuit and the time since the first failure are those of
    the old one. What waits is tried by outbox.queue.replays.delivery_steering.try_new_url.
    """
    if await tx.run(NEW_URL, webhook_id, version, draft.url):
        await tx.run(START_HEALTHY, webhook_id)
    limits = draft.concurrency, draft.rate
    if await tx.run(NEW_LIMITS, webhook_id, version, *limits, *(each or 0 for each in limits)):
        tx.wake = True
    changed = await tx.run(
        CHANGE,
        webhook_id, version, draft.url, json.dumps(draft.events), draft.description,
        draft.timeout_ms, seal_headers(draft.headers, ring, webhook_id), tx.now,
        *_options(draft, ring, webhook_id),
    )  # fmt: skip
    if changed and draft.sequenced:
        await tx.run(START_COUNT, webhook_id)
    tx.changed.add(webhook_id)
    return changed == 1


async def name_taken(tx: Tx, owner_id: str, name: str, webhook_id: str = "") -> bool:
    """Return whether another webhook of the owner than this one has the name.

    Until the transaction ends, no other can take a name of this owner.
    """
    await tx.one(ONE_AT_A_TIME, owner_id)
    return await tx.one(NAMED, owner_id, name, webhook_id) is not None


async def one(tx: Tx, webhook_id: str) -> Webhook | None:
    """Return the webhook with this id, of any owner."""
    row = await tx.one(f"select {COLUMNS} from webhooks where id = $1", webhook_id)
    return None if row is None else _webhook(row)


async def listed(tx: Tx, owner_id: str) -> list[Webhook]:
    """Return all webhooks of one owner, newest first."""
    rows = await tx.all(
        f"select {COLUMNS} from webhooks where owner_id = $1 order by created_at desc, id desc",
        owner_id,
    )
    return [_webhook(row) for row in rows]


async def troubled(tx: Tx, owner_id: str, limit: int) -> list[Troubled]:
    """Return up to `limit` webhooks in trouble, one kind of trouble after the other.

    A paused webhook is not: its owner knows of it.
    """
    return [
        Troubled(row["id"], row["url"], row["description"], _trouble(row))
        for row in await tx.all(TROUBLED, owner_id, limit)
    ]


def _trouble(row: Row) -> Trouble:
    if row["state"] != "disabled":
        return "failing"
    return "gone" if row["disabled_reason"] == "gone" else "disabled"


def _options(draft: Draft, ring: KeyRing, webhook_id: str) -> tuple[object, ...]:
    """Return the values of OPTIONS."""
    certificate = draft.certificate
    return (
        None if draft.schedule is None else json.dumps(draft.schedule),
        draft.ordered,
        conditions.stored(draft.conditions),
        draft.sequenced,
        draft.name,
        draft.ed25519,
        draft.concurrency,
        draft.rate,
        None if certificate is None else ring.seal(certificate.pem.encode("ascii"), webhook_id),
        None if certificate is None else certificate.until,
        draft.proxy,
        draft.thin,
        None
        if draft.oauth2 is None
        else ring.seal(client_credentials.written(draft.oauth2), webhook_id),
        draft.format,
        draft.handshake,
    )


def _webhook(row: Row) -> Webhook:
    values: Mapping[str, object] = {
        name: row[name] for name in Webhook.__dataclass_fields__ if name not in READ
    }
    read = {
        "events": subscription(row["events"]) or (), "ordered": bool(row["ordered"]),
        "conditions": conditions.of(row), "sequenced": bool(row["sequenced"]),
        "operational": bool(row["operational"]), "ed25519": bool(row["ed25519"]),
        "thin": bool(row["thin"]), "handshake": bool(row["handshake"]),
    }  # fmt: skip
    return Webhook(**read, **values)  # type: ignore[arg-type] # the columns above are the fields


def subscription(text: str) -> tuple[str, ...] | None:
    """Return the event names of a webhook's `events`; None for a damaged row."""
    try:
        names = json.loads(text)
    except (ValueError, TypeError, RecursionError):
        return None
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        return None
    return tuple(names)
