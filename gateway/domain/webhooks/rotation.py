"""Replace the signing secret of an owner's webhook: stage, activate, cancel."""

from gateway.domain.webhooks import webhooks
from gateway.records import audit
from gateway.records.audit import Actor
from gateway.records.errors import Refusal
from outbox.database.transaction import Tx
from outbox.webhooks import Webhook, secret_rotation
from outbox.webhooks.secret_rotation import RotationState
from outbox.webhooks.secrets import KeyRing

AUDITED = "webhook secret"
"""The word of the audit log for it; the id is that of the webhook."""


async def standing(tx: Tx, actor: Actor, webhook_id: str) -> tuple[Webhook, RotationState]:
    """Return the webhook and how far its rotation is. Raises not_found, forbidden."""
    webhook = await webhooks.one(tx, actor, webhook_id)
    return webhook, await secret_rotation.standing(tx, webhook_id)


async def stage(tx: Tx, actor: Actor, webhook_id: str, secret: str, ring: KeyRing) -> None:
    """Stage a new secret. Raises conflict when one is staged already.

    The staged one is not replaced, because its owner may have given it to the receiver.
    """
    actor.must("write")
    await webhooks.one(tx, actor, webhook_id)
    if not await secret_rotation.stage(tx, webhook_id, secret, ring):
        raise Refusal(
            "conflict", "A new secret is already staged; activate it, or cancel it first."
        )
    audit.record(tx, actor, "created", AUDITED, webhook_id)


async def activate(tx: Tx, actor: Actor, webhook_id: str, ring: KeyRing) -> None:
    """Make the staged secret the current one. Raises conflict when none is staged."""
    actor.must("write")
    await webhooks.one(tx, actor, webhook_id)
    if not await secret_rotation.activate(tx, webhook_id, ring):
        raise Refusal("conflict", "No new secret is staged; rotate the secret first.")
    audit.record(tx, actor, "activated", AUDITED, webhook_id)


async def cancel(tx: Tx, actor: Actor, webhook_id: str) -> None:
    """Delete the staged secret. Raises conflict when none is staged."""
    actor.must("write")
    await webhooks.one(tx, actor, webhook_id)
    if not await secret_rotation.cancel(tx, webhook_id):
        raise Refusal("conflict", "No new secret is staged; there is nothing to cancel.")
    audit.record(tx, actor, "canceled", AUDITED, webhook_id)
