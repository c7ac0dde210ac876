"""Reads what the overview, the page of a webhook and its list show, each in one snapshot."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gateway.domain.webhooks import pings, webhooks
from gateway.records.audit import Actor
from outbox.database.transaction import Tx
from outbox.queue.log import delivery_log, delivery_pages, series
from outbox.queue.log.chart_figures import Figures, Pending
from outbox.queue.log.delivery_types import Delivery, DeliveryQuery, FailedAttempt, Health
from outbox.queue.order import record_lines
from outbox.queue.order.record_lines import Lines
from outbox.queue.state import circuits, sequences, waits
from outbox.queue.state.policy import Schedule
from outbox.queue.state.waits import Waiting
from outbox.webhooks import Webhook, secret_rotation
from outbox.webhooks.secret_rotation import RotationState

CAP = 1_000
"""Waiting deliveries of a webhook are counted up to this number in an overview."""
FAILED_SHOWN = 5
"""Failed attempts that the page of a failing webhook shows."""


@dataclass(frozen=True, slots=True)
class Steps:
    """The time that charts show: `count` steps of `step` microseconds from `start` on."""

    start: int
    step: int
    count: int

    @property
    def end(self) -> int:
        """The end of the last step."""
        return self.start + self.step * self.count


@dataclass(frozen=True, slots=True)
class Overview:
    """The webhooks of an owner with their figures and what waits, by id; figures by step."""

    webhooks: Sequence[Webhook]
    figures: Mapping[str, Figures]
    pending: Mapping[str, Pending]
    steps: Sequence[Figures]
    events: int
    since: int
    """The moment from which on attempts and events are counted."""


@dataclass(frozen=True, slots=True)
class WebhookPage:
    """What the page of a webhook shows; `next_probe` is in microseconds from now."""

    webhook: Webhook
    health: Health
    steps: Sequence[Figures]
    pending: Pending
    since: int
    standing: RotationState
    schedule: Schedule
    next_probe: int | None
    lines: Lines | None
    """None when no delivery is held."""
    last_sequence: int
    """The last number of its deliveries; 0 without numbers."""
    waiting: Waiting | None
    """What holds all of its deliveries."""
    waits: Mapping[str, Waiting]
    """What its latest deliveries and the next one wait for."""
    failed: Sequence[FailedAttempt] = ()
    """Its last failed attempts, while it fails."""
    next: Delivery | None = None
    """The delivery that is sent next, while it fails and is active."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Figures of several times, of one webhook or of all; `oldest` is the first creation."""

    webhook: Webhook | None
    oldest: int | None
    steps: Sequence[Sequence[Figures]]
    since: int


async def overview(tx: Tx, actor: Actor, steps: Steps) -> Overview:
    """Return the overview of the actor's webhooks."""
    owner_id = actor.owner_id
    return Overview(
        webhooks=await webhooks.listed(tx, actor),
        figures=await series.by_webhook(tx, owner_id, steps.start, steps.end),
        pending=await series.pending(tx, "owner", owner_id, CAP),
        steps=await series.by_step(tx, "owner", owner_id, steps.start, steps.step, steps.count),
        events=await series.events(tx, owner_id, steps.start, steps.end),
        since=await series.since(tx),
    )


async def with_health(tx: Tx, actor: Actor) -> Sequence[tuple[Webhook, Health]]:
    """Return all webhooks of the actor with their health, newest first."""
    return [
        (webhook, await delivery_log.health(tx, webhook.id))
        for webhook in await webhooks.listed(tx, actor)
    ]


async def of_webhook(
    tx: Tx, actor: Actor, webhook_id: str, steps: Steps, usual: Schedule
) -> WebhookPage:
    """Return what the page of a webhook shows. Raises not_found, forbidden.

    `usual` is the schedule of webhooks that have none of their own.
    """
    webhook = await webhooks.one(tx, actor, webhook_id)
    lines = await record_lines.of_webhook(tx, webhook_id) if webhook.ordered else None
    health = await delivery_log.health(tx, webhook_id)
    failed: Sequence[FailedAttempt] = ()
    coming: Sequence[Delivery] = ()
    if webhook.failing_since is not None:
        failed = await delivery_log.failed_attempts(tx, webhook_id, FAILED_SHOWN)
        if webhook.state == "active":
            waiting = DeliveryQuery("waiting")
            coming = (await delivery_pages.page(tx, [webhook], waiting, size=1)).deliveries
    return WebhookPage(
        webhook=webhook,
        health=health,
        steps=await series.by_step(tx, "webhook", webhook_id, steps.start, steps.step, steps.count),
        pending=(await series.pending(tx, "webhook", webhook_id, 1))[webhook_id],
        since=await series.since(tx),
        standing=await secret_rotation.standing(tx, webhook_id),
        schedule=await pings.schedule_of(tx, webhook_id, usual),
        next_probe=await circuits.next_probe(tx, webhook_id),
        lines=lines if lines and lines.held else None,
        last_sequence=await sequences.last(tx, webhook_id) or 0,
        waiting=(await waits.of_webhooks(tx, [webhook_id])).get(webhook_id),
        waits=await waits.of(tx, [*health.latest, *coming]),
        failed=failed,
        next=coming[0] if coming else None,
    )


async def compare(tx: Tx, actor: Actor, webhook_id: str, times: Sequence[Steps]) -> Comparison:
    """Return the figures of each time; an empty `webhook_id` means all. Raises as `of_webhook`."""
    webhook = await webhooks.one(tx, actor, webhook_id) if webhook_id else None
    listed = [webhook] if webhook else await webhooks.listed(tx, actor)
    return Comparison(
        webhook=webhook,
        oldest=min((one.created_at for one in listed), default=None),
        steps=[
            await series.by_step(
                tx, "webhook" if webhook else "owner", webhook_id or actor.owner_id,
                steps.start, steps.step, steps.count,
            )
            for steps in times
        ],
        since=await series.since(tx),
    )  # fmt: skip
