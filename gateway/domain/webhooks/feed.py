"""Reads the events feed of an owner, and the numbered deliveries of a webhook."""

from collections.abc import Collection

from gateway.domain.catalogue import EVENT_NAMES
from gateway.domain.webhooks import webhooks
from gateway.records.access import Actor
from gateway.records.errors import Fault, Refusal
from outbox.database.transaction import Tx
from outbox.durations import DAY
from outbox.events import feed
from outbox.events.feed import Page, UnknownPlace
from outbox.ids import is_id
from outbox.queue.log import sequence_feed


async def page(
    tx: Tx, actor: Actor, *, after: str, names: Collection[str] | None, limit: int, days: int
) -> Page:
    """Return a page of the owner's events of the last `days`; `names` limits it to these events.

    `after` is the id of an event, or empty. Raises forbidden, validation_error.
    """
    actor.must("read")
    if after and not is_id(after):
        raise _unknown()
    # A name that is not in the catalogue matches nothing.
    known = None if names is None else tuple(name for name in EVENT_NAMES if name in names)
    try:
        return await feed.page(
            tx, actor.owner_id, after=after, names=known, since=tx.now - days * DAY,
            limit=limit,
        )  # fmt: skip
    except UnknownPlace:
        raise _unknown() from None


async def numbered(
    tx: Tx, actor: Actor, webhook_id: str, *, first: int, upto: int, limit: int
) -> sequence_feed.Page:
    """Return a page of the deliveries of a webhook with the numbers from `first` to `upto`.

    Raises not_found, forbidden, and validation_error for a webhook that never numbered any.
    """
    actor.must("read")
    webhook = await webhooks.one(tx, actor, webhook_id)
    page = await sequence_feed.page(tx, webhook.id, first, upto, limit)
    if page is None:
        message = "This webhook does not number its deliveries; turn that on in the console."
        raise Refusal(
            "validation_error", f"webhook: {message}",
            faults=[Fault("webhook", "invalid_parameter", message)],
        )  # fmt: skip
    return page


def _unknown() -> Refusal:
    message = "Send the nextCursor of the previous page or the id of one of your events."
    return Refusal(
        "validation_error", f"after: {message}",
        faults=[Fault("after", "invalid_parameter", message)],
    )  # fmt: skip
