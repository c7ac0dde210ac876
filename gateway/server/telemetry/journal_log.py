"""The journal of deliveries: bounded log lines, and spans when they are exported.

Failed attempts are always logged. Events and successful attempts are logged up to a number of lines
per second; the rest is counted, and one line a second states the count.
"""

import asyncio
from collections.abc import Sequence

from gateway.server.telemetry import logs
from gateway.server.telemetry.spans import Spans
from outbox.clock import Clock
from outbox.queue.drain.fanout import Announced
from outbox.queue.drain.rescue import Rescued
from outbox.queue.state.claimed_deliveries import Result
from outbox.worker.journal import attempt_fields, event_fields, event_of, rescued_fields

WINDOW_SECONDS = 1.0


class DeliveryJournal:
    """An outbox Journal for one process; `per_second` bounds the lines that report no failure."""

    def __init__(self, clock: Clock, per_second: int, spans: Spans | None = None) -> None:
        self._now = clock.monotonic
        self._per_second = per_second
        self._spans = spans
        self._event = logs.line_writer("fanned_out")
        self._attempt = logs.line_writer("attempt")
        self._unsent = logs.line_writer("unsent")
        self._omitted = {"fanned_out": 0, "attempt": 0}
        self._telling: asyncio.TimerHandle | None = None
        self._window = 0.0
        self._left = 0

    def fanned_out(self, events: Sequence[Announced]) -> None:
        if self._event is None:
            return
        for event in events:
            if self._may("fanned_out"):
                self._event(event_fields(event))

    def attempted(self, result: Result) -> None:
        outcome = result.outcome
        if self._spans is not None and outcome is not None:
            self._spans.attempt(result, outcome)
        put = self._attempt if event_of(result) == "attempt" else self._unsent
        if put is None:
            return
        if outcome is None or outcome.outcome != "success" or self._may("attempt"):
            put(attempt_fields(result))

    def rescued(self, deliveries: Sequence[Rescued]) -> None:
        for delivery in deliveries:
            logs.logger().warning("attempt_unrecorded", **rescued_fields(delivery))

    def close(self) -> None:
        """Log the count of the lines omitted last."""
        if self._telling is not None:
            self._telling.cancel()
            self._tell()

    def _may(self, name: str) -> bool:
        """Take a line of this second; count the line as omitted when there is none left."""
        now = self._now()
        if now - self._window >= WINDOW_SECONDS:
            self._window, self._left = now, self._per_second
        if self._left > 0:
            self._left -= 1
            return True
        self._omitted[name] += 1
        if self._telling is None:
            loop = asyncio.get_running_loop()
            self._telling = loop.call_later(WINDOW_SECONDS, self._tell)
        return False

    def _tell(self) -> None:
        self._telling = None
        omitted = {f"{name}_lines": count for name, count in self._omitted.items() if count}
        self._omitted = dict.fromkeys(self._omitted, 0)
        logs.logger().info("lines_omitted", setting="logging.deliveries_per_second", **omitted)
