"""Finds deliveries and events of an owner: filtered lists, and what belongs to an id."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count

from gateway.domain.webhooks import webhooks
from gateway.records.audit import Actor, must_own
from gateway.records.errors import Refusal
from outbox.clock import Clock
from outbox.database.transaction import Tx
from outbox.events import event_history
from outbox.events.event_history import Listed
from outbox.ids import is_id
from outbox.queue.log import delivery_log, delivery_pages, event_deliveries
from outbox.queue.log.delivery_pages import Logged
from outbox.queue.log.delivery_types import Announced, Delivery, DeliveryQuery
from outbox.queue.state import waits
from outbox.queue.state.waits import Waiting
from outbox.webhooks import Webhook
from outbox.webhooks.deleted import DeletedWebhook

PAGE = 50
SECONDS = 0.15
"""A page that matches few rows searches further during this time."""
FIRST_SCANNED = 300
"""Rows that a page examines first: mostly they fill it, as with delivered ones."""
ROUNDS = 4
"""A search for a record or a request goes this far at least, past the events without marks."""
EXAMINED = 500
"""Deliveries of a record or a request that one round of a search examines."""
LONGEST_SEARCH = 200


@dataclass(frozen=True, slots=True)
class DeliveryList:
    """A page of deliveries with the webhooks of their owner.

    `searched` is set when more rows are left than a page examines: they are older than this time.
    """

    deliveries: Sequence[Delivery]
    webhooks: Sequence[Webhook] = ()
    after: str | None = None
    searched: int | None = None
    deleted: Sequence[DeletedWebhook] = ()
    waits: Mapping[str, Waiting] = field(default_factory=dict)
    """What they wait for, by delivery."""

    def active(self, delivery: Delivery) -> bool:
        """Return whether the webhook of a delivery is active."""
        return any(one.id == delivery.webhook_id and one.state == "active" for one in self.webhooks)


@dataclass(frozen=True, slots=True)
class EventList:
    """A page of events with their deliveries, and `searched` as in DeliveryList."""

    events: Sequence[Listed]
    deliveries: Sequence[Delivery] = ()
    webhooks: Sequence[Webhook] = ()
    after: int | None = None
    searched: int | None = None

    def of(self, event: Listed) -> Sequence[Delivery]:
        """Return the deliveries of one of the events."""
        return [one for one in self.deliveries if one.event_id == event.id]


@dataclass(frozen=True, slots=True)
class Wanted:
    """Whose deliveries are listed; an empty text selects all.

    `text` is an id of a delivery, event, record or request; `record_id` takes its place and finds
    deliveries of this record alone.
    """

    text: str = ""
    webhook_id: str = ""
    record_id: str = ""


async def deliveries(
    tx: Tx,
    actor: Actor,
    clock: Clock,
    wanted: Wanted,
    query: DeliveryQuery,
    *,
    after: str,
    size: int = PAGE,
) -> DeliveryList:
    """Return a page of deliveries."""
    webhook_id, record_id = wanted.webhook_id, wanted.record_id
    listed = await webhooks.listed(tx, actor)
    known_id = record_id or wanted.text
    if known_id:
        active = {webhook.id for webhook in listed if webhook.state == "active"}

        def fits(delivery: Delivery) -> bool:
            return (
                webhook_id in ("", delivery.webhook_id)
                and record_id in ("", delivery.record_id)
                and query.matches(delivery, delivery.webhook_id in active)
            )

        page = await _of_id(tx, actor, clock, known_id, fits, after=after, size=size)
        held = await waits.of(tx, page.deliveries)
        return replace(page, webhooks=listed, waits=held)
    logs: list[Logged] = [webhook for webhook in listed if webhook_id in ("", webhook.id)]
    if not logs and is_id(webhook_id):
        logs = await _deleted(tx, actor, webhook_id)
    return await _page(tx, clock, logs, listed, query, after=after, size=size)


async def of_webhook(
    tx: Tx, actor: Actor, clock: Clock, webhook_id: str, query: DeliveryQuery, after: str
) -> DeliveryList:
    """Return the same of one webhook, which may be deleted. Raises not_found, forbidden.

    It is the only one in `webhooks` or in `deleted`.
    """
    webhook = await webhooks.with_log(tx, actor, webhook_id)
    if isinstance(webhook, Webhook):
        return await _page(tx, clock, [webhook], [webhook], query, after=after)
    return replace(await _page(tx, clock, [webhook], [], query, after=after), deleted=[webhook])


async def events(
    tx: Tx, actor: Actor, clock: Clock, query: event_history.EventQuery, after: int | None,
    size: int = PAGE,
) -> EventList:  # fmt: skip
    """Return a page of events; the cause may be an id of an event or a delivery too."""
    listed = await webhooks.listed(tx, actor)
    found = await _events(tx, actor, clock, query, after, size)
    ids = [one.id for one in found.events]
    deliveries = await event_deliveries.of_events(tx, actor.owner_id, ids)
    return replace(found, deliveries=deliveries, webhooks=listed)


async def event(
    tx: Tx, actor: Actor, event_id: str
) -> tuple[Announced, Sequence[Delivery], Sequence[Webhook]]:
    """Return an event with its body and deliveries. Raises not_found, forbidden."""
    announced = await delivery_log.event(tx, event_id)
    owner = await event_history.owner_of(tx, event_id)
    if announced is None or owner is None:
        raise Refusal("not_found", "This event does not exist.")
    must_own(actor, owner, "event")
    return (
        announced,
        await event_deliveries.of_events(tx, actor.owner_id, [event_id]),
        await webhooks.listed(tx, actor),
    )


def is_cursor(text: str) -> bool:
    """Return whether a text may be the place of a page."""
    head, _, tail = text.partition("-")
    return all(
        is_id(part) or (part.isdecimal() and part.isascii() and len(part) < 19)
        for part in ((head, tail) if tail else (head,))
    )


def place_of(after: str) -> int | None:
    """Return the place in the order of events that a text names; None for any other text."""
    # An id may consist of digits, and has more of them than a column holds.
    return int(after) if after.isascii() and after.isdigit() and len(after) < 19 else None


async def _page(
    tx: Tx, clock: Clock, logs: Sequence[Logged], listed: Sequence[Webhook],
    query: DeliveryQuery, *, after: str, size: int = PAGE,
) -> DeliveryList:  # fmt: skip
    began, rows, scanned = clock.monotonic(), list[Delivery](), FIRST_SCANNED
    while True:
        page = await delivery_pages.page(tx, logs, query, after, size - len(rows), scanned)
        scanned = min(4 * scanned, delivery_pages.SCANNED)
        rows += page.deliveries
        after = page.after or ""
        if not page.searched or len(rows) == size or clock.monotonic() - began > SECONDS:
            break
    searched = page.searched and len(rows) < size
    reached = _moment(after.rpartition("-")[2]) if searched else None
    held = await waits.of(tx, rows)
    return DeliveryList(rows, listed, page.after, reached, waits=held)


async def _deleted(tx: Tx, actor: Actor, webhook_id: str) -> list[Logged]:
    """Return a deleted webhook of the actor; empty for any other id."""
    try:
        return [await webhooks.deleted(tx, actor, webhook_id)]
    except Refusal:
        return []


async def _events(
    tx: Tx, actor: Actor, clock: Clock, query: event_history.EventQuery, after: int | None,
    size: int,
) -> EventList:  # fmt: skip
    """Return the same without deliveries and webhooks."""
    if is_id(query.cause):
        known = query.cause.lower()
        delivery = await delivery_log.one(tx, known)
        if delivery is not None and delivery.owner_id == actor.owner_id:
            known = delivery.event_id
        event = await event_history.one(tx, actor.owner_id, known)
        if event is not None:
            return EventList([event])
    began, rows = clock.monotonic(), list[Listed]()
    least = ROUNDS if query.cause else 1
    for done in count(1):
        page = await event_history.page(tx, actor.owner_id, query, after, size - len(rows))
        rows += page.events
        after = page.after
        if not page.searched or len(rows) == size:
            break
        if done >= least and clock.monotonic() - began > SECONDS:
            break
    searched = page.examined if page.searched and len(rows) < size else None
    return EventList(rows, after=page.after, searched=searched)


async def _of_id(
    tx: Tx, actor: Actor, clock: Clock, search: str, fits: Callable[[Delivery], bool], *,
    after: str, size: int,
) -> DeliveryList:  # fmt: skip
    """Return a page of the deliveries that belong to an id and fit, without webhooks.

    It goes by event, the newest first, and within an event by delivery: its `after` is the `seq` of
    the event that is done, or the place of a delivery in an event that is not. A page itself is
    sorted by delivery.
    """
    if is_id(search):
        delivery = await delivery_log.one(tx, search.lower())
        if delivery is not None and delivery.owner_id == actor.owner_id:
            return DeliveryList([delivery] if fits(delivery) else [])
    began, rows, place = clock.monotonic(), list[Delivery](), after
    while True:
        page = await _round(tx, actor, clock, search, fits, after=place, size=size - len(rows))
        rows += page.deliveries
        if page.after is None or len(rows) == size or clock.monotonic() - began > SECONDS:
            break
        place = page.after
    rows.sort(key=lambda one: one.id, reverse=True)
    return replace(page, deliveries=rows, searched=page.searched if len(rows) < size else None)


async def _round(
    tx: Tx, actor: Actor, clock: Clock, search: str, fits: Callable[[Delivery], bool], *,
    after: str, size: int,
) -> DeliveryList:  # fmt: skip
    """Return the same from one page of events; `searched` is how far it came."""
    head, _, last = after.partition("-")
    seq = place_of(head)
    query = event_history.EventQuery(cause=search)
    # The event of the last delivery may have further ones.
    before = None if seq is None else seq + bool(last)
    found = await _events(tx, actor, clock, query, before, max(size, PAGE))
    ids = [one.id for one in found.events]
    end = event_history.END if seq is None else seq
    if not ids and (last or not seq) and is_id(search):
        # The event itself may be past its retention while its deliveries are not. When it was
        # removed after the page before, only `last` tells where that page ended.
        ids = [search.lower()]
        end = 0 if last else end
    places = await event_deliveries.places(tx, ids, end, last, EXAMINED + 1)
    rows, done = list[Delivery](), 0
    while done < min(len(places), EXAMINED) and len(rows) < size:
        some = [place.id for place in places[done : min(done + PAGE, EXAMINED)]]
        read = {one.id: one for one in await delivery_pages.by_ids(tx, some)}
        for delivery_id in some:
            done += 1
            one = read.get(delivery_id)
            if one is not None and one.owner_id == actor.owner_id and fits(one):
                rows.append(one)
                if len(rows) == size:
                    break
    if done < len(places):
        reached = places[done - 1]
        return DeliveryList(rows, (), f"{reached.seq}-{reached.id}", reached.occurred_at)
    if found.after is None:
        return DeliveryList(rows)
    searched = found.events[-1].occurred_at if found.searched is None else found.searched
    return DeliveryList(rows, (), str(found.after), searched)


def _moment(row_id: str) -> int:
    """Return when an id was made."""
    return int(row_id[:12], 16) * 1000
