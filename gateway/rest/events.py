"""Handles the events feed, for receivers that missed deliveries or prefer to poll."""

import re
from collections.abc import Mapping

import msgspec
from aiohttp import web
from msgspec import UNSET, Struct, UnsetType

from gateway.domain.catalogue import EVENT_NAMES
from gateway.domain.webhooks import feed
from gateway.records.audit import Actor
from gateway.records.values import dates
from gateway.records.values.schemas import ANY_ID, PLACE_ID, Id, Instant
from gateway.rest import lists, paging
from gateway.rest.auth import authenticate
from gateway.rest.document import shapes
from gateway.rest.document.describe import page_size
from gateway.rest.document.operations import Parameter, operation
from gateway.rest.params import LARGEST, refused, window
from gateway.rest.scans import scan
from gateway.server.installation import SITE, WEBHOOK_RULES
from outbox.events.event_feed import Entry
from outbox.ids import is_id

BY_NUMBER = ("webhook", "sequence", "from", "to")
NUMBER = {"type": "integer", "minimum": 1}


class Event(Struct, frozen=True, rename="camel"):
    """An event. `body` is the exact delivery body; null after the erasure of a person.

    With `webhook`, it has the number and the state of its delivery. A delivery that ended without
    success has no body.
    """

    id: Id
    event: str
    record_id: Id
    record_version: int
    occurred_at: Instant
    body: str | None
    request_id: str | UnsetType = UNSET
    erased_at: Instant | UnsetType = UNSET
    sequence: int | UnsetType = UNSET
    state: str | UnsetType = UNSET


class Numbers(Struct, frozen=True, rename="camel"):
    """The numbers from `first` to `last`, both included."""

    first: int
    last: int


class Events(Struct, frozen=True, rename="camel"):
    """Events, oldest first. Send `nextCursor` as `after` for the next page while `hasMore`.

    With `webhook`, send `nextFrom` as `from` instead. `lastSequence` is the last number of the
    webhook; the numbers in `expired` are those of deliveries past their retention.
    """

    data: list[Event]
    has_more: bool
    next_cursor: Id | UnsetType = UNSET
    next_from: int | UnsetType = UNSET
    last_sequence: int | UnsetType = UNSET
    expired: list[Numbers] | UnsetType = UNSET


EXAMPLE = Events(
    [
        Event(
            shapes.example_id("event"), "contact.deleted", shapes.example_id("contact"), 3,
            shapes.NOW,
            '{"event":"contact.deleted","timestamp":1795271400,'
            f'"data":{{"id":"{shapes.example_id("contact")}"}}}}',
            request_id="6b7f0c1e",
        )
    ],
    False,
    shapes.example_id("event"),
)  # fmt: skip


@operation(
    "listEvents", "Events", "Read the events feed", shapes.struct(EXAMPLE), headers=("Link",),
    description="The caller's events in the order of their commits, oldest first, as "
    "long as they are stored (30 days by default). `body` contains exactly the bytes "
    "of the deliveries, so you can verify a signature over it. Test events are left out. "
    "With `types` a page can be short or empty although `hasMore` is true. With `webhook` it reads "
    "the deliveries of a webhook that numbers them (`X-Webhook-Sequence`) by their numbers.",
    parameters=(
        *paging.places(
            PLACE_ID, shapes.example_id("event"),
            "Start after this event: a nextCursor, or the X-Webhook-Id of the last event you "
            "received. Without it the feed starts at its oldest event.",
        ),
        Parameter(
            "types", {"type": "string"}, "Only these events, separated by commas.",
            f"{EVENT_NAMES[0]},{EVENT_NAMES[2]}",
        ),
        Parameter(
            "webhook", ANY_ID, "The numbered deliveries of this webhook.",
            shapes.example_id("webhook"),
        ),
        Parameter("sequence", NUMBER, "Only the delivery with this number.", 7),
        Parameter("from", NUMBER, "Only deliveries with this number or a higher one.", 5),
        Parameter("to", NUMBER, "Only deliveries with this number or a lower one.", 20),
        page_size(),
    ),
    refusals=("not_found",),
)  # fmt: skip
async def list_events(request: web.Request) -> web.Response:
    """GET /api/events: list the events after a given one."""
    caller = await authenticate(request)
    query, days = request.query, request.app[WEBHOOK_RULES].events_days
    if any(name in query for name in BY_NUMBER):
        return await _numbered(request, caller)
    # The feed says itself what an unknown place is.
    after, limit = paging.page_of(query, lambda place: True)
    after = after.lower()
    names = {name for part in query.get("types", "").split(",") if (name := part.strip())}
    if query.get("types"):
        # A search for some event types is slower than reading the next events.
        page = await scan(
            request, caller, "searched", feed.page, after=after, names=names or None,
            limit=limit, days=days,
        )  # fmt: skip
    else:
        page = await lists.read(
            request, feed.page, caller, after=after, names=None, limit=limit, days=days
        )
    link = lists.link(request, str(page.place) if page.more else None)
    headers = {"Content-Type": "application/json", **link}
    place: str | UnsetType = UNSET if page.place is None else page.place
    body = Events([_shown(entry) for entry in page.entries], page.more, place)
    return web.Response(body=msgspec.json.encode(body), headers=headers)


async def _numbered(request: web.Request, caller: Actor) -> web.Response:
    """List the deliveries of a webhook by their numbers."""
    query = request.query
    webhook_id = query.get("webhook", "").strip().lower()
    if not is_id(webhook_id):
        raise refused("webhook", "Send the id of one of your webhooks.")
    for name in (*paging.PLACES, "types"):
        if name in query:
            raise refused(name, f"Send either {name} or webhook.")
    first, upto = _number(query, "from", 1), _number(query, "to", LARGEST)
    if "sequence" in query:
        if "from" in query or "to" in query:
            raise refused("sequence", "Send either sequence or from and to.")
        first = upto = _number(query, "sequence", 1)
    _, limit = window(query)
    page = await lists.read(
        request, feed.numbered, caller, webhook_id, first=first, upto=upto, limit=limit,
        site=request.app[SITE].address,
    )  # fmt: skip
    onward = None if page.onward is None else str(page.onward)
    headers = {"Content-Type": "application/json", **lists.link(request, onward, "from")}
    body = Events(
        [
            msgspec.structs.replace(_shown(entry.event), sequence=entry.sequence, state=entry.state)
            for entry in page.entries
        ],
        page.onward is not None,
        next_from=UNSET if page.onward is None else page.onward,
        last_sequence=page.last,
        expired=[Numbers(span.first, span.last) for span in page.expired],
    )
    return web.Response(body=msgspec.json.encode(body), headers=headers)


def _number(query: Mapping[str, str], name: str, default: int) -> int:
    text = query.get(name)
    if text is None:
        return default
    if not re.fullmatch("[1-9][0-9]{0,17}", text.strip()):
        raise refused(name, "Send a whole number from 1.")
    return int(text)


def _shown(entry: Entry) -> Event:
    return Event(
        id=entry.id,
        event=entry.name,
        record_id=entry.record_id,
        record_version=entry.record_version,
        occurred_at=dates.show(entry.occurred_at),
        # A damaged one must not hide the events behind it.
        body=None if entry.body is None else entry.body.decode("utf-8", "replace"),
        request_id=UNSET if entry.request_id is None else entry.request_id,
        erased_at=UNSET if entry.erased_at is None else dates.show(entry.erased_at),
    )
