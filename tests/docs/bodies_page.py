"""Writes docs/reference/bodies.md from the bodies that the code makes.

`python -m tests.docs.bodies_page > docs/reference/bodies.md`
"""

from collections.abc import Iterator

from gateway.domain.catalogue import EVENTS
from gateway.rest.document.deliveries import body_of
from outbox.events.body import encode

HEAD = """\
<!-- Generated: python -m tests.docs.bodies_page > docs/reference/bodies.md -->
# Bodies

An example of each [event](events.md), in the exact form of a delivery. The OpenAPI document has
their schemas under `webhooks`.
"""


def lines() -> Iterator[str]:
    """Yield the page."""
    yield HEAD
    for event in EVENTS:
        yield f"`{event}`\n\n```json\n{encode(body_of(event).example).decode()}\n```\n"


if __name__ == "__main__":
    print("\n".join(lines()).rstrip())
