"""Tells what a change of a subscription leaves behind, and which webhooks get events twice."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from urllib.parse import SplitResult, urlsplit

from gateway.domain.webhooks import webhooks
from gateway.records import audit
from gateway.records.audit import Actor
from gateway.records.errors import Refusal
from outbox.database.transaction import Database, Tx
from outbox.queue.upkeep import parking, unmatched
from outbox.queue.upkeep.unmatched import Unmatched, Wanted
from outbox.webhooks import Draft, Webhook
from outbox.webhooks.secrets import KeyRing

CHOICES = ("send", "cancel")
"""What becomes of waiting deliveries that no longer match; the first is the default."""
CHOICE = "unmatched must be send or cancel."
COMPARED = 1_000
"""Webhooks of an owner whose URLs are compared."""
_PORTS = {"http": 80, "https": 443}


Found = Unmatched


@dataclass(frozen=True, slots=True)
class Changed:
    """What a change left: deliveries that no longer match, and how many of them were cancelled."""

    unmatched: Unmatched
    cancelled: int = 0


@dataclass(frozen=True, slots=True)
class Twin:
    """Another webhook with the same URL, and the events that both get."""

    webhook: Webhook
    events: Sequence[str]


async def change(
    db: Database, actor: Actor, webhook_id: str, version: int, draft: Draft, ring: KeyRing,
    choice: str = "",
) -> Changed:  # fmt: skip
    """Change a webhook; cancel what waits and no longer matches if `choice` says so.

    Raises validation_error for another choice, and as webhooks.change does.
    """
    if choice not in ("", *CHOICES):
        raise Refusal("validation_error", CHOICE)
    before, waiting = await db.read(webhooks.waiting, actor, webhook_id)
    await webhooks.change(db, actor, webhook_id, version, draft, ring)
    if not waiting or _same(before, draft):
        return Changed(Unmatched())
    if choice == "cancel":
        return Changed(Unmatched(), await cancel(db, actor, webhook_id))
    return Changed(await look(db, actor, before, draft))


async def look(db: Database, actor: Actor, webhook: Webhook, draft: Draft) -> Unmatched:
    """Return how many waiting deliveries of a webhook do not match what it would subscribe to."""
    wanted = Wanted(frozenset(draft.events), draft.conditions)
    return await unmatched.count(db, actor.owner_id, webhook.id, wanted)


async def standing(db: Database, actor: Actor, webhook_id: str) -> tuple[Webhook, Unmatched]:
    """Return a webhook, and how many of its waiting deliveries do not match its settings.

    Raises not_found, forbidden.
    """
    webhook = await db.read(webhooks.one, actor, webhook_id)
    wanted = _wanted(webhook)
    return webhook, await unmatched.count(db, actor.owner_id, webhook_id, wanted)


async def cancel(db: Database, actor: Actor, webhook_id: str) -> int:
    """Cancel the waiting deliveries that do not match the settings; return how many.

    Raises not_found, forbidden.
    """
    actor.must("write")
    webhook = await db.read(webhooks.one, actor, webhook_id)
    cancelled = await unmatched.cancel(
        db, actor.owner_id, webhook_id, webhook.version, _wanted(webhook)
    )
    if cancelled:
        await db.write(partial(_note, actor, webhook_id))
    return cancelled


async def has_waiting(tx: Tx, actor: Actor, webhook_id: str) -> tuple[Webhook, bool]:
    """Return a webhook, and whether deliveries of it wait. Raises not_found, forbidden."""
    webhook = await webhooks.one(tx, actor, webhook_id)
    return webhook, await parking.count(tx, webhook_id, 1) > 0


async def twins_of(tx: Tx, actor: Actor, webhook_id: str) -> Sequence[Twin]:
    """Return the twins of a webhook of the actor."""
    return twins(await webhooks.listed(tx, actor)).get(webhook_id, ())


def twins(every: Sequence[Webhook]) -> Mapping[str, Sequence[Twin]]:
    """Return the twins of each of these webhooks that has any, by its id."""
    by_url: dict[tuple[object, ...], list[Webhook]] = defaultdict(list)
    for webhook in every[:COMPARED]:
        by_url[_address(webhook.url)].append(webhook)
    by_webhook: dict[str, list[Twin]] = defaultdict(list)
    for same in by_url.values():
        for webhook in same if len(same) > 1 else ():
            for twin in same:
                common = [name for name in webhook.events if name in twin.events]
                if twin.id != webhook.id and common:
                    by_webhook[webhook.id].append(Twin(twin, common))
    return by_webhook


def _address(url: str) -> tuple[object, ...]:
    """Return what two URLs of the same receiver have in common, however they are written."""
    try:
        parts: SplitResult = urlsplit(url)
        port = parts.port
    except ValueError:
        return (url,)
    scheme = parts.scheme.lower()
    return (
        scheme, (parts.hostname or "").rstrip("."), port or _PORTS.get(scheme), parts.path or "/",
        parts.query,
    )  # fmt: skip


def _wanted(webhook: Webhook) -> Wanted:
    return Wanted(frozenset(webhook.events), webhook.conditions or ())


def _same(before: Webhook, draft: Draft) -> bool:
    return (set(before.events), before.conditions or ()) == (set(draft.events), draft.conditions)


async def _note(actor: Actor, webhook_id: str, tx: Tx) -> None:
    audit.record(tx, actor, "canceled", "webhook", webhook_id)
