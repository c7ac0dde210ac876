"""Handles the events feed, for receivers that missed deliveries or prefer to poll."""

from urllib.parse import urlencode

import msgspec
from aiohttp import web
from msgspec import UNSET, Struct, UnsetType

from gateway.domain.catalogue import EVENT_NAMES
from gateway.domain.webhooks import feed
from gateway.records.values import dates
from gateway.records.values.schemas import ID, Id, Instant
from gateway.rest.auth import authenticate
from gateway.rest.document import shapes
from gateway.rest.document.describe import page_size
from gateway.rest.document.operations import Parameter, operation
from gateway.rest.params import window
from gateway.rest.scans import scan
from gateway.server.app_keys import CONFIG, DB
from outbox.events.feed import Entry


class Event(Struct, frozen=True, rename="camel"):
    """An event. `body` is the exact delivery body; null after the erasure of a person."""

    id: Id
    event: str
    record_id: Id
    record_version: int
    occurred_at: Instant
    body: str | None
    request_id: str | UnsetType = UNSET
    erased_at: Instant | UnsetType = UNSET


class Events(Struct, frozen=True, rename="camel"):
    """Events, oldest first. Send `nextCursor` as `after` for the next page while `hasMore`."""

    data: list[Event]
    has_more: bool
    next_cursor: Id | UnsetType = UNSET


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
    description="The caller's events in the order of their deliveries, oldest first, as "
    "long as they are stored (30 days by default). `body` contains exactly the bytes "
    "of the deliveries, so you can verify a signature over it. Test events are left out. "
    "With `types` a page can be short or empty although `hasMore` is true.",
    parameters=(
        Parameter(
            "after", ID,
            "Start after this event: a nextCursor, or the X-Webhook-Id of the last event you "
            "received. Without it the feed starts at its oldest event.",
            shapes.example_id("event"),
        ),
        Parameter(
            "types", {"type": "string"}, "Only these events, separated by commas.",
            f"{EVENT_NAMES[0]},{EVENT_NAMES[2]}",
        ),
        page_size(),
    ),
)  # fmt: skip
async def list_events(request: web.Request) -> web.Response:
    """GET /api/events: list the events after a given one."""
    caller = await authenticate(request)
    query, days = request.query, request.app[CONFIG].retention.events_days
    after, (_, limit) = query.get("after", "").strip().lower(), window(query)
    names = {name for part in query.get("types", "").split(",") if (name := part.strip())}
    if query.get("types"):
        # A search for some event types is slower than reading the next events.
        found = await scan(
            request, caller, "searched", feed.page, caller, after=after, names=names or None,
            limit=limit, days=days,
        )  # fmt: skip
    else:
        found = await request.app[DB].read(
            feed.page, caller, after=after, names=None, limit=limit, days=days
        )
    headers = {"Content-Type": "application/json"}
    if found.more:
        onward = [(k, v) for k, v in query.items() if k != "after"]
        onward.append(("after", str(found.place)))
        target = f"{request.rel_url.raw_path}?{urlencode(onward, errors='replace')}"
        headers["Link"] = f'<{target}>; rel="next"'
    place: str | UnsetType = UNSET if found.place is None else found.place
    body = Events([_shown(entry) for entry in found.entries], found.more, place)
    return web.Response(body=msgspec.json.encode(body), headers=headers)


def _shown(entry: Entry) -> Event:
    return Event(
        entry.id, entry.name, entry.record_id, entry.record_version, dates.show(entry.occurred_at),
        None if entry.body is None else entry.body.decode(),
        UNSET if entry.request_id is None else entry.request_id,
        UNSET if entry.erased_at is None else dates.show(entry.erased_at),
    )  # fmt: skip
