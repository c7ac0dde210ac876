"""Replays deliveries of a webhook on behalf of its owner: one, or all that failed."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from gateway.domain.webhooks import deliveries, webhooks
from gateway.records.access import Actor
from outbox.database.transaction import Tx
from outbox.queue.replays import recovery, replay
from outbox.queue.replays.recovery import Wanted
from outbox.queue.replays.replay import NotReplayable
from outbox.queue.state import lanes


@dataclass(frozen=True, slots=True)
class Batch:
    """The new deliveries of one transaction, and the reasons of those that cannot be replayed."""

    replayed: Sequence[str]
    refused: Sequence[str] = field(default=())
    place: str = ""
    """Where the next batch begins; empty at the end."""


async def one(tx: Tx, actor: Actor, delivery_id: str) -> str:
    """Replay a delivery of the actor; return the new delivery's id.

    Raises not_found, forbidden, NotReplayable.
    """
    actor.must("write")
    await deliveries.own(tx, actor, delivery_id)
    return await replay.one(tx, delivery_id, actor.owner_id)


async def count(tx: Tx, actor: Actor, webhook_id: str, query: Wanted) -> int:
    """Return how many deliveries `batch` would replay. Raises not_found, forbidden."""
    await webhooks.one(tx, actor, webhook_id)
    return await recovery.count(tx, webhook_id, query)


async def batch(
    tx: Tx, actor: Actor, webhook_id: str, query: Wanted, place: str, size: int
) -> Batch:
    """Replay the next deliveries behind `place`, in their order. Raises not_found, forbidden."""
    await webhooks.one(tx, actor, webhook_id)
    # Two runs at the same time wait for each other here, and the second one sees the first's work.
    await lanes.lock(tx, [webhook_id])
    replayed, refused = [], []
    ids = await recovery.page(tx, webhook_id, query, place, size)
    for delivery_id in ids:
        try:
            replayed.append(await one(tx, actor, delivery_id))
        except NotReplayable as why:
            refused.append(str(why))
    return Batch(replayed, refused, ids[-1] if len(ids) == size else "")
