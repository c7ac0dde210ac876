"""One timer for all sends in flight: a timer for each would cost more than parsing its response."""

import asyncio
from typing import Any, Protocol

from outbox.clock import Clock

TICK_SECONDS = 0.05
"""Maximum delay of a deadline, in seconds."""


class Limited(Protocol):
    """A piece of work with a deadline."""

    ends: float
    """Seconds on the monotonic clock; may change during the work."""
    late: bool
    """Set when the deadline passed and the task was cancelled because of it."""


class Deadlines:
    """Cancels tasks at their deadlines. The task itself clears the cancellation."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._running: dict[asyncio.Task[Any], Limited] = {}
        self._timer: asyncio.TimerHandle | None = None

    def watch(self, task: asyncio.Task[Any], limited: Limited) -> None:
        """Cancel `task` once `limited.ends` is past."""
        self._running[task] = limited
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(TICK_SECONDS, self._sweep)

    def forget(self, task: asyncio.Task[Any]) -> None:
        """Stop watching `task`."""
        del self._running[task]

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _sweep(self) -> None:
        self._timer = None
        now = self._clock.monotonic()
        for task, limited in self._running.items():
            if limited.ends <= now and not limited.late:
                limited.late = True
                task.cancel()
        if self._running:
            self._timer = asyncio.get_running_loop().call_later(TICK_SECONDS, self._sweep)
