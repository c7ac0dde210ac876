"""The queue of reads: owners take turns, and one whose reads are long leaves a thread to others."""

from __future__ import annotations

import queue
import threading
from collections import OrderedDict, deque
from collections.abc import Sequence

from outbox.clock import Clock
from outbox.database.sqlite.unit_thread import Job
from outbox.database.transaction import DUTIES, patience

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
