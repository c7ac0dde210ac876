"""Webhooks as their owner manages them: what may be asked for, and who may touch which.

The record of `GET /api/webhooks` is made here too; the row itself is outbox.webhooks' affair.
"""

import re
from collections.abc import Sequence

from msgspec import Struct

from gateway.domain.catalogue import EVENT_NAMES
from gateway.domain.webhooks.samples import sample
from gateway.records.access import Actor, must_own
from gateway.records.errors import Fault, Refusal
from gateway.records.values import dates
from gateway.records.values.patterns import NOT_TEXT
from gateway.records.values.schemas import Id, Instant
from outbox import webhooks
from outbox.database.transaction import Tx
from outbox.events import enqueue
from outbox.queue import parking
from outbox.sending import addresses, urls
from outbox.sending.request import MASK, Header, check_headers
from outbox.webhooks import Draft, Webhook
from outbox.webhooks.secrets import KeyRing

LONGEST_URL = 2048
LONGEST_DESCRIPTION = 200
FASTEST, SLOWEST = 1, 30
"""Bounds of a webhook's own time limit, in seconds."""


def judge(
    *,
    url: str,
    events: Sequence[str],
    rules: addresses.Rules,
    description: str = "",
    timeout: str = "",
    headers: str = "",
    kept: Sequence[Header] = (),
) -> Draft:
    """What an owner typed, as a Draft. Raises validation_error with every fault there is.

    `timeout` is in whole seconds; empty means the installation's own. `headers` has a line
    `Name: value` each; the value `***` stands for the one of that name in `kept`.
    """
    faults: list[Fault] = []
    url = url.strip()
    if not url:
        faults.append(Fault("url", "required", "Enter the URL that is to receive the events."))
    elif len(url) > LONGEST_URL:
        faults.append(Fault("url", "too_long", f"A URL has at most {LONGEST_URL} characters."))
    else:
        try:
            urls.check_url(url, rules)
        except urls.Refused as refused:
            said = str(refused)
            faults.append(Fault("url", f"refused_{refused.kind}", f"{said[0].upper()}{said[1:]}."))
    unknown = sorted(set(events) - set(EVENT_NAMES))
    if not events:
        faults.append(Fault("events", "required", "Choose at least one event."))
    elif unknown:
        faults.append(Fault("events", "unknown", f"There is no event {unknown[0][:80]!r}."))
    description = description.strip()
    if len(description) > LONGEST_DESCRIPTION:
        text = f"A description has at most {LONGEST_DESCRIPTION} characters."
        faults.append(Fault("description", "too_long", text))
    elif NOT_TEXT.search(description):
        text = "A description holds no control characters; remove them."
        faults.append(Fault("description", "invalid", text))
    timeout_ms = _timeout(timeout.strip(), faults)
    custom = _headers(headers, kept, faults)
    if faults:
        raise Refusal("validation_error", "The webhook was not saved.", faults=faults)
    chosen = tuple(name for name in EVENT_NAMES if name in set(events))
    return Draft(url, chosen, description or None, timeout_ms, custom)


def shown(headers: Sequence[Header]) -> str:
    """Custom headers as their owner sees them again: names alone, since values are secrets."""
    return "".join(f"{name}: {MASK}\n" for name, _ in headers)


def _headers(text: str, kept: Sequence[Header], faults: list[Fault]) -> tuple[Header, ...]:
    known = {name.lower(): value for name, value in kept}
    found: list[Header] = []
    try:
        for line in filter(None, map(str.strip, text.splitlines())):
            name, colon, value = (part.strip() for part in line.partition(":"))
            if not colon:
                raise ValueError("Write each header on a line of its own, as Name: value.")
            found.append((name, known.get(name.lower(), value) if value == MASK else value))
        check_headers(found)
    except ValueError as wrong:
        faults.append(Fault("headers", "invalid", str(wrong)))
    return tuple(found)


def _timeout(text: str, faults: list[Fault]) -> int | None:
    if not text:
        return None
    if re.fullmatch("[0-9]{1,4}", text) and FASTEST <= int(text) <= SLOWEST:
        return int(text) * 1000
    message = f"The time limit is a whole number of seconds from {FASTEST} to {SLOWEST}."
    faults.append(Fault("timeout", "out_of_range", message))
    return None


async def create(
    tx: Tx, actor: Actor, draft: Draft, *, secret: str, ring: KeyRing, most: int
) -> str:
    """Make a webhook for the actor; returns its id. Raises conflict past `most` (0: no cap)."""
    actor.must("write")
    try:
        return await webhooks.create(
            tx, owner_id=actor.owner_id, draft=draft, secret=secret, ring=ring, most=most
        )
    except webhooks.TooMany:
        raise Refusal(
            "conflict",
            f"You have {most} webhooks, as many as this installation allows; delete one first.",
        ) from None


async def one(tx: Tx, actor: Actor, webhook_id: str) -> Webhook:
    """A webhook of the actor. Raises not_found, forbidden."""
    webhook = await webhooks.one(tx, webhook_id)
    if webhook is None:
        raise Refusal("not_found", "There is no such webhook.")
    must_own(actor, webhook.owner_id, "webhook")
    return webhook


async def change(
    tx: Tx, actor: Actor, webhook_id: str, version: int, draft: Draft, ring: KeyRing
) -> None:
    """Save what the owner decided. Raises conflict when it is no longer at `version`."""
    actor.must("write")
    await one(tx, actor, webhook_id)
    if not await webhooks.change(tx, webhook_id, version, draft, ring):
        raise Refusal("conflict", "It was changed meanwhile; look at it again.")


async def pause(tx: Tx, actor: Actor, webhook_id: str) -> bool:
    """Stop sending; False when it was not active anyway."""
    actor.must("write")
    await one(tx, actor, webhook_id)
    return await parking.pause(tx, webhook_id)


async def test(tx: Tx, actor: Actor, webhook_id: str, event: str) -> str:
    """Enqueue a sample of `event` for this webhook alone; returns the event's id.

    Raises validation_error for a name that is not in the catalogue, conflict when it is inactive.
    """
    actor.must("write")
    webhook = await one(tx, actor, webhook_id)
    if event not in EVENT_NAMES:
        raise Refusal("validation_error", "Choose one of the events in the list.")
    if webhook.state != "active":
        raise Refusal("conflict", "Activate the webhook to send it a test event.")
    record_id = tx.new_id()
    return enqueue(
        tx, owner_id=actor.owner_id, name=event, record_id=record_id, record_version=1,
        data=sample(event, record_id, tx.now), webhook_id=webhook_id,
    )  # fmt: skip


async def listed(tx: Tx, actor: Actor) -> list[Webhook]:
    """All webhooks of the actor, newest first."""
    actor.must("read")
    return await webhooks.listed(tx, actor.owner_id)


class Record(Struct, frozen=True, rename="camel"):
    """A webhook as the REST API shows it."""

    id: Id
    url: str
    events: list[str]
    is_active: bool
    created_at: Instant
    updated_at: Instant


def record(webhook: Webhook) -> Record:
    """The webhook as the REST API shows it."""
    return Record(
        webhook.id, webhook.url, list(webhook.events), webhook.state == "active",
        dates.show(webhook.created_at), dates.show(webhook.updated_at),
    )  # fmt: skip
