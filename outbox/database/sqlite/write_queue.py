"""Gathers write units on the event loop, and hands them to the one thread that runs them.

The loop and a thread that runs units fight for the interpreter lock, statement by statement. So the
thread waits until the loop has brought the units of all requests that it can read at the moment.
"""

from __future__ import annotations

import asyncio
import queue
from collections import deque
from collections.abc import Callable

from outbox.clock import Clock
from outbox.database.sqlite.file import File
from outbox.database.sqlite.steps import Job
from outbox.database.sqlite.threads import started
from outbox.database.sqlite.writer import BATCH_SECONDS, Writer
from outbox.ids import Ids

QUIET_TURNS = 4
"""The thread begins when so many iterations of the loop in a row have brought no unit.

It takes a few from a request's bytes to its unit; each is over in microseconds.
"""


class WriteQueue:
    """The queue of write units, and the thread that runs them."""

    def __init__(
        self, file: File, clock: Clock, ids: Ids, answer: Callable[[list[Job]], None]
    ) -> None:
        """`answer` completes jobs, on the event loop."""
        self._clock = clock
        self._answer = answer
        self._loop = asyncio.get_running_loop()
        self._jobs: deque[Job] = deque()
        self._writer = Writer(file, clock, ids, self._jobs, self._finish)
        self._calls: queue.SimpleQueue[bool] = queue.SimpleQueue()
        """True: run a batch. False: end."""
        self._busy = False
        """Whether units are gathered or run."""
        self._quiet = 0
        self._gather_until = 0.0
        self._closing = False
        self._thread = started(self._run)

    def put(self, job: Job) -> None:
        """Accept `job`; units run in the order of their calls."""
        self._jobs.append(job)
        self._quiet = 0
        self._gather()

    async def close(self) -> None:
        """Finish the accepted jobs, then close the connection."""
        self._closing = True
        self._gather()
        await asyncio.to_thread(self._thread.join)

    def _gather(self) -> None:
        if not self._busy:
            self._busy = True
            self._gather_until = self._clock.monotonic() + BATCH_SECONDS
            self._loop.call_soon(self._turn)

    def _turn(self) -> None:
        """Call the thread when no more units come, or when it is time."""
        if self._quiet < QUIET_TURNS and self._clock.monotonic() < self._gather_until:
            self._quiet += 1
            self._loop.call_soon(self._turn)
        else:
            self._calls.put(bool(self._jobs))

    def _run(self) -> None:
        """Run on the thread: run a batch at each call."""
        while self._calls.get():
            done = self._writer.run_batch()
            self._loop.call_soon_threadsafe(self._take_back, done)
        self._writer.close()

    def _take_back(self, done: list[Job]) -> None:
        self._busy = False
        try:
            self._answer(done)
        finally:
            # After the callers resume, so that what they write next is in the next batch.
            if self._jobs or self._closing:
                self._gather()

    def _finish(self, jobs: list[Job]) -> None:
        """Complete `jobs` from the thread before the end of their batch."""
        self._loop.call_soon_threadsafe(self._answer, jobs)
