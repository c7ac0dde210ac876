"""Queues spans for the collector at `[tracing] endpoint`, and exports them in a thread.

No request waits for the collector. When it is slow or away, the queue fills, and further spans are
dropped and counted. OpenTelemetry is imported only when an endpoint is set.

OpenTelemetry's BatchSpanProcessor does not try a failed batch again, does not tell how many spans
it drops, and may hold the end of the process for half a minute. A span costs 4.9 times as
much on the event loop there, and 1.7 times in the process.
"""

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Protocol

from gateway.server.config import Tracing
from gateway.server.program import program_version
from gateway.server.telemetry import logs
from gateway.server.telemetry.metrics import Metrics
from gateway.server.telemetry.spans import Span, Spans
from gateway.server.telemetry.trace_context import Marks
from outbox.database.transaction import Database
from outbox.errors import CannotStart

MOST_WAITING = 8_192
BATCH = 256
INTERVAL_SECONDS = 1.0
LONGEST_PAUSE_SECONDS = 30.0
TRIES = 5


class Exporter(Protocol):
    """Sends spans to a collector; called in the thread of the queue."""

    def export(self, spans: Sequence[Span]) -> str | None:
        """Send the spans; return None, or why the collector did not take them."""

    def close(self) -> None:
        """End an export under way, if it waits; called from another thread."""


class SpanQueue:
    """Spans on their way to an exporter, from `start` to `close`.

    After a failure it waits `pause` seconds, then twice as long each time. `count` gets a result
    ("exported" or "dropped") and a number of spans; it runs in any thread.
    """

    def __init__(
        self,
        exporter: Exporter,
        count: Callable[[str, int], None],
        most: int = MOST_WAITING,
        pause: float = INTERVAL_SECONDS,
    ) -> None:
        self._exporter = exporter
        self._count = count
        self._most = most
        self._pause = pause
        self._waiting: deque[Span] = deque()
        self._closing = threading.Event()
        self._ready = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Start to export."""
        # A daemon, because a collector that hangs must not hold the end of the process.
        self._thread = threading.Thread(target=self._run, name="spans", daemon=True)
        self._thread.start()

    def put(self, span: Span) -> None:
        """Take a span, or drop it when too many wait. Never blocks."""
        if len(self._waiting) >= self._most or self._closing.is_set():
            self._count("dropped", 1)
            return
        self._waiting.append(span)
        if len(self._waiting) == BATCH:
            self._ready.set()

    def close(self, seconds: float) -> None:
        """Export what waits within `seconds`, and drop the rest. Blocks: call it in a thread."""
        self._closing.set()
        self._ready.set()
        if self._thread is not None:
            self._thread.join(seconds)
        self._exporter.close()
        unsent = len(self._take(self._most))
        if unsent:
            self._count("dropped", unsent)

    def _run(self) -> None:
        batch: list[Span] = []
        failures = 0
        while True:
            if failures:
                longer = self._pause * 2.0 ** min(failures - 1, 10)
                if self._closing.wait(min(longer, LONGEST_PAUSE_SECONDS)):
                    break
            elif len(self._waiting) < BATCH and not self._closing.is_set():
                self._ready.wait(INTERVAL_SECONDS)
                self._ready.clear()
            batch = batch or self._take(BATCH)
            if not batch:
                if self._closing.is_set():
                    return
                continue
            error = self._export(batch)
            if error is None:
                if failures:
                    logs.logger().info("traces_exported_again")
                self._count("exported", len(batch))
                batch, failures = [], 0
                continue
            if not failures:
                logs.logger().warning("traces_not_exported", error=error)
            failures += 1
            if failures % TRIES == 0:
                # The collector may refuse this one for ever, so it makes room for others.
                self._count("dropped", len(batch))
                batch = []
        self._count("dropped", len(batch))

    def _export(self, batch: Sequence[Span]) -> str | None:
        try:
            return self._exporter.export(batch)
        except Exception as error:  # noqa: BLE001 - no fault of an exporter may end the thread
            return repr(error)

    def _take(self, most: int) -> list[Span]:
        batch: list[Span] = []
        while len(batch) < most:
            try:
                batch.append(self._waiting.popleft())
            except IndexError:
                break
        return batch


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
