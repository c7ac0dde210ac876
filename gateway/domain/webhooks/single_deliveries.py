"""Reads and replays single deliveries of an owner for programs."""

from collections.abc import Sequence
from dataclasses import dataclass

from gateway.domain.webhooks import deliveries, replays
from gateway.records.audit import Actor
from gateway.records.errors import Refusal
from outbox import webhooks
from outbox.database.transaction import Tx
from outbox.ids import is_id
from outbox.queue.log import delivery_log
from outbox.queue.log.delivery_types import Announced, Attempt, Delivery
from outbox.queue.replays.replay import NotReplayable
from outbox.queue.state import waits
from outbox.queue.state.waits import Waiting

MISSING = "There is no delivery with this id."


@dataclass(frozen=True, slots=True)
class Detail:
    """A delivery, whether its webhook is active, its event, and its latest attempts."""

    delivery: Delivery
    active: bool
    event: Announced | None
    attempts: Sequence[Attempt]
    attempted: int
    """Attempts in the log."""
    waiting: Waiting | None


async def one(tx: Tx, actor: Actor, delivery_id: str) -> Detail:
    """Return a delivery of the actor. Raises not_found, forbidden."""
    delivery = await _own(tx, actor, delivery_id)
    actor.must("read")
    return Detail(
        delivery,
        await _is_active(tx, delivery),
        await delivery_log.event(tx, delivery.event_id),
        await delivery_log.attempts(tx, delivery.id),
        await delivery_log.attempted(tx, delivery.id),
        (await waits.of(tx, [delivery])).get(delivery.id),
    )


@dataclass(frozen=True, slots=True)
class Replayed:
    """A new delivery, and what it waits for; `twin` is the replayed one if that waits, too."""

    delivery: Delivery
    active: bool
    waiting: Waiting | None
    twin: str | None


async def replay(tx: Tx, actor: Actor, delivery_id: str) -> Replayed:
    """Replay a delivery; return the new one.

    Raises not_found, forbidden, and conflict when it cannot be replayed: the person was erased, the
    event is past its retention, the webhook was deleted, or it was a test.
    """
    old = await _own(tx, actor, delivery_id)
    try:
        replayed = await replays.one(tx, actor, old.id)
    except NotReplayable as why:
        raise Refusal("conflict", str(why)) from None
    new = await delivery_log.one(tx, replayed)
    assert new is not None, "this transaction has inserted it"
    twin = old.id if old.state in deliveries.UNFINISHED else None
    waiting = (await waits.of(tx, [new])).get(new.id)
    return Replayed(new, await _is_active(tx, new), waiting, twin)


async def _own(tx: Tx, actor: Actor, delivery_id: str) -> Delivery:
    if not is_id(delivery_id):
        raise Refusal("not_found", MISSING)
    return await deliveries.own(tx, actor, delivery_id.lower(), MISSING)


async def _is_active(tx: Tx, delivery: Delivery) -> bool:
    webhook = await webhooks.one(tx, delivery.webhook_id)
    return webhook is not None and webhook.state == "active"
