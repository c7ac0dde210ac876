"""The formats of values on a page: the steps of an attempt, the word for a delivery."""

from typing import Any

from gateway.console.frame.display import stages
from outbox.queue.log.delivery_types import Attempt


def attempt(**known: Any) -> Attempt:
    values: dict[str, Any] = {
        "number": 1, "kind": "event", "outcome": "success", "status": 200, "error": None,
        "started_at": 0, "dns_us": None, "connect_us": None, "tls_us": None,
        "first_byte_us": None, "total_us": 1, "address": "127.0.0.1:80", "url": "http://x/",
        "request_headers": [], "response_headers": [], "response_body": b"", "truncated": False,
    }  # fmt: skip
    return Attempt(**values | known)


def test_the_steps_of_an_attempt_add_up_to_its_total_time() -> None:
    full = {"dns_us": 10_000, "connect_us": 20_000, "tls_us": 30_000, "first_byte_us": 25_000}
    failed = {"total_us": 1_000, "address": None}
    cases: list[tuple[dict[str, Any], dict[str, int]]] = [
        # The time to the first byte starts when the request is sent, not with the attempt.
        (full | {"total_us": 100_000},
         {"dns": 10_000, "connect": 20_000, "tls": 30_000, "wait": 25_000, "read": 15_000}),
        ({"connect_us": 400, "total_us": 15_000, "outcome": "timeout"},
         {"connect": 400, "wait": 14_600}),
        ({"total_us": 1_000, "outcome": "connect_error"}, {"wait": 1_000}),
        # No connection.
        (failed | {"dns_us": 100, "connect_us": 850, "outcome": "connect_error"},
         {"dns": 100, "connect": 900}),
        (failed | {"connect_us": 100, "outcome": "tls_error"}, {"connect": 100, "tls": 900}),
        (failed | {"outcome": "dns_error"}, {"dns": 1_000}),
        # Rounding may make the sum of the steps a little longer than the total.
        ({"connect_us": 600, "first_byte_us": 401, "total_us": 1_000},
         {"connect": 600, "wait": 401}),
    ]  # fmt: skip
    for known, shown in cases:
        found = stages(attempt(**known))
        assert {stage.name: stage.micros for stage in found} == shown
        edge = 0
        for stage in found:
            assert stage.start == edge
            edge += stage.width
        assert edge == 1000
