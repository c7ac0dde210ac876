"""Generates sample `data` of the events of operational webhooks, for test events."""

from collections.abc import Mapping
from typing import Any

from outbox.queue.state import operational
from outbox.webhooks.operational import Name

MINUTE = 60_000_000
URL = "https://hooks.example.com/orders"
DESCRIPTION = "Orders (test)"
WEBHOOK = "019a9d1c2f004b7de1a0c3f2"
STATES: Mapping[Name, tuple[str, str, int]] = {
    "endpoint.failing": ("active", "http_5xx", 500),
    "endpoint.disabled": ("disabled", "gone", 410),
    "endpoint.recovered": ("active", "success", 200),
}


def sample(event: Name, record_id: str, now: int) -> Mapping[str, Any]:
    """Return the `data` of a test event, with exactly the fields of real events."""
    if event == "delivery.exhausted":
        return operational.given_up(
            delivery_id=record_id, webhook_id=WEBHOOK, url=URL, description=DESCRIPTION,
            event_id="019a9d1c2f004b7de1a0c3f3", event="contact.created",
            record_id="019a9d1c2f004b7de1a0c3f4", attempts=10, outcome="http_5xx", status=500,
            created_at=now - 4320 * MINUTE, finished_at=now,
        )  # fmt: skip
    state, reason, status = STATES[event]
    well = event == "endpoint.recovered"
    return operational.endpoint(
        {
            "id": record_id, "url": URL, "description": DESCRIPTION, "state": state,
            "failures": 0 if well else 10, "failing_since": None if well else now - 5 * MINUTE,
            "last_success_at": now if well else now - 6 * MINUTE,
            "last_outcome": "http_4xx" if status == 410 else reason, "last_status": status,
        },
        reason,
    )  # fmt: skip
