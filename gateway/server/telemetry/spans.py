"""Spans of requests, units and attempts, from the ids that the log and the receivers have.

`Spans` makes them; `gateway.server.telemetry.collector` takes them to the collector.
"""

from collections.abc import Callable, Mapping
from typing import Literal, NamedTuple
from urllib.parse import urlsplit

import msgspec

from gateway.server.telemetry.metrics import METHODS
from gateway.server.telemetry.trace_context import Marks, Trace
from outbox.clock import Clock
from outbox.durations import SECOND
from outbox.queue.state.claimed_deliveries import Result
from outbox.sending.outcome import Outcome
from outbox.sending.request import TRACEPARENT, span_of


class Served(msgspec.Struct, omit_defaults=True, gc=False):
    """A request with its response."""

    surface: str
    method: str
    route: str
    """Its template, or `unmatched`."""
    path: str
    status: int
    duration_ms: float
    request_id: str
    trace_id: str
    span_id: str
    address: str
    actor: str | None = None
    """The id of the caller's key, or of the caller."""


Kind = Literal["server", "client", "internal"]
LONGEST_PATH = 1_000
Attributes = Mapping[str, str | int | float | bool]


class Span(NamedTuple):
    """A finished span; times are microseconds UTC, ids hex digits, `error` tells of a failure."""

    name: str
    kind: Kind
    trace_id: str
    span_id: str
    parent_id: str | None
    remote: bool
    """Whether the parent is a span of another program."""
    began: int
    ended: int
    attributes: Attributes
    error: str | None = None


class Spans:
    """Makes a span of each request, unit and attempt whose trace is sampled; `put` takes them."""

    def __init__(
        self, clock: Clock, marks: Marks, put: Callable[[Span], None], engine: str
    ) -> None:
        self._clock = clock
        self._marks = marks
        self._put = put
        self._engine = "postgresql" if engine == "postgres" else engine

    def request(self, trace: Trace, served: Served, since: float, seconds: float) -> None:
        """Make the span of a request, which began at `since`."""
        if trace.flags != "01":
            return
        began = self._clock.wall() - round((self._clock.monotonic() - since) * SECOND)
        status = served.status
        method = served.method if served.method in METHODS else "_OTHER"
        attributes: dict[str, str | int | float | bool] = {
            "http.request.method": method,
            "http.route": served.route,
            # Thousands of spans may wait for the collector, each with a path as long as a head.
            "url.path": served.path[:LONGEST_PATH],
            "http.response.status_code": status,
            "client.address": served.address,
            "carteiro.request_id": served.request_id,
        }
        if served.actor is not None:
            attributes["enduser.id"] = served.actor
        failed = f"status {status}" if status >= 500 else None
        self._put(
            Span(
                name=f"{method} {served.route}",
                kind="server",
                trace_id=trace.trace_id,
                span_id=trace.span_id,
                parent_id=trace.parent_id,
                remote=True,
                began=began,
                ended=began + round(seconds * SECOND),
                attributes=attributes,
                error=failed,
            )
        )

    def unit(
        self, traceparent: str | None, op: str, name: str, seconds: float, error: str | None
    ) -> None:
        """Make the span of a unit, on behalf of the request with this `traceparent`."""
        parent = _sampled(traceparent)
        if parent is None:
            return
        ended = self._clock.wall()
        self._put(
            Span(
                name=f"{op} {name}",
                kind="internal",
                trace_id=parent[0],
                span_id=self._marks.span_id(),
                parent_id=parent[1],
                remote=False,
                began=ended - round(seconds * SECOND),
                ended=ended,
                attributes={"db.system.name": self._engine, "db.operation.name": op},
                error=error,
            )
        )

    def attempt(self, result: Result, outcome: Outcome) -> None:
        """Make the span of an attempt: the one that the receiver got as its parent."""
        delivery = result.delivery
        parent = _sampled(delivery.event.traceparent)
        if parent is None:
            return
        attributes: dict[str, str | int | float | bool] = {
            "http.request.method": "POST",
            "server.address": urlsplit(result.url).hostname or "",
            "messaging.message.id": delivery.event.id,
            "carteiro.event": delivery.event.name,
            "carteiro.delivery_id": delivery.id,
            "carteiro.webhook_id": delivery.webhook_id,
            "carteiro.attempt": delivery.attempt.number,
            "carteiro.outcome": outcome.outcome,
            "carteiro.state": result.decision.state,
        }
        if outcome.status is not None:
            attributes["http.response.status_code"] = outcome.status
        if outcome.address is not None:
            attributes["network.peer.address"] = outcome.address
        for step in ("dns", "connect", "tls", "first_byte"):
            micros = getattr(outcome, f"{step}_us")
            if micros is not None:
                attributes[f"carteiro.{step}_ms"] = micros / 1000
        if delivery.event.request_id is not None:
            attributes["carteiro.request_id"] = delivery.event.request_id
        failed = None
        if outcome.outcome != "success":
            attributes["error.type"] = outcome.outcome
            failed = outcome.failure or outcome.outcome
        self._put(
            Span(
                name=f"deliver {delivery.event.name}",
                kind="client",
                trace_id=parent[0],
                span_id=span_of(delivery.id, delivery.attempt.number),
                parent_id=parent[1],
                remote=False,
                began=result.started_at,
                ended=result.started_at + outcome.total_us,
                attributes=attributes,
                error=failed,
            )
        )


def _sampled(traceparent: str | None) -> tuple[str, str] | None:
    """Return the trace and the span of a traceparent whose trace is sampled."""
    match = None if traceparent is None else TRACEPARENT.fullmatch(traceparent)
    if traceparent is None or match is None or match[2] != "01":
        return None
    return match[1], traceparent[36:52]
