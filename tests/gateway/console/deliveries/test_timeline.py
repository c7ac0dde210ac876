"""The course of a delivery, and an attempt as a command."""

from __future__ import annotations

import shlex
from types import SimpleNamespace
from typing import Any

from gateway import texts
from gateway.console.deliveries.deliveries import LONGEST, course, curl
from gateway.domain.webhooks.deliveries import DeliveryPage
from outbox.durations import SECOND
from outbox.queue.log.delivery_types import Attempt, Delivery
from outbox.queue.state.policy import Schedule

EN = texts.of("en").locale
SUNDAY = 1_795_375_440 * SECOND
"""2026-11-22 19:24 UTC."""
HOUR = 3_600 * SECOND
DELIVERY = Delivery(
    "d", "o", "e", "contact.created", "w", "event", "ready", None, True, 1, 1, "r", SUNDAY, None,
    "http_5xx", 500, None, 0, 300 * SECOND,
)  # fmt: skip
ATTEMPT = Attempt(
    1, "event", "http_5xx", 500, None, SUNDAY, None, None, None, None, 1000, "127.0.0.1:80",
    "https://shop.example/hook?a=b c", [("X-Webhook-Event", "contact.created"), ("X-Key", "***")],
    [], b"", False,
)  # fmt: skip


def made(delivery: Delivery = DELIVERY, schedule: Schedule | None = None, **options: Any) -> Any:
    defaults: dict[str, Any] = {"parked": False, "zone": "UTC", "attempts": [ATTEMPT], "older": 0}
    options = defaults | options
    webhook: Any = SimpleNamespace(state="disabled" if options["parked"] else "active")
    page = DeliveryPage(
        delivery=delivery, webhook=webhook, event=None, attempts=options["attempts"],
        attempted=len(options["attempts"]) + options["older"], siblings=[], replayed_by=None,
        schedule=schedule or Schedule(), place=None,
    )  # fmt: skip
    return course(page, SUNDAY, options["zone"])


def test_the_next_attempt_and_the_last_one_are_told() -> None:
    found = made()
    assert (found.number, found.total) == (2, 10)
    assert found.next_at == SUNDAY + 300 * SECOND
    # The waits before attempts 3 to 10, from the second one on.
    assert found.ends_at == found.next_at + sum(Schedule().waits[1:]) * SECOND
    assert found.clock(found.next_at, EN) == "19:29"
    assert found.clock(found.ends_at, EN) == "Wednesday 23:04"
    assert found.clock(SUNDAY + 9 * 24 * HOUR, EN) == "Dec 1, 19:24"
    assert made(zone="America/Sao_Paulo").clock(SUNDAY, EN) == "16:24"
    assert made(zone="Asia/Tokyo").clock(SUNDAY - 10 * HOUR, EN) == "Sunday 18:24"


def test_a_command_has_the_exact_words() -> None:
    body = '{"name":"D\'Ávila $(reboot) `id`"}'.encode()
    text = curl(ATTEMPT, body)
    assert text is not None
    assert shlex.split(text.replace("\\\n", " ")) == [
        "curl", "-X", "POST", "--globoff", "--path-as-is", ATTEMPT.url,
        "-H", "X-Webhook-Event: contact.created",
        "-H", "X-Key: ***", "--data-binary", body.decode(),
    ]  # fmt: skip
    assert curl(ATTEMPT, None) is None
    assert curl(ATTEMPT, b"x" * (LONGEST + 1)) is None
