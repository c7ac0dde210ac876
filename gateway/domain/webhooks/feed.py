"""Reads the events feed of an owner, and the numbered deliveries of a webhook."""

from collections.abc import Collection
from dataclasses import replace

from gateway.domain.catalogue import EVENT_NAMES
from gateway.domain.webhooks import record_links, webhooks
from gateway.records.audit import Actor
from gateway.records.errors import Fault, Refusal
from outbox.database.transaction import Tx
from outbox.durations import DAY, SECOND
from outbox.events import event_feed, thin
from outbox.events.event_feed import Entry, FeedPage, UnknownPlace
from outbox.ids import is_id
from outbox.queue.log import sequence_feed


async def page(
    tx: Tx, actor: Actor, *, after: str, names: Collection[str] | None, limit: int, days: int
) -> FeedPage:
    """Return a page of the owner's events of the last `days`; `names` limits it to these events.

    `after` is the id of an event, or empty. Raises forbidden, validation_error.
    """
    actor.must("read")
    if after and not is_id(after):
        raise _unknown()
    # A name that is not in the catalogue matches nothing.
    known = None if names is None else tuple(name for name in EVENT_NAMES if name in names)
    try:
        return await event_feed.page(
            tx, actor.owner_id, after=after, names=known, age=days * DAY, limit=limit
        )
    except UnknownPlace:
        raise _unknown() from None


async def numbered(
    tx: Tx, actor: Actor, webhook_id: str, *, first: int, upto: int, limit: int, site: str
) -> sequence_feed.SequencePage:
    """Return a page of the deliveries of a webhook with the numbers from `first` to `upto`.

    `site` is the public address of the server, for a webhook that gets addresses in place of data.
    Raises not_found, forbidden, and validation_error for a webhook that never numbered any.
    """
    actor.must("read")
    webhook = await webhooks.one(tx, actor, webhook_id)
    page = await sequence_feed.page(tx, webhook.id, first, upto, limit)
    if page is None:
        message = "This webhook does not number its deliveries; turn that on in the console."
        raise Refusal(
            "validation_error",
            f"webhook: {message}",
            faults=[Fault("webhook", "invalid_parameter", message)],
        )
    if webhook.thin:
        entries = [replace(entry, event=_thin(entry.event, site)) for entry in page.entries]
        page = replace(page, entries=entries)
    return page


def _thin(event: Entry, site: str) -> Entry:
    """Return the event with the body that the webhook gets."""
    url = record_links.address(site, event.name, event.record_id)
    if event.body is None or url is None:
        return replace(event, body=None)
    return replace(event, body=thin(event.name, event.occurred_at // SECOND, event.record_id, url))


def _unknown() -> Refusal:
    message = "Send the nextCursor of the previous page or the id of one of your events."
    return Refusal(
        "validation_error",
        f"after: {message}",
        faults=[Fault("after", "invalid_parameter", message)],
    )
