"""Steers waiting deliveries of an owner: tries one now, or cancels some."""

from collections.abc import Sequence

from gateway.records.access import Actor, must_own
from gateway.records.errors import Refusal
from outbox.database.transaction import Tx
from outbox.queue.log import delivery_log
from outbox.queue.log.delivery_types import Delivery
from outbox.queue.replays import steering


async def own(tx: Tx, actor: Actor, delivery_id: str) -> Delivery:
    """Return a delivery of the actor. Raises not_found, forbidden."""
    delivery = await delivery_log.one(tx, delivery_id)
    if delivery is None:
        raise Refusal("not_found", "This delivery does not exist.")
    must_own(actor, delivery.owner_id, "delivery")
    return delivery


async def try_now(tx: Tx, actor: Actor, delivery_id: str) -> None:
    """Make a waiting delivery the next one of its webhook.

    Raises not_found, forbidden, conflict when it does not wait or its webhook is not active.
    """
    actor.must("write")
    await own(tx, actor, delivery_id)
    try:
        await steering.try_now(tx, delivery_id)
    except steering.NotWaiting as why:
        raise Refusal("conflict", str(why)) from None


async def cancel(tx: Tx, actor: Actor, delivery_ids: Sequence[str]) -> list[str]:
    """Cancel those of these deliveries that wait; return the webhook of each cancelled one.

    Raises not_found, forbidden.
    """
    actor.must("write")
    for delivery_id in delivery_ids:
        await own(tx, actor, delivery_id)
    return await steering.cancel(tx, delivery_ids)
