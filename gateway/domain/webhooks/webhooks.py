"""Creates, changes and lists the webhooks of an owner, and checks ownership.

gateway.domain.webhooks.settings judges what was typed; outbox.webhooks stores the rows.
"""

from collections.abc import Mapping, Sequence
from functools import partial

from gateway.domain.webhooks import settings, webhook_limits
from gateway.domain.webhooks.samples import sample
from gateway.domain.webhooks.settings import Stored
from gateway.records import audit
from gateway.records.audit import Actor, must_own
from gateway.records.errors import Fault, Refusal
from outbox import webhooks
from outbox.database.transaction import Database, Tx
from outbox.events import enqueue
from outbox.queue.order import ordering
from outbox.queue.replays import delivery_steering
from outbox.queue.state import deleted_webhooks, waits
from outbox.queue.state.waits import Waiting
from outbox.queue.upkeep import parking
from outbox.queue.upkeep.parking import Removed
from outbox.sending.client_certificates import ClientCertificate
from outbox.sending.client_credentials import ClientCredentials
from outbox.sending.request import Header
from outbox.webhooks import Draft, Webhook, sealed_settings
from outbox.webhooks.deleted import DeletedWebhook
from outbox.webhooks.secrets import KeyRing, SealBroken

WAITING_COUNTED = 10_000
"""Waiting deliveries are counted up to this number before a webhook is activated or deleted."""
DELETED_LISTED = 100
TOO_MANY = "You have {most} webhooks, the limit of this installation; delete one first."
NAME_TAKEN = "Another webhook of this account has this name; choose a different one."
TOO_MANY_LISTEN = "You have {most} operational webhooks, the most of an account; delete one first."


async def create(
    tx: Tx, actor: Actor, draft: Draft, *, secret: str, ring: KeyRing, most: int
) -> str:
    """Create a webhook for the actor; return its id. Raises conflict above `most` (0: no limit)."""
    actor.must("write")
    await _must_have_own_name(tx, actor, draft)
    webhook_limits.must_be_valid(draft.certificate, tx.now)
    try:
        webhook_id = await webhooks.create(
            tx, owner_id=actor.owner_id, draft=draft, secret=secret, ring=ring, most=most
        )
    except webhooks.TooMany as refused:
        text = TOO_MANY_LISTEN if refused.listens else TOO_MANY
        raise Refusal("conflict", text.format(most=refused.most)) from None
    audit.record(tx, actor, "created", "webhook", webhook_id)
    return webhook_id


async def must_have_room(tx: Tx, actor: Actor, most: int) -> None:
    """Raise conflict when the actor has `most` webhooks (0: no limit)."""
    if most and await webhooks.count(tx, actor.owner_id) >= most:
        raise Refusal("conflict", TOO_MANY.format(most=most))


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
    if await db.write(change_in, actor, webhook_id, version, draft, ring):
        await ordering.finish(db, webhook_id, actor.owner_id)


async def change_in(
    tx: Tx, actor: Actor, webhook_id: str, version: int, draft: Draft, ring: KeyRing
) -> bool:
    """Change a webhook in a transaction, as `change` does.

    Return whether a change of the option `ordered` is left to finish when it has committed.
    """
    actor.must("write")
    await one(tx, actor, webhook_id)
    await _must_have_own_name(tx, actor, draft, webhook_id)
    turning = await ordering.begin(tx, webhook_id, draft.ordered)
    # Again, because only now, with its lane locked, no result can open its circuit.
    before = await one(tx, actor, webhook_id)
    known = stored(before, ring)
    if draft.certificate != known.certificate:
        webhook_limits.must_be_valid(draft.certificate, tx.now)
    if not await webhooks.change(tx, webhook_id, version, draft, ring):
        raise Refusal("conflict", "The webhook has changed meanwhile; reload the page.")
    audit.record(tx, actor, "updated", "webhook", webhook_id, settings.changed(known, draft))
    if before.url != draft.url:
        await delivery_steering.try_new_url(tx, before)
    return turning


async def _must_have_own_name(tx: Tx, actor: Actor, draft: Draft, webhook_id: str = "") -> None:
    """Raise validation_error when another webhook of the actor has the name."""
    if draft.name is None or not await webhooks.name_taken(
        tx, actor.owner_id, draft.name, webhook_id
    ):
        return
    taken = Fault("name", "webhook_name_taken", NAME_TAKEN)
    raise Refusal("validation_error", "The webhook was not saved.", faults=[taken])


def stored(webhook: Webhook, ring: KeyRing) -> Stored:
    """Return a webhook with its headers and other secrets, each of which may be unreadable."""
    headers: tuple[Header, ...] | None = None
    certificate: ClientCertificate | None = None
    broken: dict[str, str] = {}
    try:
        headers = tuple(sealed_settings.open_headers(webhook.headers, ring, webhook.id))
    except SealBroken as error:
        broken["headers"] = str(error)
    try:
        certificate = sealed_settings.open_certificate(
            webhook.certificate, webhook.certificate_until, ring, webhook.id
        )
    except SealBroken as error:
        broken["certificate"] = str(error)
    credentials: ClientCredentials | None = None
    try:
        credentials = sealed_settings.open_oauth2(webhook.oauth2, ring, webhook.id)
    except (SealBroken, ValueError) as error:
        broken["oauth2"] = str(error)
    return Stored(webhook, headers, certificate, credentials, broken)


async def pause(tx: Tx, actor: Actor, webhook_id: str) -> bool:
    """Pause a webhook; return False when it is not active."""
    actor.must("write")
    await one(tx, actor, webhook_id)
    paused = await parking.pause(tx, webhook_id)
    if paused:
        audit.record(tx, actor, "paused", "webhook", webhook_id)
    return paused


async def deleted(tx: Tx, actor: Actor, webhook_id: str) -> DeletedWebhook:
    """Return a deleted webhook of the actor while the log has it. Raises not_found, forbidden."""
    webhook = await deleted_webhooks.one(tx, webhook_id)
    if webhook is None:
        raise Refusal("not_found", "This webhook does not exist.")
    must_own(actor, webhook.owner_id, "webhook")
    return webhook


async def with_log(tx: Tx, actor: Actor, webhook_id: str) -> Webhook | DeletedWebhook:
    """Return a webhook of the actor, or one that is deleted. Raises not_found, forbidden."""
    if await webhooks.one(tx, webhook_id) is None:
        return await deleted(tx, actor, webhook_id)
    return await one(tx, actor, webhook_id)


async def all_deleted(tx: Tx, actor: Actor) -> Sequence[DeletedWebhook]:
    """Return the webhooks that the actor has deleted last, up to DELETED_LISTED."""
    actor.must("read")
    return await deleted_webhooks.listed(tx, actor.owner_id, DELETED_LISTED)


async def to_delete(tx: Tx, actor: Actor, webhook_id: str) -> tuple[Webhook, int, int]:
    """Return a webhook, how many of its deliveries wait, and how many requests are in flight."""
    webhook, count = await waiting(tx, actor, webhook_id)
    return webhook, count, await deleted_webhooks.sending(tx, webhook_id)


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


async def delete(db: Database, actor: Actor, webhook_id: str) -> Removed | None:
    """Delete a webhook; return the status of its deliveries, None if somebody else deleted it.

    Raises not_found, forbidden.
    """
    await db.read(one, actor, webhook_id)
    actor.must("write")
    return await parking.remove(db, webhook_id, partial(_note, actor, "deleted", webhook_id))


def _note(actor: Actor, action: audit.Action, webhook_id: str, tx: Tx) -> None:
    audit.record(tx, actor, action, "webhook", webhook_id)


async def test(tx: Tx, actor: Actor, webhook_id: str, event: str) -> Waiting | None:
    """Enqueue a sample of `event` for this webhook only; return the limit that holds it.

    It passes a pause of the receiver and an open circuit.

    Raises validation_error for an event of the other kind or of none, conflict when it is inactive.
    """
    actor.must("write")
    webhook = await one(tx, actor, webhook_id)
    if event not in settings.names_of(webhook.operational):
        raise Refusal("validation_error", "Choose one of the events in the list.")
    if webhook.state != "active":
        raise Refusal("conflict", "Activate the webhook before you send a test event.")
    audit.record(tx, actor, "tested", "webhook", webhook_id)
    record_id = tx.new_id()
    enqueue(
        tx, owner_id=actor.owner_id, name=event, record_id=record_id, record_version=1,
        data=sample(event, record_id, tx.now), webhook_id=webhook_id,
    )  # fmt: skip
    return await waits.limit_of(tx, webhook_id)


async def listed_with_waits(
    tx: Tx, actor: Actor
) -> tuple[Sequence[Webhook], Mapping[str, Waiting]]:
    """Return all webhooks of the actor, and what holds the deliveries of each, by its id."""
    every = await listed(tx, actor)
    return every, await waits.of_webhooks(tx, [one.id for one in every if one.state == "active"])


async def listed(tx: Tx, actor: Actor) -> list[Webhook]:
    """Return all webhooks of the actor, newest first."""
    actor.must("read")
    return await webhooks.listed(tx, actor.owner_id)
