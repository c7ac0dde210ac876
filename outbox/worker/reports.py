"""Report recorded attempts and rescues to an observer, for metrics."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from urllib.parse import urlsplit

from outbox.observer import Observer, Rescue
from outbox.queue.drain.rescue import Rescued
from outbox.queue.state.deliveries import Claimed, Result
from outbox.states import AttemptKind
from outbox.worker.journal import Journal


def settled(observer: Observer, result: Result, now: int) -> None:
    """Report an attempt after its commit, which was at `now`, wall microseconds."""
    delivery, decision, outcome = result.delivery, result.decision, result.outcome
    if outcome is not None:
        observer.attempt(
            delivery.webhook_id, _host(result.url), kind_of(delivery), outcome.outcome,
            outcome.total_us / 1_000_000,
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
        latency = max((now - delivery.occurred_at) / 1_000_000, 0.0)
    observer.delivery_finished(delivery.webhook_id, decision.state, latency)


def rescued(
    observer: Observer, journal: Journal, reason: Rescue, deliveries: Sequence[Rescued]
) -> None:
    """Report deliveries that were taken back, and those that ended with it."""
    journal.rescued(deliveries)
    observer.rescued(reason, len(deliveries))
    for delivery in deliveries:
        if delivery.state == "dead":
            observer.delivery_finished(delivery.webhook_id, "dead", None)


@lru_cache(maxsize=1024)
def _host(url: str) -> str:
    return urlsplit(url).hostname or ""


def kind_of(delivery: Claimed) -> AttemptKind:
    """Return the kind of an attempt of this delivery, for metrics."""
    if delivery.probe:
        return "probe"
    if delivery.origin != "event":
        return delivery.origin
    return "retry" if delivery.retry else "first"
