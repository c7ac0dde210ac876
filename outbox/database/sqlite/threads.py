"""The threads that read and their queue; outbox.database.sqlite.write_queue has the writing one.

Owners take turns, and one whose reads are long leaves a thread to others. Threads communicate with
the event loop through queues and one wake-up per batch.
"""

from __future__ import annotations

import queue
import sqlite3
import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Literal

from outbox.clock import Clock
from outbox.database.sqlite.file import File
from outbox.database.sqlite.unit_thread import Job, SqliteTx, fault_of
from outbox.database.transaction import DUTIES, patience
from outbox.ids import Ids

LOOK_STEPS = 10_000
"""SQLite machine steps between checks whether a scan is still wanted: about 1 ms."""

# Threads call this with finished jobs.
Finish = Callable[[Literal["read", "write"], list[Job]], None]


class Reader:
    """A thread that runs read units; waiting units share a snapshot."""

    def __init__(self, file: File, clock: Clock, ids: Ids, jobs: ReadQueue, finish: Finish) -> None:
        self._file = file
        self._clock = clock
        self._ids = ids
        self._jobs = jobs
        self._finish = finish
        self._connection: sqlite3.Connection | None = None

    def run(self) -> None:
        """Run until the queue ends this thread."""
        while batch := self._jobs.take():
            ended = len(batch)
            try:
                ended = self._read(batch)
            except BaseException as error:  # noqa: BLE001 - the thread must outlive any fault
                for job in batch:
                    job.error = job.error or fault_of(error)
                self._drop()
            self._jobs.give_back(batch, batch[ended:])
            self._finish("read", batch[:ended])
        self._drop()

    def _drop(self) -> None:
        """Close the connection; the next batch opens a new one."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _connect(self) -> sqlite3.Connection:
        return self._file.connect(writable=False)

    def _read(self, batch: list[Job]) -> int:
        """Run the batch on one snapshot, taken after the last job arrived, but not for long.

        Return how many of its jobs have run.
        """
        if self._connection is None:
            self._connection = self._connect()
        connection = self._connection
        connection.execute("begin")
        began = then = self._clock.monotonic()
        ended = 0
        for job in batch:
            try:
                job.step(SqliteTx(connection, self._ids, self._clock.wall()))
            except BaseException as error:  # noqa: BLE001 - passed to the caller, whatever it is
                job.error = fault_of(error)
            ended += 1
            now = self._clock.monotonic()
            if now - began > LONG_SECONDS:
                self._jobs.took(job, now - then)
                break
            then = now
        try:
            connection.execute("rollback")
        except sqlite3.Error:
            # The results are valid; SQLite has ended the transaction itself.
            self._drop()
        return ended


class Scanner(Reader):
    """A thread that runs long reads one by one, while their callers wait.

    The check runs inside the statement: an interrupt from outside could hit the next unit.
    """

    _wanted: Job | None = None

    def _connect(self) -> sqlite3.Connection:
        connection = super()._connect()
        connection.set_progress_handler(self._unwanted, LOOK_STEPS)
        return connection

    def _read(self, batch: list[Job]) -> int:
        [self._wanted] = batch
        return super()._read(batch)

    def _unwanted(self) -> bool:
        return self._wanted is not None and self._wanted.abandoned


class Readers:
    """Threads of one kind and their shared queue; a thread starts when a job finds none idle.

    Most commands read once or not at all, and each connection must read the whole schema.
    """

    def __init__(
        self, kind: type[Reader], most: int, file: File, clock: Clock, ids: Ids, finish: Finish
    ) -> None:
        scans = kind is Scanner
        self._jobs = ReadQueue(clock, 1 if scans else TOGETHER, scans=scans)
        self._idle = threading.Semaphore(0)
        self._most = most
        self._threads: list[threading.Thread] = []
        self._finish = finish
        self._reader = partial(kind, file, clock, ids, self._jobs, self._done)

    def put(self, job: Job) -> None:
        """Pass `job` to a thread; call this on the event loop."""
        if len(self._threads) < self._most and not self._idle.acquire(blocking=False):
            self._threads.append(started(self._reader().run))
        self._jobs.put(job)

    def close(self) -> None:
        """Wait until the threads have finished all jobs and ended."""
        for _ in self._threads:
            self._jobs.end()
        for thread in self._threads:
            thread.join()

    def _done(self, op: Literal["read", "write"], jobs: list[Job]) -> None:
        if len(self._threads) < self._most:
            # A batch of several jobs frees one thread, so this may count too few, never too many.
            self._idle.release()
        self._finish(op, jobs)


def started(work: Callable[[], None]) -> threading.Thread:
    """Start a thread that does `work`, and return it."""
    thread = threading.Thread(target=work, name="sqlite", daemon=True)
    thread.start()
    return thread


TOGETHER = 32
"""Reads that share a snapshot."""
LONG_SECONDS = 0.02
"""After so long a batch ends, and what waits in it goes back to its turn."""
LONG_FOR_SECONDS = 1.0
"""For so long after a longer read its owner reads on one thread alone, one read at a time."""


class ReadQueue:
    """Reads by owner. The loop puts them; threads take batches, one read of each owner a round."""

    def __init__(self, clock: Clock, together: int = TOGETHER, *, scans: bool = False) -> None:
        """With `scans`, which are long and have places of each owner, nobody reads alone."""
        self._clock = clock
        self._together = together
        self._scans = scans
        self._lock = threading.Lock()
        # One call for each job or more; False ends a thread.
        self._calls: queue.SimpleQueue[bool] = queue.SimpleQueue()
        self._lines: OrderedDict[str, deque[Job]] = OrderedDict()
        self._long: dict[str, float] = {}
        """Owners whose reads are long, and until when."""
        self._ends = False
        self._alone: set[str] = set()
        """Those of them that a thread reads for."""

    def put(self, job: Job) -> None:
        """Add a job; call this on the event loop."""
        job.owner = owner = owner_of(job)
        with self._lock:
            line = self._lines.get(owner)
            if line is None:
                self._lines[owner] = line = deque()
            line.append(job)
        self._calls.put(True)

    def end(self) -> None:
        """End one thread, once it finds no job."""
        self._calls.put(False)

    def take(self) -> list[Job]:
        """Return the next batch, in its turn; nothing when the thread is to end."""
        while True:
            wanted = self._calls.get()
            with self._lock:
                self._ends = self._ends or not wanted
                batch = self._batch()
            if not wanted and batch:
                self.end()
            if batch or not wanted:
                return batch

    def took(self, job: Job, seconds: float) -> None:
        """Note how long a job took."""
        if seconds > LONG_SECONDS and not self._scans:
            with self._lock:
                self._long[job.owner] = self._clock.monotonic() + LONG_FOR_SECONDS

    def give_back(self, taken: Sequence[Job], rest: Sequence[Job]) -> None:
        """End a batch: `rest` of it goes back before what waits of the same owners."""
        with self._lock:
            for job in reversed(rest):
                self._lines.setdefault(job.owner, deque()).appendleft(job)
            if self._alone:
                self._alone.difference_update(job.owner for job in taken)
            waits = bool(self._lines)
        if waits:
            self._calls.put(True)

    def _batch(self) -> list[Job]:
        lines, batch = self._lines, list[Job]()
        if self._long:
            now = self._clock.monotonic()
            self._long = {owner: until for owner, until in self._long.items() if until > now}
        while lines and len(batch) < self._together:
            before = len(batch)
            for owner in list(lines)[: self._together - before]:
                if owner in self._long and not self._ends:
                    if owner in self._alone or batch:
                        continue
                    self._alone.add(owner)
                line = lines[owner]
                batch.append(line.popleft())
                # Whoever has had a turn goes to the end.
                del lines[owner]
                if line:
                    lines[owner] = line
                if owner in self._alone:
                    return batch
            if len(batch) == before:
                break
        return batch


def owner_of(job: Job) -> str:
    current = job.context.get(patience)
    return DUTIES if current is None else current.owner
