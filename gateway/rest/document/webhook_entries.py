"""Describes deliveries in the document: one webhook entry for each event."""

from collections.abc import Callable, Mapping
from typing import Any, get_args

from gateway.domain.catalogue import EVENTS, RESOURCES
from gateway.domain.webhooks.samples import resource_of, sample
from gateway.records.resource import Resource
from gateway.records.values.schemas import ID, INSTANT, Schema, or_null
from gateway.rest.document import shapes
from gateway.rest.document.operations import Shape
from gateway.rest.document.schema_parts import reference
from outbox.durations import SECOND
from outbox.webhooks import State
from outbox.webhooks.operational import NAMES

USUAL: Mapping[str, str] = {
    "created": "A {} is created.",
    "updated": "A PUT or PATCH changes a {}.",
    "deleted": "A {} is deleted.",
    "completed": "A {} that was open is completed.",
    "paid": "A {} is marked as paid.",
}
WHEN: Mapping[str, str] = {
    "contact.created": "A contact is created: by POST, or by a lead, sign-up or checkout "
    "of a store.",
    "contact.updated": "A PUT or PATCH changes a contact, or a lead, sign-up or checkout "
    "of a store completes it.",
    "deal.created": "A deal is created: by POST, or by a checkout of a store.",
    "deal.updated": "A PUT or PATCH changes a deal or has its status; or an order of a store is "
    "paid, is canceled or expires.",
    "invoice.created": "An invoice is created: by POST, from a quote, or by a checkout of a store.",
    "invoice.updated": "A PUT or PATCH changes an invoice, or it is canceled; or its order is "
    "canceled or expires.",
    "invoice.paid": "An invoice is marked as paid: by POST, by its status in a PUT, or by "
    "a payment provider.",
    "quote.updated": "A PUT or PATCH changes a quote; it is sent, accepted, rejected or "
    "canceled; or it expires.",
    "order.created": "A checkout of a store places an order.",
    "order.paid": "An order is paid: its invoice is, by POST, in the console or by a payment "
    "provider, or its total is 0.",
    "order.canceled": "A pending order is canceled, or its invoice is.",
    "order.expired": "A pending order was not paid before its `expiresAt`.",
    "product.updated": "A PUT or PATCH changes a product; a sale does not.",
    "endpoint.failing": "Ten attempts of a webhook failed in a row: one delivery is retried "
    "periodically, and the others wait. The reason is the outcome of the last attempt, "
    "such as timeout.",
    "endpoint.disabled": "A webhook was disabled, and its events are parked. The reason is gone "
    "(its receiver answered 410) or failing (for five days).",
    "endpoint.recovered": "A webhook that was failing or disabled accepts a delivery again (the "
    "reason is success), or was activated or got another URL (activated).",
    "delivery.exhausted": "The last attempt of a delivery failed. It is given up; replay it in "
    "the console.",
    "person.erased": "A person is erased from records, events and deliveries. Erase the records "
    "in recordIds, too.",
}
"""What causes an event, where there is more than the usual."""

_TEXT: Schema = {"type": "string"}
_COUNT: Schema = {"type": "integer", "minimum": 0}
_STATUS: Schema = {"type": ["integer", "null"]}
_ENDPOINT: Mapping[str, Schema] = {
    "id": ID, "url": _TEXT, "description": or_null(_TEXT),
    "state": reference("EndpointState"), "reason": _TEXT,
    "failures": _COUNT, "failingSince": or_null(INSTANT), "lastSuccessAt": or_null(INSTANT),
    "lastOutcome": or_null(_TEXT), "lastStatus": _STATUS,
}  # fmt: skip

_OPERATIONAL_PARTS: Mapping[str, Schema] = {
    "EndpointState": {"type": "string", "enum": [*get_args(State)]},
}
OPERATIONAL_DATA: Mapping[str, Mapping[str, Schema]] = {
    "endpoint.failing": _ENDPOINT,
    "endpoint.disabled": _ENDPOINT,
    "endpoint.recovered": _ENDPOINT,
    "delivery.exhausted": {
        "id": ID, "webhookId": ID, "url": _TEXT, "description": or_null(_TEXT), "eventId": ID,
        "event": _TEXT, "recordId": ID, "attempts": _COUNT, "lastOutcome": or_null(_TEXT),
        "lastStatus": _STATUS, "createdAt": INSTANT, "exhaustedAt": INSTANT,
    },
    "person.erased": {
        "id": ID, "recordIds": {"type": "array", "items": ID}, "requestedAt": INSTANT,
        "erasedAt": INSTANT,
    },
}  # fmt: skip
"""The members of `data`, in their order."""


def cause_of(event: str) -> str:
    """Return what causes an event."""
    noun, _, change = event.partition(".")
    return WHEN.get(event) or USUAL[change].format(noun)


def body_of(event: str) -> Shape:
    """Return the body of the deliveries of an event."""
    noun, _, _ = event.partition(".")
    parts: dict[str, Schema] = {}
    if event in EVENTS:
        data = _data(event, parts)
    else:
        data = dict(OPERATIONAL_DATA[event])
        parts.update(_OPERATIONAL_PARTS)
    name = "Event" + "".join(word.capitalize() for word in event.split("."))
    parts[f"{name}Data"] = {
        "type": "object",
        "properties": data,
        "required": list(data),
        "additionalProperties": False,
    }
    schema = {
        "type": "object",
        "properties": {
            "event": {"const": event},
            "timestamp": {"type": "integer", "description": "Unix time of the event in seconds."},
            "data": reference(f"{name}Data"),
        },
        "required": ["event", "timestamp", "data"],
        "additionalProperties": False,
    }
    example = {
        "event": event,
        "timestamp": shapes.MOMENT // SECOND,
        "data": sample(event, shapes.example_id(noun), shapes.MOMENT),
    }
    return Shape(schema, example, name, parts)


def webhooks(use: Callable[[Shape], dict[str, Any]]) -> dict[str, Any]:
    """Return the member `webhooks` of the document."""
    return {event: {"post": _entry(event, use)} for event in (*EVENTS, *NAMES)}


def _data(event: str, parts: dict[str, Schema]) -> dict[str, Any]:
    """Return the schemas of `data` of a record's event; their parts go into `parts`."""
    noun, _, _ = event.partition(".")
    [resource] = [r for r in RESOURCES if r.noun == noun]
    record = shapes.record(resource)
    parts.update(record.parts)
    known: Mapping[str, Any] = record.schema["properties"]
    return {
        name: known[name] if _is_there(resource, event, name) else or_null(known[name])
        for name in EVENTS[event]
    }


def _is_there(resource: Resource, event: str, name: str) -> bool:
    # A change sets these fields before it enqueues the event.
    change = event.partition(".")[2]
    changed = name == "updatedAt" and change != "created"
    return (
        changed or name == _TIMES.get(change) or name in shapes.record(resource).schema["required"]
    )


_TIMES = {
    "completed": "completedAt", "paid": "paidAt", "canceled": "canceledAt", "expired": "canceledAt",
}  # fmt: skip


def _entry(event: str, use: Callable[[Shape], dict[str, Any]]) -> dict[str, Any]:
    body = body_of(event)
    filterable = resource_of(event).filterable if event in EVENTS else ()
    beside = {"description": BESIDE.format(" and ".join(filterable))} if filterable else {}
    return {
        "operationId": f"on{body.name.removeprefix('Event')}",
        "tags": ["Events"],
        "summary": cause_of(event),
        **beside,
        "parameters": [
            {"name": name, "in": "header", "required": name not in OPTIONAL,
             "schema": {"type": "string"}, "description": text}
            for name, text in HEADERS.items() if event in EVENTS or name not in OF_RECORDS
        ],
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": use(body), "example": body.example}},
        },
        "responses": {"2XX": {"description": "Any 2xx response completes the delivery."}},
    }  # fmt: skip


BESIDE = "Filters of webhooks can also use {} of the record, as after the write."
HEADERS = {
    "X-Webhook-Event": "The name of the event.",
    "X-Webhook-Timestamp": "The timestamp of the body.",
    "X-Webhook-Signature": "sha256= and the hex HMAC-SHA256 of the raw body; the key is the whole "
    "secret, whsec_ included.",
    "X-Webhook-Id": "The id of the event, the same on every retry and replay: ignore an id "
    "that you know.",
    "X-Webhook-Attempt": "1 for the first request, then 2, 3, …",
    "X-Webhook-Record-Version": "The version of the record after this write: ignore an older one "
    "than yours.",
    "X-Webhook-Sequence": "Only from webhooks that number their deliveries: the number of "
    "the delivery in its webhook, 1, 2, 3, … without gaps, the same on every retry and replay.",
    "X-Webhook-Replay": "1 on a replay of a numbered delivery, which has the number of that one.",
    "X-Webhook-Record-Url": "Only in thin events: the address of the record, as in the body.",
    "X-Webhook-Snapshot": "Only on the deliveries of a snapshot: the id of its job.",
    "X-Webhook-Test": "1 on a test event sent from the console, and on nothing else.",
    "webhook-id": "The id of the event, as in Standard Webhooks.",
    "webhook-timestamp": "Unix time of this attempt, which the signature covers.",
    "webhook-signature": "v1, and the base64 HMAC-SHA256 of id, timestamp and body; also v1a, "
    "and an Ed25519 signature when the webhook asks for it.",
    "traceparent": "The trace of the write and the span of this attempt, as in W3C Trace Context.",
}
FORMATS = {
    "contract": "The default: `Content-Type: application/json`, the bodies below.",
    "cloudevents": "The structured mode: `Content-Type: application/cloudevents+json`, the "
    "attributes and `data` in the body. It has no `ce-` header, because some SDKs then read the "
    "binary mode.",
    "cloudevents-binary": "The binary mode: `Content-Type: application/json`, `data` alone as the "
    "body, the attributes as headers `ce-…`, percent-encoded.",
}
"""The formats of a webhook."""
ATTRIBUTES = {
    "specversion": "1.0",
    "id": "The id of the event: the same for all webhooks, retries and replays.",
    "source": "`[server] public_url` and the id of the account; structured requests also have it "
    "as `X-Webhook-Source`.",
    "type": "`carteiro.` and the name of the event.",
    "subject": "The id of the record.",
    "time": "The time of the event in UTC, with milliseconds.",
    "dataschema": "The address of its JSON Schema, which takes `data`, the body of the contract, "
    "and both as thin events have them; `$defs` has each.",
    "datacontenttype": "`application/json`; the binary mode has it as Content-Type.",
    "recordversion": "As `X-Webhook-Record-Version`.",
    "sequence": "As `X-Webhook-Sequence`, in 19 digits, so that texts compare like numbers. An "
    "ordered webhook in these formats numbers its deliveries.",
    "snapshot": "As `X-Webhook-Snapshot`.",
    "test": "As `X-Webhook-Test`.",
}
"""The attributes of CloudEvents; custom headers cannot have their names."""
OF_RECORDS = frozenset({"X-Webhook-Record-Url", "X-Webhook-Snapshot"})
"""Headers that operational events never have."""
OPTIONAL = OF_RECORDS | {"X-Webhook-Sequence", "X-Webhook-Replay", "X-Webhook-Test", "traceparent"}
