"""Writes docs/reference/bodies.md from the bodies and headers that the code makes."""

from collections.abc import Iterator

from gateway.domain.catalogue import EVENTS
from gateway.rest.document import operational
from gateway.rest.document.deliveries import HEADERS, body_of, cause_of
from outbox.events.body import encode

MORE = {
    "X-Webhook-Sequence": "../how-to/recover-events.md#find-what-is-missing",
    "X-Webhook-Record-Url": "events.md#thin-events",
    "X-Webhook-Snapshot": "../how-to/start-with-everything.md",
    "webhook-signature": "../how-to/verify-signatures.md",
    "traceparent": "../how-to/tracing.md",
}
"""The page that explains a header."""


def lines() -> Iterator[str]:
    """Yield the generated part of the page."""
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
