"""Decides who writes: the event loop steps brief units, a thread runs all others and each COMMIT.

A unit on a thread fights with the event loop for the interpreter lock, statement by statement; a
brief one is over sooner than that. Neither waits for a flush or for another process on the loop.
"""

from __future__ import annotations

import asyncio
import queue
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from outbox.clock import Clock
from outbox.database.sqlite.file import File
from outbox.database.sqlite.threads import started
from outbox.database.sqlite.unit_thread import Job
from outbox.database.sqlite.writer import LONG_SECONDS, Writer
from outbox.ids import Ids

QUIET_TURNS = 4
"""A batch ends when so many iterations of the loop in a row have brought no unit.

It takes a few from a request's bytes to its unit; each is over in microseconds.
"""
SLICE_SECONDS = 0.005
"""The loop steps units for so long, then other callbacks have their turn."""
REST_TIMES = 200
"""After a slice longer than LONG_SECONDS, run units on the thread for so many times its length.

So units take half a percent of the loop's time when their pages come from a slow disk.
"""


class WriteQueue:
    """The queue of write units. One writer goes back and forth between the loop and the thread."""

    def __init__(
        self,
        file: File,
        clock: Clock,
        ids: Ids,
        answer: Callable[[list[Job]], None],
        tell: Callable[[], None],
    ) -> None:
        """`answer` completes jobs, and `tell` announces work that is not committed yet.

        Both run on the event loop.
        """
        self._clock = clock
        self._answer = answer
        self._loop = asyncio.get_running_loop()
        self._jobs: deque[Job] = deque()
        self._shared = Writer(file, clock, ids, self._jobs, self._finish, tell)
        self._writer: Writer | None = self._shared
        """None while the thread has it."""
        self._handed: queue.SimpleQueue[Writer] = queue.SimpleQueue()
        self._called = False
        self._closing = False
        self._quiet = 0
        self.scans = 0
        """How many scans run; meanwhile no unit runs on the event loop."""
        self._rest_until = 0.0
        self._thread = started(self._serve)

    def put(self, job: Job) -> None:
        """Accept `job`; units that come in one iteration of the loop share a batch."""
        self._jobs.append(job)
        self._call_soon()

    def empty_log(self) -> None:
        """Let the thread empty the log when it ends the next batch; see `emptied`."""
        self._shared.must_empty = True

    @property
    def emptied(self) -> bool:
        """Whether the log was empty after the last try."""
        return self._shared.emptied

    @contextmanager
    def beside_scan(self) -> Iterator[None]:
        """Let the thread run all units during the block, while a scan runs.

        The scan's thread takes the interpreter lock at each row, so that the loop would have to win
        it back at each statement of a unit.
        """
        self.scans += 1
        try:
            yield
        finally:
            self.scans -= 1

    async def close(self) -> None:
        """Finish the accepted jobs, then close the connection."""
        self._closing = True
        self._call_soon()
        await asyncio.to_thread(self._thread.join)

    def _call_soon(self) -> None:
        if self._writer is not None and not self._called:
            self._called = True
            self._loop.call_soon(self._turn)

    def _turn(self) -> None:
        """Step the brief units that wait first; hand the writer over when their batch is full."""
        self._called = False
        writer = self._writer
        if writer is None:
            return
        if not self._jobs:
            if not writer.has_batch:
                if self._closing:
                    writer.over = True
                    self._hand_over(writer)
                return
            self._quiet += 1
            if self._quiet < QUIET_TURNS and not self.scans:
                self._call_soon()
            else:
                self._hand_over(writer)
            return
        self._quiet = 0
        more = False
        try:
            more = self._step(writer)
        finally:
            if more:
                self._call_soon()
            else:
                self._hand_over(writer)

    def _step(self, writer: Writer) -> bool:
        """Run one slice; return whether its batch goes on."""
        began = self._clock.monotonic()
        if self.scans or began < self._rest_until:
            return False
        more = writer.step(began, began + SLICE_SECONDS)
        took = self._clock.monotonic() - began
        if took > LONG_SECONDS:
            self._rest_until = began + took * REST_TIMES
            return False
        return more

    def _hand_over(self, writer: Writer) -> None:
        self._writer = None
        self._quiet = 0
        writer.left_some = bool(self._jobs)
        self._handed.put(writer)

    def _serve(self) -> None:
        """Run on the thread: end each batch that is handed over, and hand the writer back."""
        while not (writer := self._handed.get()).over:
            done = writer.end()
            if writer.has_long_log:
                self._finish(done)
                writer.write_back()
                done = []
            self._loop.call_soon_threadsafe(self._take_back, writer, done)
        writer.close()

    def _take_back(self, writer: Writer, done: list[Job]) -> None:
        self._writer = writer
        try:
            self._answer(done)
        finally:
            # After the callers resume, so that what they write next is in the next batch.
            if self._jobs or self._closing:
                self._call_soon()

    def _finish(self, jobs: list[Job]) -> None:
        """Complete `jobs` from the thread while it keeps the writer."""
        self._loop.call_soon_threadsafe(self._answer, jobs)
