"""Run periodic duties: each is a function that runs once, and APScheduler repeats it.

The drain does not depend on this: it polls and rescues in its own loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

import structlog
from apscheduler.schedulers.asyncio import AsyncIOScheduler

from outbox.clock import Clock
from outbox.durations import SECOND
from outbox.errors import DatabaseUnavailable

log = structlog.get_logger("outbox")

Duty = Callable[[], Awaitable[object]]
WATCH_SECONDS = 5.0
JUMP_MICROSECONDS = 5 * SECOND


class Scheduler:
    """Runs duties at intervals on the event loop; a duty never overlaps itself."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._jobs = AsyncIOScheduler(timezone=UTC)
        self._offset = self._apart()
        self._watch: asyncio.Task[None] | None = None

    def every(self, seconds: float, name: str, duty: Duty) -> None:
        """Run `duty` every `seconds` (at least 0.5), the first time after one interval."""
        self._jobs.add_job(
            self._run,
            "interval",
            args=(name, duty),
            seconds=seconds,
            id=name,
            coalesce=True,
            max_instances=1,
            misfire_grace_time=None,
        )

    def start(self) -> None:
        self._jobs.start()
        self._watch = asyncio.create_task(self._watch_clock(), name="clock-watch")

    def stop(self) -> None:
        if self._watch is not None:
            self._watch.cancel()
        if self._jobs.running:
            self._jobs.shutdown(wait=False)

    def next_runs(self) -> dict[str, datetime]:
        """Return the time of each duty's next run, on the wall clock."""
        return {job.id: job.next_run_time for job in self._jobs.get_jobs()}

    def follow_clock(self) -> None:
        """Recompute the next runs after a jump of the wall clock.

        The jobs wait for wall times: after a jump back they would not run until the clock caught
        up.
        """
        apart = self._apart()
        if abs(apart - self._offset) < JUMP_MICROSECONDS:
            return
        log.warning("clock_jumped", seconds=round((apart - self._offset) / SECOND, 1))
        self._offset = apart
        now = datetime.fromtimestamp(self._clock.wall() / SECOND, UTC)
        for job in self._jobs.get_jobs():
            job.modify(next_run_time=now + job.trigger.interval)

    async def _watch_clock(self) -> None:
        # The loop's own waits are monotonic, so this one continues whatever the wall clock does.
        while True:
            await asyncio.sleep(WATCH_SECONDS)
            self.follow_clock()

    def _apart(self) -> int:
        return self._clock.wall() - self._clock.boot()

    async def _run(self, name: str, duty: Duty) -> None:
        try:
            await duty()
        except DatabaseUnavailable as error:
            log.warning("duty_put_off", duty=name, error=str(error))
        except Exception:
            log.exception("duty_failed", duty=name)
