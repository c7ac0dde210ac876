"""Shows an owner the lines of an ordered webhook, and skips the heads of lines."""

from gateway.records.access import Actor, must_own
from gateway.records.errors import Refusal
from outbox.database.transaction import Tx
from outbox.queue.log import delivery_log
from outbox.queue.order import record_lines


async def skip(tx: Tx, actor: Actor, delivery_id: str) -> str:
    """Cancel the head of a line of the actor; return its webhook.

    Raises not_found, forbidden, conflict when it holds up no others or is being sent.
    """
    actor.must("write")
    delivery = await delivery_log.one(tx, delivery_id)
    if delivery is None:
        raise Refusal("not_found", "This delivery does not exist.")
    must_own(actor, delivery.owner_id, "delivery")
    try:
        return await record_lines.skip(tx, delivery_id)
    except record_lines.NoHead as why:
        raise Refusal("conflict", str(why)) from None
