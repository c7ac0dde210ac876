"""Replays a delivery of a webhook on behalf of its owner."""

from gateway.domain.webhooks import deliveries
from gateway.records import audit
from gateway.records.audit import Actor
from outbox.database.transaction import Tx
from outbox.queue.replays import replay


async def one(tx: Tx, actor: Actor, delivery_id: str) -> str:
    """Replay a delivery of the actor; return the new delivery's id.

    Raises not_found, forbidden, NotReplayable.
    """
    actor.must("write")
    await deliveries.own(tx, actor, delivery_id)
    replayed = await replay.one(tx, delivery_id, actor.owner_id)
    audit.record(tx, actor, "replayed", "delivery", delivery_id)
    return replayed
