"""Creates, changes and lists the webhooks of an owner, and checks input and ownership.

outbox.webhooks stores the rows.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

from gateway.domain.catalogue import EVENT_NAMES
from gateway.domain.webhooks import brakes, schedules
from gateway.domain.webhooks import conditions as filters
from gateway.domain.webhooks.samples import sample
from gateway.records import audit
from gateway.records.access import Actor, must_own
from gateway.records.errors import Fault, Refusal
from gateway.records.values.patterns import NOT_TEXT
from outbox import webhooks
from outbox.database.transaction import Database, Tx
from outbox.events import enqueue
from outbox.queue.order import ordering
from outbox.queue.replays import steering
from outbox.queue.upkeep import parking
from outbox.sending import addresses, urls
from outbox.sending.client_certificates import ClientCertificate
from outbox.sending.request import MASK, Header, check_headers
from outbox.webhooks import Draft, Webhook, operational
from outbox.webhooks.secrets import KeyRing, SealBroken

T = TypeVar("T")

WAITING_COUNTED = 10_000
"""Waiting deliveries are counted up to this number before a webhook is activated or deleted."""
LONGEST_URL = 2048
LONGEST_DESCRIPTION = 200
FASTEST, SLOWEST = 1, 30
"""Limits of a webhook's timeout, in seconds."""
TOO_MANY = "You have {most} webhooks, the limit of this installation; delete one first."
TOO_MANY_LISTEN = "You have {most} operational webhooks, the most of an account; delete one first."
TIMEOUT = f"The timeout must be a whole number of seconds from {FASTEST} to {SLOWEST}."


def judge(
    *,
    url: str,
    events: Sequence[str],
    rules: addresses.Rules,
    now: int,
    description: str = "",
    timeout: int | None = None,
    headers: Sequence[Header] = (),
    schedule: str = "",
    ordered: bool = False,
    conditions: str = "",
    stored: Sequence[Header] = (),
    unread: Sequence[Fault] = (),
    listens: bool = False,
    concurrency: str = "",
    rate: str = "",
    certificate: str = "",
    proxy: str = "",
    thin: bool = False,
    stored_certificate: ClientCertificate | None = None,
) -> Draft:
    """Check a webhook's settings and return a Draft. Raises validation_error with every fault.

    `timeout` is in seconds; None means the default of the installation. The modules schedules and
    conditions read the texts of the same names, brakes those from `concurrency` to `proxy`. A
    header with the value `***` keeps the value of that name in `stored`, a certificate `***` keeps
    `stored_certificate`. `now` is microseconds UTC. `unread` are the faults that the caller found.
    `listens`: it is an operational webhook, which has events of its own.
    """
    faults: list[Fault] = []
    url = url.strip()
    if not url:
        faults.append(Fault("url", "required", "Enter the URL of the receiver."))
    elif len(url) > LONGEST_URL:
        text = f"The URL must have at most {LONGEST_URL} characters."
        faults.append(Fault("url", "too_long", text))
    else:
        try:
            urls.check_url(url, rules)
        except urls.Refused as refused:
            text = str(refused)
            faults.append(Fault("url", f"refused_{refused.kind}", f"{text[0].upper()}{text[1:]}."))
    names = names_of(listens)
    unknown = sorted(set(events).difference(names))
    if not events:
        faults.append(Fault("events", "required", "Choose at least one event."))
    elif unknown:
        faults.append(Fault("events", "unknown", f"There is no event {unknown[0][:80]!r}."))
    description = description.strip()
    if len(description) > LONGEST_DESCRIPTION:
        text = f"The description must have at most {LONGEST_DESCRIPTION} characters."
        faults.append(Fault("description", "too_long", text))
    elif NOT_TEXT.search(description):
        text = "The description must not contain control characters."
        faults.append(Fault("description", "invalid", text))
    if timeout is not None and not FASTEST <= timeout <= SLOWEST:
        faults.append(Fault("timeout", "out_of_range", TIMEOUT))
    known = {name.lower(): value for name, value in stored}
    custom = tuple((n, known.get(n.lower(), v) if v == MASK else v) for n, v in headers)
    try:
        check_headers(custom)
    except ValueError as wrong:
        faults.append(Fault("headers", "invalid", str(wrong)))
    waits = _read(faults, "schedule", partial(schedules.read, schedule))
    filter_conditions = _read(faults, "conditions", partial(filters.read, conditions, events)) or ()
    at_once = brakes.read_concurrency(concurrency, faults)
    per_second = brakes.read_rate(rate, faults)
    client = brakes.read_certificate(certificate, url, stored_certificate, now, faults)
    via = brakes.read_proxy(proxy, rules.proxies, faults)
    if thin and listens:
        faults.append(Fault("thin", "operational", brakes.OPERATIONAL))
    faults += unread
    if faults:
        raise Refusal("validation_error", "The webhook was not saved.", faults=faults)
    chosen = tuple(name for name in names if name in set(events))
    return Draft(
        url, chosen, description or None, timeout and timeout * 1000, custom, waits, ordered,
        filter_conditions, at_once, per_second, client, via, thin,
    )  # fmt: skip


def _read(faults: list[Fault], name: str, read: Callable[[], T]) -> T | None:
    """Return what `read` reads of the field `name`; add to `faults` when it cannot."""
    try:
        return read()
    except ValueError as wrong:
        faults.append(Fault(name, "invalid", str(wrong)))
        return None


def names_of(listens: bool) -> tuple[str, ...]:
    """Return the events that a webhook can subscribe to; `listens`: an operational one."""
    return operational.NAMES if listens else EVENT_NAMES


def shown(headers: Sequence[Header]) -> str:
    """Return custom headers as text without values, because values are secrets."""
    return "".join(f"{name}: {MASK}\n" for name, _ in headers)


async def create(
    tx: Tx, actor: Actor, draft: Draft, *, secret: str, ring: KeyRing, most: int
) -> str:
    """Create a webhook for the actor; return its id. Raises conflict above `most` (0: no limit)."""
    actor.must("write")
    try:
        webhook_id = await webhooks.create(
            tx, owner_id=actor.owner_id, draft=draft, secret=secret, ring=ring, most=most
        )
    except webhooks.TooMany as refused:
        text = TOO_MANY_LISTEN if refused.listens else TOO_MANY
        raise Refusal("conflict", text.format(most=refused.most)) from None
    audit.record(tx, actor, "created", "webhook", webhook_id)
    return webhook_id


async def one(tx: Tx, actor: Actor, webhook_id: str) -> Webhook:
    """Return a webhook of the actor. Raises not_found, forbidden."""
    webhook = await webhooks.one(tx, webhook_id)
    if webhook is None:
        raise Refusal("not_found", "This webhook does not exist.")
    must_own(actor, webhook.owner_id, "webhook")
    return webhook


async def change(
    db: Database, actor: Actor, webhook_id: str, version: int, draft: Draft, ring: KeyRing
) -> None:
    """Change a webhook. Raises not_found, forbidden, conflict when it is not at `version`."""
    if await db.write(_change, actor, webhook_id, version, draft, ring):
        await ordering.finish(db, webhook_id, actor.owner_id)


async def _change(
    tx: Tx, actor: Actor, webhook_id: str, version: int, draft: Draft, ring: KeyRing
) -> bool:
    """Return whether a change of the option `ordered` has to be finished."""
    actor.must("write")
    await one(tx, actor, webhook_id)
    turning = await ordering.begin(tx, webhook_id, draft.ordered)
    # Again, because only now, with its lane locked, no result can open its circuit.
    before = await one(tx, actor, webhook_id)
    if not await webhooks.change(tx, webhook_id, version, draft, ring):
        raise Refusal("conflict", "The webhook has changed meanwhile; reload the page.")
    audit.record(tx, actor, "updated", "webhook", webhook_id, _changed(before, draft, ring))
    if before.url != draft.url:
        await steering.try_new_url(tx, before)
    return turning


def _changed(before: Webhook, draft: Draft, ring: KeyRing) -> list[str]:
    """Return the names of the settings that differ."""
    try:
        headers: Sequence[Header] | None = webhooks.open_headers(before.headers, ring, before.id)
    except SealBroken:
        headers = None
    try:
        certificate = webhooks.open_certificate(
            before.certificate, before.certificate_until, ring, before.id
        )
        kept = certificate == draft.certificate
    except SealBroken:
        kept = False
    stored = {
        "url": (before.url, draft.url),
        "events": (tuple(before.events), draft.events),
        "description": (before.description, draft.description),
        "timeout": (before.timeout_ms, draft.timeout_ms),
        "headers": (headers, list(draft.headers)),
        "schedule": (schedules.of_column(before.schedule), schedules.written(draft.schedule)),
        "ordered": (before.ordered, draft.ordered),
        "conditions": (before.conditions, draft.conditions),
        "concurrency": (before.concurrency, draft.concurrency),
        "rate": (before.rate, draft.rate),
        "certificate": (True, kept),
        "proxy": (before.proxy, draft.proxy),
        "thin": (before.thin, draft.thin),
    }
    return [name for name, (old, new) in stored.items() if old != new]


async def pause(tx: Tx, actor: Actor, webhook_id: str) -> bool:
    """Pause a webhook; return False when it is not active."""
    actor.must("write")
    await one(tx, actor, webhook_id)
    paused = await parking.pause(tx, webhook_id)
    if paused:
        audit.record(tx, actor, "paused", "webhook", webhook_id)
    return paused


async def waiting(tx: Tx, actor: Actor, webhook_id: str) -> tuple[Webhook, int]:
    """Return a webhook, and how many of its deliveries wait, counted up to WAITING_COUNTED.

    Raises not_found, forbidden.
    """
    webhook = await one(tx, actor, webhook_id)
    return webhook, await parking.count(tx, webhook_id, WAITING_COUNTED)


async def parked(tx: Tx, actor: Actor, webhook_id: str) -> tuple[Webhook, int, int]:
    """Return a webhook, and how many deliveries of how many records wait, as `waiting` does."""
    webhook, count = await waiting(tx, actor, webhook_id)
    return webhook, count, await parking.count_records(tx, webhook_id, WAITING_COUNTED)


async def activate(db: Database, actor: Actor, webhook_id: str, parked: str) -> None:
    """Activate a webhook and send of its parked deliveries `none`, the `newest` or `all`.

    Raises not_found, forbidden, validation_error.
    """
    await db.read(one, actor, webhook_id)
    choice = next((choice for choice in parking.CHOICES if choice == parked), None)
    if choice is None:
        raise Refusal("validation_error", "parked must be none, newest or all.")
    actor.must("write")
    await parking.activate(db, webhook_id, choice, partial(_note, actor, "activated", webhook_id))


async def delete(db: Database, actor: Actor, webhook_id: str) -> None:
    """Delete a webhook; its waiting deliveries are cancelled. Raises not_found, forbidden."""
    await db.read(one, actor, webhook_id)
    actor.must("write")
    await parking.remove(db, webhook_id, partial(_note, actor, "deleted", webhook_id))


def _note(actor: Actor, action: audit.Action, webhook_id: str, tx: Tx) -> None:
    audit.record(tx, actor, action, "webhook", webhook_id)


async def test(tx: Tx, actor: Actor, webhook_id: str, event: str) -> str:
    """Enqueue a sample of `event` for this webhook only; return the event's id.

    Raises validation_error for an event of the other kind or of none, conflict when it is inactive.
    """
    actor.must("write")
    webhook = await one(tx, actor, webhook_id)
    if event not in names_of(webhook.operational):
        raise Refusal("validation_error", "Choose one of the events in the list.")
    if webhook.state != "active":
        raise Refusal("conflict", "Activate the webhook before you send a test event.")
    audit.record(tx, actor, "tested", "webhook", webhook_id)
    record_id = tx.new_id()
    return enqueue(
        tx, owner_id=actor.owner_id, name=event, record_id=record_id, record_version=1,
        data=sample(event, record_id, tx.now), webhook_id=webhook_id,
    )  # fmt: skip


async def listed(tx: Tx, actor: Actor) -> list[Webhook]:
    """Return all webhooks of the actor, newest first."""
    actor.must("read")
    return await webhooks.listed(tx, actor.owner_id)
