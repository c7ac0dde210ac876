"""One timer for all sends in flight, since a timer for each costs more than parsing its answer."""

import asyncio
from typing import Any, Protocol

from outbox.clock import Clock

TICK_SECONDS = 0.05
"""How late a deadline may strike."""


class Limited(Protocol):
    """What runs against a deadline."""

    ends: float
    """Seconds on the monotonic clock; may be changed on the way."""
    late: bool
    """Set when the deadline struck and the task was cancelled for it."""


class Deadlines:
    """Cancels tasks whose time is over. The task itself takes the cancellation back."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._running: dict[asyncio.Task[Any], Limited] = {}
        self._timer: asyncio.TimerHandle | None = None

    def watch(self, task: asyncio.Task[Any], limited: Limited) -> None:
        """From now on `task` is cancelled once `limited.ends` is past."""
        self._running[task] = limited
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(TICK_SECONDS, self._sweep)

    def forget(self, task: asyncio.Task[Any]) -> None:
        """`task` is through with what was limited."""
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
