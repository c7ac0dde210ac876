"""Writes docs/reference/bodies.md from the bodies and headers that the code makes."""

from collections.abc import Iterator

from gateway.domain.catalogue import EVENTS
from gateway.rest.document import operational
from gateway.rest.document.deliveries import HEADERS, body_of, cause_of
from outbox.events.body import encode

HEAD = """\
# Bodies and headers

Each [event](events.md), those of [operational webhooks](operational-webhooks.md) at the end: what
causes it, the fields of its `data`, and an example in the exact form of a delivery. The OpenAPI
document has their schemas under `webhooks`.
"""
MORE = {
    "X-Webhook-Sequence": "../how-to/recover-events.md#find-what-is-missing",
    "X-Webhook-Record-Url": "events.md#thin-events",
    "X-Webhook-Snapshot": "../how-to/start-with-everything.md",
    "webhook-signature": "../how-to/verify-signatures.md",
    "traceparent": "../how-to/tracing.md",
}
"""The page that explains a header."""


def lines() -> Iterator[str]:
    """Yield the page."""
    yield HEAD
    yield "## Headers\n\n| header | value |\n| --- | --- |"
    for name, text in HEADERS.items():
        more = f" [More]({MORE[name]})." if name in MORE else ""
        yield f"| `{name}` | {text}{more} |"
    yield ""
    every = {**EVENTS, **operational.DATA}
    for event, fields in every.items():
        told = ", ".join(f"`{field}`" for field in fields)
        yield f"## {event}\n\n{cause_of(event)} `data` has {told}.\n"
        yield f"```json\n{encode(body_of(event).example).decode()}\n```\n"
