"""What the doctor sends: a sample of an event, signed like a delivery, but not stored."""

import hashlib

from gateway.domain.catalogue import EVENT_NAMES
from gateway.domain.webhooks import webhooks
from gateway.domain.webhooks.samples import sample
from gateway.records.audit import Actor
from outbox.clock import Clock
from outbox.database.transaction import Tx
from outbox.durations import SECOND
from outbox.events import message
from outbox.ids import Ids
from outbox.queue.drain import loading
from outbox.queue.state.claimed_deliveries import Claimed, ClaimedEvent, Endpoint
from outbox.queue.state.policy import Schedule, parse_schedule
from outbox.sending.request import Request
from outbox.webhooks import Webhook

FIRST_EVENT = EVENT_NAMES[0]


async def of_webhook(tx: Tx, actor: Actor, webhook_id: str) -> tuple[Claimed, Endpoint]:
    """Return a delivery of a sample of the webhook's first event, as the drain would claim it.

    Raises not_found, forbidden.
    """
    actor.must("write")
    webhook = await webhooks.one(tx, actor, webhook_id)
    [endpoint] = (await loading.endpoints_of(tx, [webhook.id])).values()
    event = next(iter(webhook.events), FIRST_EVENT)
    body = message(event, tx.now, sample(event, tx.new_id(), tx.now))
    sent = ClaimedEvent(
        id=tx.new_id(), name=event, record_id=webhook.id, record_version=1, occurred_at=tx.now,
        request_id=None, traceparent=None, body=body, body_digest=hashlib.sha256(body).hexdigest(),
    )  # fmt: skip
    delivery = Claimed(
        id=tx.new_id(), owner_id=webhook.owner_id, webhook_id=webhook.id, origin="test", claim="",
        event=sent,
    )  # fmt: skip
    return delivery, endpoint


async def with_schedule(
    tx: Tx, actor: Actor, webhook_id: str, usual: Schedule
) -> tuple[Webhook, Schedule]:
    """Return a webhook and the schedule of its retries. Raises not_found, forbidden."""
    webhook = await webhooks.one(tx, actor, webhook_id)
    return webhook, await schedule_of(tx, webhook_id, usual)


async def schedule_of(tx: Tx, webhook_id: str, usual: Schedule) -> Schedule:
    """Return the schedule of a webhook's retries; `usual` is that of the installation."""
    endpoint = (await loading.endpoints_of(tx, [webhook_id])).get(webhook_id)
    if endpoint is None or endpoint.schedule is None:
        return usual
    try:
        return parse_schedule(endpoint.schedule)
    except ValueError:
        # Its deliveries end as dead; the doctor says so.
        return usual


def of_url(url: str, secret: str, *, clock: Clock, ids: Ids, timeout_s: float) -> Request:
    """Return the same for a URL without a webhook, signed with `secret`."""
    now = clock.wall()
    body = message(FIRST_EVENT, now, sample(FIRST_EVENT, ids.new(now), now))
    return Request(
        event_id=ids.new(now),
        event_name=FIRST_EVENT,
        timestamp=now // SECOND,
        record_version=1,
        attempt=1,
        origin="test",
        url=url,
        body=body,
        secrets=(secret,),
        timeout_s=timeout_s,
    )
