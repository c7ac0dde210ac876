"""Handles deliveries: the list, one with its attempts, and its replay.

It is one module because its shapes, with their examples, are those of its three handlers.
"""

from base64 import b64encode

import msgspec
from aiohttp import web
from msgspec import UNSET, Struct, UnsetType

from gateway.domain.catalogue import EVENT_NAMES
from gateway.domain.webhooks import delivery_search, single_deliveries
from gateway.records import idempotency
from gateway.records.idempotency import Outcomes
from gateway.records.values import dates
from gateway.records.values.schemas import ANY_ID, Instant
from gateway.rest import lists, paging
from gateway.rest.auth import authenticate
from gateway.rest.body import answer, keep, readable, restore
from gateway.rest.delivery_json import (
    TWICE,
    Delivery,
    DeliveryWarning,
    ReplayedDelivery,
    members_of,
)
from gateway.rest.document import shapes
from gateway.rest.document.describe import IDEMPOTENCY_KEY, id_of, page_size
from gateway.rest.document.operations import Parameter, operation
from gateway.rest.errors import JSON
from gateway.rest.params import once_of
from gateway.rest.scans import scan
from gateway.rest.shown_waits import Waiting
from gateway.server.app_keys import DB
from gateway.server.http import bodies
from outbox.database.transaction import brief
from outbox.queue.log import delivery_types as log
from outbox.webhooks.operational import NAMES as OPERATIONAL

PATH = "/api/deliveries"
_encode = msgspec.json.Encoder().encode


class AttemptHeader(Struct, frozen=True):
    """One header. The values of a webhook's own headers are shown as `***`."""

    name: str
    value: str


class Attempt(Struct, frozen=True, rename="camel"):
    """One request of a delivery, and its response.

    `responseBody` is the beginning of the body as text: the coding of `Content-Encoding` is undone
    (gzip, deflate, and br and zstd where installed; at most 32 KiB), and its charset decoded. A
    U+FFFD stands for bytes that are no text. If it does not show all stored bytes,
    `responseBodyBase64` has them as they arrived. `error` says why there is no valid response;
    `notes` say what was odd about a response that counts.
    """

    number: int
    kind: str
    outcome: str
    started_at: Instant
    duration_ms: float
    url: str
    request_headers: list[AttemptHeader]
    response_headers: list[AttemptHeader]
    status: int | UnsetType = UNSET
    error: str | UnsetType = UNSET
    address: str | UnsetType = UNSET
    response_body: str | UnsetType = UNSET
    response_truncated: bool | UnsetType = UNSET
    response_body_base64: str | UnsetType = UNSET
    notes: list[str] | UnsetType = UNSET


class DeliveryDetail(Delivery, frozen=True, kw_only=True, rename="camel"):
    """A delivery with its latest attempts, the last one first.

    `body` is the exact request body, the same in each attempt; null after the erasure of a person,
    and when the event is past its retention.
    """

    body: str | None
    attempts: list[Attempt]
    record_version: int | UnsetType = UNSET
    occurred_at: Instant | UnsetType = UNSET
    request_id: str | UnsetType = UNSET
    erased_at: Instant | UnsetType = UNSET


class Deliveries(Struct, frozen=True, rename="camel"):
    """Deliveries, newest first. Send `nextCursor` as `cursor` for the next page while `hasMore`."""

    data: list[Delivery]
    has_more: bool
    next_cursor: str | UnsetType = UNSET


EXAMPLE = Delivery(
    id=shapes.example_id("delivery"),
    event_id=shapes.example_id("event"),
    webhook_id=shapes.example_id("webhook"),
    record_id=shapes.example_id("contact"),
    state="exhausted",
    origin="event",
    attempt_count=1,
    created_at=shapes.NOW,
    event="contact.created",
    reason="http_5xx",
    last_outcome="http_5xx",
    last_status=503,
    finished_at=shapes.NOW,
)
ATTEMPT = Attempt(
    number=1,
    kind="event",
    outcome="http_5xx",
    started_at=shapes.NOW,
    duration_ms=83.412,
    url="https://hooks.example.com/carteiro",
    request_headers=[
        AttemptHeader("Content-Type", "application/json"),
        AttemptHeader("Authorization", "***"),
    ],
    response_headers=[AttemptHeader("Content-Type", "text/plain")],
    status=503,
    address="203.0.113.7",
    response_body="maintenance",
    response_truncated=False,
)
DETAIL = DeliveryDetail(
    **msgspec.structs.asdict(EXAMPLE), attempts=[ATTEMPT], record_version=1,
    body='{"event":"contact.created","timestamp":1795271400,"data":{}}',
    occurred_at=shapes.NOW, request_id="6b7f0c1e",
)  # fmt: skip
REPLAYED = ReplayedDelivery(
    id=shapes.example_id("replay"),
    event_id=shapes.example_id("event"),
    webhook_id=shapes.example_id("webhook"),
    record_id=shapes.example_id("contact"),
    state="parked",
    origin="replay",
    attempt_count=0,
    created_at=shapes.NOW,
    event="contact.created",
    waiting=Waiting("paused"),
    warnings=[DeliveryWarning(TWICE, shapes.example_id("delivery"))],
)


@operation(
    "listDeliveries", "Deliveries", "List deliveries",
    shapes.struct(Deliveries([EXAMPLE], False)), headers=("Link",),
    description="The deliveries of the caller's webhooks, 50 a page, as long as they are stored "
    "(30 days by default). Those that wait (`waiting`, `ready`, `scheduled`, `parked`) come in the "
    "order in which they are due. A page examines a bounded number of deliveries, so it can be "
    "short or empty although `hasMore` is true. A filter that matches nothing gives an empty list.",
    parameters=(
        Parameter(
            "state", {"type": "string", "enum": list(log.FILTERS)},
            "Only deliveries in this state; `failed` are exhausted, gone and dead, `retrying` wait "
            "after a failed attempt, and `failures` are both.", "failed",
        ),
        Parameter(
            "event", {"type": "string", "enum": [*EVENT_NAMES, *OPERATIONAL]},
            "Only deliveries of this event.", EVENT_NAMES[0],
        ),
        Parameter(
            "webhookId", ANY_ID, "Only deliveries to this webhook.", shapes.example_id("webhook")
        ),
        Parameter(
            "recordId", ANY_ID,
            "Only deliveries of events of this record; pages follow its events, newest first.",
            shapes.example_id("contact"),
        ),
        *paging.places({"type": "string"}, shapes.example_id("delivery")),
        page_size(delivery_search.PAGE),
    ),
)  # fmt: skip
async def list_deliveries(request: web.Request) -> web.Response:
    """GET /api/deliveries: list the caller's deliveries."""
    caller = await authenticate(request)
    db, query = request.app[DB], request.query
    state = query.get("state", "all")
    [only] = [name for name in log.FILTERS if name == state]
    after, limit = paging.page_of(query, delivery_search.is_cursor, delivery_search.PAGE)
    caller.must("read")
    wanted = delivery_search.Wanted(
        webhook_id=query.get("webhookId", "").lower(), record_id=query.get("recordId", "").lower()
    )
    of = log.DeliveryQuery(only, query.get("event", ""))
    page = await scan(
        request, caller, "searched", delivery_search.deliveries,
        clock=db.clock, wanted=wanted, query=of, after=after.lower(), size=limit,
    )  # fmt: skip
    now = db.clock.wall()
    data = [
        Delivery(**members_of(delivery, page.active(delivery), now, page.waits.get(delivery.id)))
        for delivery in page.deliveries
    ]
    headers = {"Content-Type": JSON, **lists.link(request, page.after)}
    more = page.after is not None
    body = Deliveries(data, more, page.after if page.after is not None else UNSET)
    return web.Response(body=_encode(body), headers=headers)


@operation(
    "getDelivery", "Deliveries", "Read a delivery with its attempts", shapes.struct(DETAIL),
    description="The latest 25 attempts, with headers and bodies as the console shows them.",
    parameters=(id_of("delivery"),),
)  # fmt: skip
async def read_delivery(request: web.Request) -> web.Response:
    """GET /api/deliveries/{id}: read a delivery with its latest attempts."""
    caller = await authenticate(request)
    db = request.app[DB]
    detail = await db.read(single_deliveries.one, caller, request.match_info["id"])
    event = detail.event
    members = members_of(detail.delivery, detail.active, db.clock.wall(), detail.waiting)
    if event is not None:
        members |= {
            "record_version": event.record_version,
            "occurred_at": dates.show(event.occurred_at),
        }
        if event.request_id is not None:
            members["request_id"] = event.request_id
        if event.erased_at is not None:
            members["erased_at"] = dates.show(event.erased_at)
    body = None
    if event is not None and event.body is not None:
        body = event.body.decode("utf-8", "replace")
    shown = DeliveryDetail(
        **members, body=body, attempts=[_attempt(attempt) for attempt in detail.attempts]
    )
    return web.Response(body=_encode(shown), headers={"Content-Type": JSON})


_replay = brief(single_deliveries.replay)


@operation(
    "replayDelivery", "Deliveries", "Replay a delivery", shapes.written(shapes.struct(REPLAYED)),
    status=202, headers=("Location", "Idempotent-Replayed"),
    description="Sends the event to its webhook again, with the same id and the same bytes, as a "
    "new delivery. At a webhook that is not active it waits (`parked`). `warnings` says when the "
    "replayed delivery waits, too. Refused with `conflict` "
    "when the person was erased, the event is past its retention, the webhook was deleted, or the "
    "delivery was a test.",
    parameters=(id_of("delivery"), IDEMPOTENCY_KEY), refusals=("conflict",),
)  # fmt: skip
async def replay_delivery(request: web.Request) -> web.Response:
    """POST /api/deliveries/{id}/replay: send the event of a delivery again."""
    caller = await authenticate(request)
    db = request.app[DB]
    # The handler ignores the body, so any body is valid.
    body = await bodies.read(request)

    def response(done: single_deliveries.Replayed) -> web.Response:
        members = members_of(done.delivery, done.active, db.clock.wall(), done.waiting)
        shown = ReplayedDelivery(
            **members, warnings=[] if done.twin is None else [DeliveryWarning(TWICE, done.twin)]
        )
        return answer(shown, 202, {"Location": f"{PATH}/{done.delivery.id}"})

    use = once_of(caller, request, body)
    outcomes = Outcomes(response, keep, restore)
    return readable(
        caller,
        await idempotency.write(db, use, outcomes, _replay, caller, request.match_info["id"]),
    )


def _attempt(attempt: log.Attempt) -> Attempt:
    answered = attempt.status is not None and attempt.answer_digest is None
    body = attempt.body
    exact = body is None or body.exact
    return Attempt(
        number=attempt.number,
        kind=attempt.kind,
        outcome=attempt.outcome,
        started_at=dates.show(attempt.started_at),
        duration_ms=attempt.total_us / 1000,
        url=attempt.url,
        request_headers=_headers(attempt.request_headers),
        response_headers=_headers(attempt.response_headers),
        status=UNSET if attempt.status is None else attempt.status,
        error=UNSET if attempt.failure is None else attempt.failure,
        address=UNSET if attempt.address is None else attempt.address,
        response_body=UNSET if body is None else body.text,
        response_truncated=UNSET
        if not answered
        else attempt.truncated
        if body is None
        else body.cut,
        response_body_base64=UNSET
        if exact
        else b64encode(attempt.response_body or b"").decode("ascii"),
        notes=attempt.notes or UNSET,
    )


def _headers(pairs: list[tuple[str, str]]) -> list[AttemptHeader]:
    return [AttemptHeader(name, value) for name, value in pairs]
