"""Reads a delivery of an owner, tries it now, cancels, skips or replays it, one or a selection."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from gateway.domain.accounts import users
from gateway.domain.webhooks import pings
from gateway.records import audit
from gateway.records.audit import Actor, must_own
from gateway.records.errors import Refusal
from outbox import webhooks
from outbox.database.transaction import Tx
from outbox.queue.log import delivery_log, delivery_pages
from outbox.queue.log.delivery_types import Announced, Attempt, Delivery
from outbox.queue.order import record_lines
from outbox.queue.replays import delivery_steering, replay
from outbox.queue.replays.replay import NotReplayable
from outbox.queue.state import deleted_webhooks, lanes, waits
from outbox.queue.state.policy import Schedule
from outbox.queue.state.waits import Waiting
from outbox.webhooks import Webhook
from outbox.webhooks.deleted import DeletedWebhook

MOST = 200
"""Deliveries in one transaction, which other writes wait for on SQLite."""
UNFINISHED = frozenset({"ready", "in_flight", "held"})
LINES_COUNTED = record_lines.COUNTED
"""Deliveries that wait in lines of records are counted up to this number."""
NO_PAGE = "error.not_found_help"
"""The text for the page of a delivery that does not exist, by its key in the console's texts."""


@dataclass(frozen=True, slots=True)
class DeliveryPage:
    """What the page of a delivery shows; `attempts` are the latest of `attempted`."""

    delivery: Delivery
    webhook: Webhook | None
    event: Announced | None
    attempts: Sequence[Attempt]
    attempted: int
    siblings: Sequence[Delivery]
    replayed_by: str | None
    """The name of who requested the replay."""
    schedule: Schedule
    place: record_lines.Place | None
    deleted: DeletedWebhook | None = None
    """Its webhook, when that is deleted."""
    waits: Mapping[str, Waiting] = field(default_factory=dict)
    """What it and its siblings wait for, by delivery."""

    @property
    def active(self) -> bool:
        """Return whether its webhook is active."""
        return self.webhook is not None and self.webhook.state == "active"


@dataclass(frozen=True, slots=True)
class Selection:
    """What a replay of selected deliveries would send a second time."""

    ids: Sequence[str]
    delivered: int
    """Deliveries that their receivers accepted."""
    waiting: int
    """Deliveries that will be sent anyway."""

    @property
    def question(self) -> str:
        """What the user must confirm; empty when no receiver gets an event twice."""
        return f"{self.delivered}-{self.waiting}" if self.delivered or self.waiting else ""


async def own(
    tx: Tx, actor: Actor, delivery_id: str, missing: str = "This delivery does not exist."
) -> Delivery:
    """Return a delivery of the actor. Raises not_found with the text `missing`, forbidden."""
    delivery = await delivery_log.one(tx, delivery_id)
    if delivery is None:
        raise Refusal("not_found", missing)
    must_own(actor, delivery.owner_id, "delivery")
    return delivery


async def page(tx: Tx, actor: Actor, delivery_id: str, usual: Schedule) -> DeliveryPage:
    """Return what the page of a delivery shows. Raises not_found, forbidden.

    `usual` is the schedule of webhooks that have none of their own.
    """
    delivery = await own(tx, actor, delivery_id, NO_PAGE)
    by = await users.one(tx, delivery.replayed_by) if delivery.replayed_by else None
    webhook = await webhooks.one(tx, delivery.webhook_id)
    siblings = await delivery_log.siblings(tx, delivery)
    return DeliveryPage(
        delivery=delivery,
        webhook=webhook,
        waits=await waits.of(tx, [delivery, *siblings]),
        deleted=None if webhook else await deleted_webhooks.one(tx, delivery.webhook_id),
        event=await delivery_log.event(tx, delivery.event_id),
        attempts=await delivery_log.attempts(tx, delivery_id),
        attempted=await delivery_log.attempted(tx, delivery_id),
        siblings=siblings,
        replayed_by=by["name"] if by is not None else None,
        schedule=await pings.schedule_of(tx, delivery.webhook_id, usual),
        place=await record_lines.place(tx, delivery_id),
    )


async def to_replay(tx: Tx, actor: Actor, delivery_id: str) -> tuple[Delivery, str]:
    """Return a delivery and the question before its replay. Raises not_found, forbidden."""
    delivery = await own(tx, actor, delivery_id, NO_PAGE)
    return delivery, question(delivery)


def question(delivery: Delivery) -> str:
    """Return the question to ask before a replay, or an empty text."""
    if delivery.state in UNFINISHED:
        return "waiting"
    return "delivered" if delivery.state == "delivered" else ""


async def replay_confirmed(
    tx: Tx, actor: Actor, delivery_id: str, confirmed: str
) -> tuple[str | None, bool]:
    """Replay a delivery, unless it needs a confirmation that is not `confirmed`.

    Return the new delivery's id (None without confirmation) and whether it is sent now. Raises
    not_found, forbidden, conflict.
    """
    delivery = await own(tx, actor, delivery_id, NO_PAGE)
    actor.must("write")
    if delivery.origin != "test" and question(delivery) not in ("", confirmed):
        return None, False
    try:
        replayed = await replay.one(tx, delivery_id, actor.owner_id)
    except NotReplayable as why:
        raise Refusal("conflict", str(why)) from None
    audit.record(tx, actor, "replayed", "delivery", delivery_id)
    webhook = await webhooks.one(tx, delivery.webhook_id)
    return replayed, webhook is not None and webhook.state == "active"


async def look(tx: Tx, actor: Actor, ids: Sequence[str]) -> tuple[Selection, set[str]]:
    """Return what the selection has, and its webhooks.

    Raises validation_error, not_found, forbidden.
    """
    delivery_ids = list(dict.fromkeys(ids))
    if not delivery_ids:
        raise Refusal("validation_error", "Select at least one delivery.")
    if len(delivery_ids) > MOST:
        raise Refusal("validation_error", f"Select at most {MOST} deliveries at a time.")
    deliveries = [await own(tx, actor, delivery_id) for delivery_id in delivery_ids]
    questions = [question(delivery) for delivery in deliveries]
    selection = Selection(delivery_ids, questions.count("delivered"), questions.count("waiting"))
    return selection, {delivery.webhook_id for delivery in deliveries}


async def replay_all(
    tx: Tx, actor: Actor, ids: Sequence[str], confirmed: str
) -> tuple[Selection, Sequence[str]]:
    """Replay the selected deliveries, unless it needs a confirmation that is not `confirmed`.

    Return the selection and the new deliveries. Raises validation_error, not_found, forbidden, and
    conflict when one of them cannot be replayed.
    """
    actor.must("write")
    selection, of_webhooks = await look(tx, actor, ids)
    if selection.question not in ("", confirmed):
        return selection, ()
    # All lanes before the first delivery, in their order: see outbox.queue.state.lanes.
    await lanes.lock(tx, of_webhooks)
    replayed = []
    for delivery_id in sorted(selection.ids):
        try:
            replayed.append(await replay.one(tx, delivery_id, actor.owner_id))
        except NotReplayable as why:
            raise Refusal("conflict", f"{delivery_id}: {why} Nothing was replayed.") from None
        audit.record(tx, actor, "replayed", "delivery", delivery_id)
    return selection, replayed


async def try_now(tx: Tx, actor: Actor, delivery_id: str) -> Waiting | None:
    """Make a waiting delivery the next one of its webhook; return what holds it all the same.

    Raises not_found, forbidden, conflict when it does not wait or its webhook is not active.
    """
    actor.must("write")
    await own(tx, actor, delivery_id)
    try:
        await delivery_steering.try_now(tx, delivery_id)
    except delivery_steering.NotWaiting as why:
        raise Refusal("conflict", str(why)) from None
    audit.record(tx, actor, "hastened", "delivery", delivery_id)
    return (await waits.of(tx, [await own(tx, actor, delivery_id)])).get(delivery_id)


async def cancel(tx: Tx, actor: Actor, ids: Sequence[str]) -> list[str]:
    """Cancel those of these deliveries that wait; return the webhook of each cancelled one.

    Raises not_found, forbidden.
    """
    actor.must("write")
    waiting = [one.id for one in [await own(tx, actor, each) for each in ids] if _waits(one)]
    cancelled = await delivery_steering.cancel(tx, ids)
    for delivery in await delivery_pages.by_ids(tx, sorted(set(waiting))):
        if not _waits(delivery):
            audit.record(tx, actor, "canceled", "delivery", delivery.id)
    return cancelled


async def skip(tx: Tx, actor: Actor, delivery_id: str) -> str:
    """Cancel the head of a line of the actor; return its webhook.

    Raises not_found, forbidden, conflict when it holds up no others or is being sent.
    """
    actor.must("write")
    await own(tx, actor, delivery_id)
    try:
        webhook_id = await record_lines.skip(tx, delivery_id)
    except record_lines.NoHead as why:
        raise Refusal("conflict", str(why)) from None
    audit.record(tx, actor, "canceled", "delivery", delivery_id)
    return webhook_id


def _waits(delivery: Delivery) -> bool:
    return delivery.state in ("ready", "held")
