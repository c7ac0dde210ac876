"""Writes docs/reference/bodies.md from the bodies and headers that the code makes."""

from collections.abc import Iterator

from gateway.domain.catalogue import EVENTS
from gateway.rest.document.deliveries import HEADERS, WHEN, body_of
from outbox.events.body import encode

HEAD = """\
# Bodies and headers

Each [event](events.md): what causes it, the fields of its `data`, and an example in the exact form
of a delivery. The OpenAPI document has their schemas under `webhooks`.
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
    for event, fields in EVENTS.items():
        yield f"## {event}\n\n{WHEN[event]} `data` has {', '.join(f'`{one}`' for one in fields)}.\n"
        yield f"```json\n{encode(body_of(event).example).decode()}\n```\n"
