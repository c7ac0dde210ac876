"""The headers of a request as the delivery log stores them.

What is constant, and what the attempt's row has in another column, is not stored: it was a third of
the bytes of an attempt.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from outbox.sending.request import Header, masked

Kept = list[str | Header]
"""Values of the headers that every request has, then the other headers with their names."""

EVERY = 11
"""The headers at the start of every request."""


def kept(headers: Sequence[Header]) -> Kept:
    """Return what to store of the headers of `compose`; values of custom headers are masked."""
    if not headers:
        return []
    return [
        headers[1][1], headers[2][1], headers[3][1], headers[4][1], headers[7][1], headers[10][1],
        *masked(headers[EVERY:]),
    ]  # fmt: skip


def restored(stored: str | None, event_id: str, number: int, started_at: int) -> list[Header]:
    """Return the headers of an attempt, of its stored text and its row.

    Older rows have all headers with their names.
    """
    found = json.loads(stored or "[]")
    rest = [(header[0], header[1]) for header in found if not isinstance(header, str)]
    values = [header for header in found if isinstance(header, str)]
    if not values:
        return rest
    event, timestamp, signature, agent, version, standard = values
    return [
        ("Content-Type", "application/json"),
        ("X-Webhook-Event", event),
        ("X-Webhook-Timestamp", timestamp),
        ("X-Webhook-Signature", signature),
        ("User-Agent", agent),
        ("X-Webhook-Id", event_id),
        ("X-Webhook-Attempt", str(number)),
        ("X-Webhook-Record-Version", version),
        ("webhook-id", event_id),
        ("webhook-timestamp", str(started_at // 1_000_000)),
        ("webhook-signature", standard),
        *rest,
    ]
