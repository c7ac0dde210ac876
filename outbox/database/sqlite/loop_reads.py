"""Runs read units on the event loop, and leaves to the threads those that take more work.

A unit on a thread fights with the loop for the interpreter lock, statement by statement, and its
result wakes the loop; most are over sooner than that. What bounds a unit here are the steps of
SQLite's machine, and a time that it takes only while the disk is slow or another thread computes:
SQLite gives the lock back at each row.
"""

from __future__ import annotations

import asyncio
import sqlite3

from outbox.clock import Clock
from outbox.database.sqlite.file import File
from outbox.database.sqlite.threads import LONG_FOR_SECONDS, owner_of
from outbox.database.sqlite.unit_thread import Job, SqliteTx, TookTooLong
from outbox.ids import Ids

LOOK_STEPS = 500
"""Steps between two looks at what a unit takes, about 0.05 ms. SQLite counts them by statement,
over all its uses, so units have one for each so many steps on average."""
MOST_LOOKS = 20
"""A unit that takes more runs again on a thread, as do all of its owner for LONG_FOR_SECONDS.

A page of fifty records takes four to fifteen, one of a hundred up to thirty.
"""
HELD_SECONDS = 0.004
"""One that takes longer runs again, too. Undisturbed, twenty looks take less than 3 ms."""
REST_TIMES = 20
"""After a unit that took longer, all run on threads for so many times as long.

So they hold the loop for a twentieth of its time when their pages come from a slow disk.
"""


class LoopReads:
    """A connection that reads on the event loop, with a snapshot for each of its iterations."""

    def __init__(self, file: File, clock: Clock, ids: Ids) -> None:
        self._file = file
        self._clock = clock
        self._ids = ids
        self._loop = asyncio.get_running_loop()
        self._connection: sqlite3.Connection | None = None
        self._long: dict[str, float] = {}
        """Owners whose units took too much, and until when they are left to threads."""
        self._looks = 0
        self._latest = 0.0
        """Of the unit that runs, or ran last: its looks, and when it is to be over."""
        self._rest_until = 0.0

    def step(self, job: Job) -> float | None:
        """Run the unit of `job`, keep its result or error in it, and return the seconds it took.

        Return None to leave it to a thread, as also after a fault of SQLite: it may be that of the
        connection.
        """
        if job.began < self._rest_until or (self._long and self._is_long(job)):
            return None
        self._looks, self._latest = 0, job.began + HELD_SECONDS
        latest = self._latest, self._clock.monotonic
        try:
            connection = self._snapshot()
            job.step(SqliteTx(connection, self._ids, self._clock.wall(), latest=latest))
        except (sqlite3.Error, TookTooLong):
            if self._looks > MOST_LOOKS:
                self._leave(job)
            elif not self._is_late():
                self.close()
            return None
        except BaseException as error:  # noqa: BLE001 - passed to the caller, whatever it is
            job.error = error
        finally:
            took = self._clock.monotonic() - job.began
            if took > HELD_SECONDS:
                self._rest_until = job.began + took * REST_TIMES
        return took

    def close(self) -> None:
        """Close the connection; the next unit opens a new one."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _snapshot(self) -> sqlite3.Connection:
        """Return the connection with the snapshot of this iteration.

        Whoever knows of a later COMMIT reads in a later iteration: the news is a callback, too.
        """
        connection = self._connection
        if connection is None:
            connection = self._file.connect(writable=False)
            # It is for a thread to wait for a lock.
            connection.execute("pragma busy_timeout = 0")
            connection.set_progress_handler(self._look, LOOK_STEPS)
            self._connection = connection
        if not connection.in_transaction:
            connection.execute("begin")
            self._loop.call_soon(self._end_snapshot)
        return connection

    def _end_snapshot(self) -> None:
        connection = self._connection
        if connection is None or not connection.in_transaction:
            return
        try:
            connection.execute("rollback")
        except sqlite3.Error:
            # Else later iterations would read this snapshot.
            self.close()

    def _look(self) -> bool:
        """Count a look; return whether the unit takes too much, which interrupts it."""
        self._looks += 1
        return self._looks > MOST_LOOKS or self._is_late()

    def _is_late(self) -> bool:
        return self._clock.monotonic() > self._latest

    def _leave(self, job: Job) -> None:
        """Leave the units of the job's owner to threads for a while."""
        now = self._clock.monotonic()
        self._long = {owner: until for owner, until in self._long.items() if until > now}
        self._long[owner_of(job)] = now + LONG_FOR_SECONDS

    def _is_long(self, job: Job) -> bool:
        return self._long.get(owner_of(job), 0.0) > job.began
