"""Opens the secrets of an owner's webhook, to check a signature or to sign an example."""

from dataclasses import dataclass
from typing import Literal

from gateway.domain.webhooks import webhooks
from gateway.records.audit import Actor
from gateway.records.errors import Refusal
from outbox.database.transaction import Tx
from outbox.queue.drain import loading
from outbox.webhooks import Webhook
from outbox.webhooks.secrets import KeyRing, SealBroken

Place = Literal["current", "staged", "old"]


@dataclass(frozen=True, slots=True)
class Secret:
    """A secret that signs requests of the webhook now."""

    place: Place
    text: str


async def secrets(
    tx: Tx, actor: Actor, webhook_id: str, ring: KeyRing
) -> tuple[Webhook, list[Secret]]:
    """Return the webhook and its secrets, the current one first.

    Raises not_found, forbidden, and conflict when a secret cannot be decrypted.
    """
    actor.must("write")
    webhook = await webhooks.one(tx, actor, webhook_id)
    [endpoint] = (await loading.endpoints_of(tx, [webhook_id])).values()
    old = endpoint.old_secret if tx.now < (endpoint.old_secret_until or 0) else None
    sealed: list[tuple[Place, bytes | None]] = [
        ("current", endpoint.secret),
        ("staged", endpoint.staged_secret),
        ("old", old),
    ]
    try:
        return webhook, [
            Secret(place, ring.open(secret, webhook_id).decode())
            for place, secret in sealed
            if secret is not None
        ]
    except SealBroken as error:
        message = f"The secret of this webhook cannot be decrypted: {error}."
        raise Refusal("conflict", message) from None
