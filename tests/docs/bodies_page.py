"""Writes docs/reference/bodies.md from the bodies and headers that the code makes."""

from collections.abc import Iterator

from gateway.domain.catalogue import EVENTS
from gateway.rest.document.webhook_entries import (
    ATTRIBUTES,
    FORMATS,
    HEADERS,
    OPERATIONAL_DATA,
    body_of,
    cause_of,
)
from outbox.durations import SECOND
from outbox.events import cloud_events, encode
from outbox.events.cloud_events import Facts, extensions, source_of
from outbox.sending.request import REQUEST_ORIGIN

ASKS = (
    "The name of this sender, at webhooks that [ask for permission first]"
    "(events.md#ask-for-permission-first)."
)
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
    yield f"| `{REQUEST_ORIGIN}` | {ASKS} |\n\n## CloudEvents\n"
    yield "| format | requests |\n| --- | --- |"
    yield from (f"| `{name}` | {text} |" for name, text in FORMATS.items())
    yield "\n| attribute | value |\n| --- | --- |"
    yield from (f"| `{name}` | {text} |" for name, text in ATTRIBUTES.items())
    yield f"\n```json\n{_structured('contact.created')}\n```\n"
    every = {**EVENTS, **OPERATIONAL_DATA}
    for event, fields in every.items():
        told = ", ".join(f"`{field}`" for field in fields)
        yield f"## {event}\n\n{cause_of(event)} `data` has {told}.\n"
        yield f"```json\n{encode(body_of(event).example).decode()}\n```\n"


def _structured(event: str) -> str:
    """Return the structured form of the example of an event."""
    example = body_of(event).example
    facts = Facts(
        "019a9d1c2f004b7de1a0c3f2", event,
        source_of("https://crm.example.com", "019a9d1c2f000f4e5a6b7c8d"),
        example["data"]["id"], example["timestamp"] * SECOND,
        extensions("1", "42", None, test=False),
    )  # fmt: skip
    return cloud_events.structured(facts, encode(example)).decode()
