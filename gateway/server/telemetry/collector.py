"""Connects the spans of this process with the collector at `[tracing] endpoint`.

OpenTelemetry is imported only when an endpoint is set.
"""

import asyncio

from gateway.server.config import Tracing
from gateway.server.program import program_version
from gateway.server.telemetry import logs
from gateway.server.telemetry.metrics import Metrics
from gateway.server.telemetry.span_queue import Exporter, SpanQueue
from gateway.server.telemetry.spans import Spans
from gateway.server.telemetry.trace_context import Marks
from outbox.database.transaction import Database
from outbox.errors import CannotStart

CLOSE_SECONDS = 1.0
"""Time for the last spans at the end; what is left then is dropped."""


class Collector:
    """Makes spans and exports them, from `start` to `close`."""

    def __init__(self, exporter: Exporter, db: Database, marks: Marks, metrics: Metrics) -> None:
        self._queue = SpanQueue(exporter, metrics.spans)
        self.spans = Spans(db.clock, marks, self._queue.put, db.engine)

    def start(self) -> None:
        """Start to export."""
        self._queue.start()

    async def close(self) -> None:
        """Export the last spans, for CLOSE_SECONDS at most."""
        await asyncio.to_thread(self._queue.close, CLOSE_SECONDS)


def collector(
    config: Tracing, service: str, db: Database, marks: Marks, metrics: Metrics
) -> Collector | None:
    """Return the connection to the configured collector, None without one. Raise CannotStart."""
    if not config.endpoint:
        return None
    must_be_installed(config)
    headers = dict(header.split(":", 1) for header in config.headers)
    described = {
        "service.name": service,
        "service.version": program_version(),
        "service.instance.id": logs.node() or db.ids.new(db.clock.wall()),
    }
    return Collector(_exporter(config.endpoint, headers, described), db, marks, metrics)


def must_be_installed(config: Tracing) -> None:
    """Raise CannotStart when an endpoint is set and the extra packages are missing."""
    if not config.endpoint:
        return
    try:
        import gateway.server.telemetry.otlp  # noqa: F401
    except ImportError:
        raise CannotStart(
            "tracing.endpoint needs the packages of carteiro[tracing]; install them with "
            "pip install -r requirements-tracing.lock, or remove the setting"
        ) from None


def _exporter(url: str, headers: dict[str, str], service: dict[str, str]) -> Exporter:
    from gateway.server.telemetry.otlp import OtlpExporter

    clean = {name.strip(): value.strip() for name, value in headers.items()}
    return OtlpExporter(url, clean, service)
