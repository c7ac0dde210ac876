"""Report recorded attempts and rescues to an observer, for metrics."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from urllib.parse import urlsplit

from outbox.clock import Clock
from outbox.observer import Observer, Rescue
from outbox.queue.drain.rescue import Rescued
from outbox.queue.state.deliveries import Claimed, Result
from outbox.states import AttemptKind
from outbox.worker.journal import Journal


class Reports:
    """Reports to an observer; called after the commit of the attempt."""

    def __init__(self, observer: Observer, clock: Clock) -> None:
        self._observer = observer
        self._clock = clock

    def settled(self, result: Result) -> None:
        """Report one recorded attempt."""
        delivery, decision, outcome = result.delivery, result.decision, result.outcome
        seconds = outcome.total_us / 1_000_000 if outcome else 0.0
        if outcome is not None:
            kind = kind_of(delivery)
            self._observer.attempt(
                delivery.webhook_id, _host(result.url), kind, outcome.outcome, seconds
            )
            self._observer.connection(outcome.reused)
            if outcome.truncated:
                self._observer.truncated()
            if outcome.outcome == "http_3xx":
                self._observer.redirect_refused()
        if result.unreadable:
            self._observer.unreadable(delivery.webhook_id)
        if decision.state != "ready":
            delivered = decision.state == "delivered"
            latency = (self._clock.wall() - delivery.occurred_at) / 1_000_000
            self._observer.delivery_finished(
                delivery.webhook_id, decision.state, max(latency, 0.0) if delivered else None
            )


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
