"""The journal: what became of each event and each attempt, one record each, for log and traces.

A search for the request id of a write finds the event, every attempt of its deliveries, and the
event id and span that receivers got. What metrics count of attempts is reported here too.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Protocol
from urllib.parse import urlsplit

import structlog

from outbox.durations import SECOND
from outbox.observer import Observer, Rescue
from outbox.queue.drain.fanout import Announced
from outbox.queue.drain.rescue import Rescued
from outbox.queue.state.claimed_deliveries import Claimed, Result
from outbox.sending.request import span_of, trace_of
from outbox.states import AttemptKind

Fields = dict[str, Any]


class Journal(Protocol):
    """Called on the event loop; every method returns at once and raises nothing."""

    def fanned_out(self, events: Sequence[Announced]) -> None:
        """Note committed events with the number of their deliveries."""

    def attempted(self, result: Result) -> None:
        """Note the result of a delivery in flight before it is stored.

        A process that is killed before it stores the result has then noted it, or the next one
        notes it as rescued: no attempt goes without a record.
        """

    def rescued(self, deliveries: Sequence[Rescued]) -> None:
        """Note deliveries taken back from a process that did not store their results."""


class Log:
    """The journal as lines of the structlog logger."""

    def __init__(self) -> None:
        self._log = structlog.get_logger("outbox")

    def fanned_out(self, events: Sequence[Announced]) -> None:
        for event in events:
            self._log.info("fanned_out", **event_fields(event))

    def attempted(self, result: Result) -> None:
        self._log.info(event_of(result), **attempt_fields(result))

    def rescued(self, deliveries: Sequence[Rescued]) -> None:
        for delivery in deliveries:
            self._log.warning("attempt_unrecorded", **rescued_fields(delivery))


def event_of(result: Result) -> str:
    """Return the name of the record: `attempt`, or `unsent` for a delivery without a request."""
    return "unsent" if result.outcome is None else "attempt"


def event_fields(event: Announced) -> Fields:
    """Return the fields of an event's record."""
    return _present(
        {
            "request_id": event.request_id,
            "trace_id": trace_of(event.traceparent),
            "event_id": event.event_id,
            "event_name": event.name,
            "record_id": event.record_id,
            "seq": event.seq,
            "deliveries": event.deliveries,
        }
    )


def attempt_fields(result: Result) -> Fields:
    """Return the fields of an attempt's record; `span_id` is the one the receiver got."""
    delivery, decision, outcome = result.delivery, result.decision, result.outcome
    fields: Fields = {}
    if delivery.event.request_id is not None:
        fields["request_id"] = delivery.event.request_id
    trace_id = trace_of(delivery.event.traceparent)
    if trace_id is not None:
        fields["trace_id"] = trace_id
        if outcome is not None:
            fields["span_id"] = span_of(delivery.id, delivery.attempt.number)
    fields["event_id"] = delivery.event.id
    fields["delivery_id"] = delivery.id
    fields["webhook_id"] = delivery.webhook_id
    fields["attempt"] = delivery.attempt.number
    if outcome is not None:
        fields["outcome"] = outcome.outcome
        if outcome.status is not None:
            fields["status"] = outcome.status
        if outcome.error is not None:
            fields["note" if outcome.decided else "error"] = outcome.error
        fields["duration_ms"] = outcome.total_us / 1000
    fields["state"] = decision.state
    if outcome is None or decision.reason != outcome.outcome:
        fields["reason"] = decision.reason
    if decision.delay_us is not None:
        ended = result.started_at + (0 if outcome is None else outcome.total_us)
        again = datetime.fromtimestamp((ended + decision.delay_us) / SECOND, UTC)
        fields["next_attempt_at"] = f"{again:%Y-%m-%dT%H:%M:%S}.{again.microsecond // 1000:03d}Z"
    fields["node"] = result.node_id
    return fields


def rescued_fields(delivery: Rescued) -> Fields:
    """Return the fields of a rescued attempt's record."""
    trace_id = trace_of(delivery.traceparent)
    return _present(
        {
            "request_id": delivery.request_id,
            "trace_id": trace_id,
            "span_id": trace_id and span_of(delivery.delivery_id, delivery.attempt),
            "event_id": delivery.event_id,
            "delivery_id": delivery.delivery_id,
            "webhook_id": delivery.webhook_id,
            "attempt": delivery.attempt,
            "state": delivery.state,
        }
    )


def _present(fields: Fields) -> Fields:
    return {name: value for name, value in fields.items() if value is not None}


def report_attempt(observer: Observer, result: Result, now: int) -> None:
    """Report an attempt after its commit, which was at `now`, wall microseconds."""
    delivery, decision, outcome = result.delivery, result.decision, result.outcome
    if outcome is not None:
        observer.attempt(
            delivery.webhook_id, _host(result.url), kind_of(delivery), outcome.outcome,
            outcome.total_us / SECOND, now / SECOND,
        )  # fmt: skip
        observer.connection(outcome.reused)
        if outcome.truncated:
            observer.truncated()
        if outcome.outcome == "http_3xx":
            observer.redirect_refused()
    if result.unreadable:
        observer.unreadable(delivery.webhook_id)
    if decision.state == "ready":
        return
    latency = None
    if decision.state == "delivered":
        latency = max((now - delivery.event.occurred_at) / SECOND, 0.0)
    observer.delivery_finished(delivery.webhook_id, decision.state, latency)


def report_rescued(
    observer: Observer, journal: Journal, reason: Rescue, deliveries: Sequence[Rescued]
) -> None:
    """Report deliveries that were taken back, and those that ended with it."""
    journal.rescued(deliveries)
    observer.rescued(reason, len(deliveries))
    for delivery in deliveries:
        if delivery.state == "dead":
            observer.delivery_finished(delivery.webhook_id, "dead", None)
        elif delivery.state == "cancelled":
            observer.delivery_finished(delivery.webhook_id, "cancelled", None)


@lru_cache(maxsize=1024)
def _host(url: str) -> str:
    return urlsplit(url).hostname or ""


def kind_of(delivery: Claimed) -> AttemptKind:
    """Return the kind of an attempt of this delivery, for metrics."""
    if delivery.attempt.probe:
        return "probe"
    if delivery.origin != "event":
        return delivery.origin
    return "retry" if delivery.attempt.retry else "first"
