"""The events feed, for receivers that were down and for those who rather read than be called."""

from urllib.parse import urlencode

import msgspec
from aiohttp import web

from gateway.domain.catalogue import EVENT_NAMES
from gateway.domain.webhooks import feed
from gateway.domain.webhooks.feed import Event, Events
from gateway.records.values.schemas import ID
from gateway.rest.auth import authenticate
from gateway.rest.document import shapes
from gateway.rest.document.describe import page_size
from gateway.rest.document.operations import Parameter, operation
from gateway.rest.params import window
from gateway.rest.scans import scan
from gateway.server.keys import CONFIG, DB

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
    description="The caller's events in the order in which webhooks get them, oldest first, as "
    "long as they are kept (30 days unless configured otherwise). `body` holds exactly the bytes "
    "of the deliveries, so a signature can be made or checked over it. Test events are left out. "
    "A page that asks for `types` may be short or empty while `hasMore` is true.",
    parameters=(
        Parameter(
            "after", ID,
            "Where to go on: a nextCursor, or the X-Webhook-Id of the last event that arrived. "
            "Without it the feed starts at its oldest event.",
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
    """GET /api/events: what happened after an event that the caller names."""
    caller = await authenticate(request)
    query, days = request.query, request.app[CONFIG].retention.events_days
    after, (_, limit) = query.get("after", "").strip().lower(), window(query)
    names = {name for part in query.get("types", "").split(",") if (name := part.strip())}
    if query.get("types"):
        # To look for some of the events takes longer than to read on.
        found = await scan(
            request, caller, "searched", feed.page, caller, after=after, names=names or None,
            limit=limit, days=days,
        )  # fmt: skip
    else:
        found = await request.app[DB].read(
            feed.page, caller, after=after, names=None, limit=limit, days=days
        )
    headers = {"Content-Type": "application/json"}
    if found.has_more:
        onward = [(k, v) for k, v in query.items() if k != "after"]
        onward.append(("after", str(found.next_cursor)))
        target = f"{request.rel_url.raw_path}?{urlencode(onward, errors='replace')}"
        headers["Link"] = f'<{target}>; rel="next"'
    return web.Response(body=msgspec.json.encode(found), headers=headers)
