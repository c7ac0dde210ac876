"""Finds deliveries and events of an owner: filtered lists, and what belongs to an id."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count

from gateway.domain.webhooks import webhooks
from gateway.records.access import Actor, must_own
from gateway.records.errors import Refusal
from outbox.clock import Clock
from outbox.database.transaction import Tx
from outbox.events import history
from outbox.events.history import Listed
from outbox.ids import is_id
from outbox.queue.log import delivery_log, delivery_search
from outbox.queue.log.delivery_types import Announced, Delivery, DeliveryQuery
from outbox.webhooks import Webhook

PAGE = 50
SECONDS = 0.15
"""A page that matches few rows searches further during this time."""
ROUNDS = 4
"""A search for a record or a request goes this far at least, past the events without marks."""
LONGEST_SEARCH = 200


@dataclass(frozen=True, slots=True)
class Found:
    """A page of deliveries with the webhooks of their owner.

    `searched` is set when more rows are left than a page examines: they are older than this time.
    """

    deliveries: Sequence[Delivery]
    webhooks: Sequence[Webhook]
    after: str | None = None
    searched: int | None = None

    def active(self, delivery: Delivery) -> bool:
        """Return whether the webhook of a delivery is active."""
        return any(one.id == delivery.webhook_id and one.state == "active" for one in self.webhooks)


@dataclass(frozen=True, slots=True)
class Events:
    """A page of events with their deliveries, and `searched` as in Found."""

    events: Sequence[Listed]
    deliveries: Sequence[Delivery]
    webhooks: Sequence[Webhook]
    after: int | None = None
    searched: int | None = None

    def of(self, event: Listed) -> Sequence[Delivery]:
        """Return the deliveries of one of the events."""
        return [one for one in self.deliveries if one.event_id == event.id]


async def deliveries(
    tx: Tx, actor: Actor, clock: Clock, search: str, webhook_id: str, query: DeliveryQuery,
    after: str,
) -> Found:  # fmt: skip
    """Return a page of deliveries; `search` is an id of a delivery, event, record or request."""
    listed = await webhooks.listed(tx, actor)
    if search:
        found = await _of_id(tx, actor, clock, search, listed, after)
        rows = [
            one
            for one in found.deliveries
            if webhook_id in ("", one.webhook_id) and query.matches(one, found.active(one))
        ]
        return Found(rows, listed, found.after, found.searched)
    chosen = [one for one in listed if webhook_id in ("", one.id)]
    return await _page(tx, clock, chosen, listed, query, after)


async def of_webhook(
    tx: Tx, actor: Actor, clock: Clock, webhook_id: str, query: DeliveryQuery, after: str
) -> Found:
    """Return the same of one webhook, the only one in `webhooks`. Raises not_found, forbidden."""
    listed = [await webhooks.one(tx, actor, webhook_id)]
    return await _page(tx, clock, listed, listed, query, after)


async def events(
    tx: Tx, actor: Actor, clock: Clock, search: str, wanted: history.Wanted, after: int | None
) -> Events:
    """Return a page of events; `search` is an id of an event, delivery, record or request."""
    listed = await webhooks.listed(tx, actor)
    if is_id(search):
        known = search.lower()
        delivery = await delivery_log.one(tx, known)
        if delivery is not None and delivery.owner_id == actor.owner_id:
            known = delivery.event_id
        event = await history.one(tx, actor.owner_id, known)
        if event is not None:
            return await _with_deliveries(tx, actor, [event], listed, None, None)
    began, rows = clock.monotonic(), list[Listed]()
    least = ROUNDS if wanted.cause else 1
    for done in count(1):
        page = await history.page(tx, actor.owner_id, wanted, after, PAGE - len(rows))
        rows += page.events
        after = page.after
        if not page.searched or len(rows) == PAGE:
            break
        if done >= least and clock.monotonic() - began > SECONDS:
            break
    searched = page.examined if page.searched and len(rows) < PAGE else None
    return await _with_deliveries(tx, actor, rows, listed, page.after, searched)


async def event(
    tx: Tx, actor: Actor, event_id: str
) -> tuple[Announced, Sequence[Delivery], Sequence[Webhook]]:
    """Return an event with its body and deliveries. Raises not_found, forbidden."""
    found = await delivery_log.event(tx, event_id)
    owner = await history.owner_of(tx, event_id)
    if found is None or owner is None:
        raise Refusal("not_found", "This event does not exist.")
    must_own(actor, owner, "event")
    return (
        found,
        await delivery_search.of_events(tx, actor.owner_id, [event_id]),
        await webhooks.listed(tx, actor),
    )


def place_of(after: str) -> int | None:
    """Return the place in the order of events that a text names; None for any other text."""
    # An id may consist of digits, and has more of them than a column holds.
    return int(after) if after.isascii() and after.isdigit() and len(after) < 19 else None


async def _page(
    tx: Tx, clock: Clock, chosen: Sequence[Webhook], listed: Sequence[Webhook],
    query: DeliveryQuery, after: str,
) -> Found:  # fmt: skip
    began, rows = clock.monotonic(), list[Delivery]()
    while True:
        page = await delivery_search.page(tx, chosen, query, after, PAGE - len(rows))
        rows += page.deliveries
        after = page.after or ""
        if not page.searched or len(rows) == PAGE or clock.monotonic() - began > SECONDS:
            break
    searched = page.searched and len(rows) < PAGE
    return Found(rows, listed, page.after, _moment(after.rpartition("-")[2]) if searched else None)


async def _of_id(
    tx: Tx, actor: Actor, clock: Clock, search: str, listed: Sequence[Webhook], after: str
) -> Found:
    if is_id(search):
        delivery = await delivery_log.one(tx, search.lower())
        if delivery is not None and delivery.owner_id == actor.owner_id:
            return Found([delivery], listed)
    place = place_of(after)
    page = await events(tx, actor, clock, search, history.Wanted(cause=search), place)
    # The event itself may be past its retention while its deliveries are not.
    rows = page.deliveries or (
        await delivery_search.of_events(tx, actor.owner_id, [search.lower()])
        if is_id(search)
        else ()
    )
    return Found(rows, listed, None if page.after is None else str(page.after), page.searched)


async def _with_deliveries(
    tx: Tx, actor: Actor, rows: Sequence[Listed], listed: Sequence[Webhook], after: int | None,
    searched: int | None,
) -> Events:  # fmt: skip
    made = await delivery_search.of_events(tx, actor.owner_id, [one.id for one in rows])
    return Events(rows, made, listed, after, searched)


def _moment(row_id: str) -> int:
    """Return when an id was made."""
    return int(row_id[:12], 16) * 1000
