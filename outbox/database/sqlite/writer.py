"""Runs write units in batches with a single COMMIT, on the connection that alone writes.

It is one module because only the holder of the connection may begin, end and repeat a batch.
"""

from __future__ import annotations

import os
import sqlite3
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from math import inf

from outbox.clock import Clock
from outbox.database.sqlite.file import BUSY_MILLISECONDS, LOG_BYTES, File
from outbox.database.sqlite.unit_thread import Batch, Job, SqliteTx, TookTooLong, fault_of
from outbox.errors import DatabaseFault, DatabaseUnavailable, OutcomeUnknown
from outbox.ids import Ids

BATCH_UNITS = 256
BATCH_SECONDS = 0.01
"""A batch ends after this time, or after the time of the last COMMIT if that took longer."""
EMPTYING_MILLISECONDS = 100
SLOW_SECONDS = 0.1
"""While a COMMIT takes longer, nothing is written back: the units behind it would wait for four
more flushes: of the log, the file, and the head and the end of a new log."""
MOST_LOG_BYTES = 64 * 1024 * 1024
"""A log of more than that is written back even so."""
LONG_SECONDS = 0.02
"""A unit that holds the loop for longer is left to the thread before its next statement."""


REFUSED: frozenset[DatabaseFault] = frozenset({"full", "busy"})
"""Faults of COMMIT after which nothing is committed: its last page did not reach the log."""


class Writer:
    """The connection that writes, and the batch that is open on it.

    The event loop and a thread hand this object to each other: only its holder may use it, and only
    its holder takes from `jobs`.
    """

    def __init__(
        self,
        file: File,
        clock: Clock,
        ids: Ids,
        jobs: deque[Job],
        finish: Callable[[list[Job]], None],
        tell: Callable[[], None],
    ) -> None:
        """`finish` answers jobs from the thread before the end of their batch.

        `tell` is called on the event loop when a unit has made work for the drain: what the drain
        then writes may join the batch.
        """
        self._file = file
        self._clock = clock
        self._ids = ids
        self._jobs = jobs
        self._finish = finish
        self._tell = tell
        # Beside a running server no other process may checkpoint.
        self._writes_back = file.serving
        self._log_path = file.log_path
        self._flush_seconds = 0.0
        self._latest = inf
        self._batch: Batch | None = None
        self._busy_milliseconds = BUSY_MILLISECONDS
        self._connection: sqlite3.Connection | None = file.connect()
        self.left_some = False
        """Set by the loop: units waited when it left the batch, and the thread adds them to it."""
        self.over = False
        """Set by the last holder but one: the thread closes the connection."""
        self.must_empty = False
        """Set by the loop: the log is to be emptied after the next COMMIT."""
        self.emptied = False
        """Whether the log was empty after the last try."""

    @property
    def has_batch(self) -> bool:
        """Whether `end` has a batch to end."""
        return self._batch is not None

    def step(self, now: float, until: float) -> bool:
        """Run brief units that wait, from `now` until `until`; return whether more may join them.

        Call this on the event loop: it waits for no lock and no flush. Whatever goes wrong is left
        to `end`.
        """
        if self._batch is None:
            self._batch = self._begin_at_once(now)
        self._latest = now + LONG_SECONDS
        try:
            return self._batch is not None and self._gather(self._batch, until)
        except sqlite3.Error:
            # The connection itself failed, during a unit; the thread finds that out again.
            return False

    def end(self) -> list[Job]:
        """End the open batch, or run one, with its COMMIT; return its jobs, which are done.

        Call this on a thread: it waits for locks and flushes.
        """
        batch, self._batch = self._batch, None
        self._latest = inf
        try:
            if batch is None:
                batch = self._new_batch(self._clock.monotonic())
                # Should the transaction not begin, this job gets the error.
                batch.done.append(self._jobs.popleft())
                connection = self._open()
                self._begin(connection)
                self._run(connection, batch.done[0], batch)
                self._gather(batch)
            elif self.left_some:
                self._gather(batch)
            self._end(self._open(), batch)
        except BaseException as error:  # noqa: BLE001 - the thread must outlive any fault
            assert batch is not None
            if _is_busy(error):
                # Those that wait would now wait as long again, and so would those behind them.
                batch.done.extend(self._jobs.popleft() for _ in range(len(self._jobs)))
            for unanswered in batch.done:
                unanswered.error = unanswered.error or fault_of(error)
            if not _is_busy(error):
                self.close()
        if self.must_empty:
            self.must_empty, self.emptied = False, self._empty_log()
        return batch.done

    @property
    def has_long_log(self) -> bool:
        """Whether the log is to be written back now."""
        if not self._writes_back:
            return False
        try:
            size = os.stat(self._log_path).st_size
        except OSError:
            # There is none before the first COMMIT.
            return False
        if size <= LOG_BYTES:
            return False
        return self._flush_seconds < SLOW_SECONDS or size > MOST_LOG_BYTES

    def write_back(self) -> None:
        """Write the log into the file as far as no reader needs it; the next COMMIT begins anew.

        Call this on a thread, after the jobs are answered. What fails is tried again later.
        """
        if self._connection is not None:
            with suppress(sqlite3.Error):
                self._connection.execute("pragma wal_checkpoint(passive)").fetchone()

    def _empty_log(self) -> bool:
        """Write the log into the file and cut it to nothing; return False while a reader needs it.

        Until the readers end, for EMPTYING_MILLISECONDS at most, nothing is written.
        """
        try:
            connection = self._open()
            self._wait_for_lock(connection, EMPTYING_MILLISECONDS)
            [busy, _, _] = connection.execute("pragma wal_checkpoint(truncate)").fetchone()
        except sqlite3.Error:
            return False
        return not busy

    def close(self) -> None:
        """Close the connection; the next batch opens a new one."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _new_batch(self, now: float) -> Batch:
        return Batch(now + max(BATCH_SECONDS, self._flush_seconds))

    def _begin_at_once(self, now: float) -> Batch | None:
        """Begin a batch if the next unit is brief; return None where that fails or must wait."""
        connection = self._connection
        if connection is None or not self._jobs or not self._jobs[0].brief:
            return None
        try:
            # Another process may write, such as a command beside a server.
            self._wait_for_lock(connection, 0)
            connection.execute("begin immediate")
        except sqlite3.Error:
            return None
        return self._new_batch(now)

    def _begin(self, connection: sqlite3.Connection) -> None:
        """Begin a transaction, up to BUSY_MILLISECONDS after another process has begun one."""
        self._wait_for_lock(connection, BUSY_MILLISECONDS)
        connection.execute("begin immediate")

    def _wait_for_lock(self, connection: sqlite3.Connection, milliseconds: int) -> None:
        if milliseconds != self._busy_milliseconds:
            connection.execute(f"pragma busy_timeout = {milliseconds}")
            self._busy_milliseconds = milliseconds

    def _gather(self, batch: Batch, until: float = inf) -> bool:
        """Run the units that wait, with `until` only brief ones; return whether more may join."""
        connection = self._open()
        while batch.sound and len(batch.done) < BATCH_UNITS:
            if not self._jobs:
                return True
            if until < inf and not self._jobs[0].brief:
                return False
            now = self._clock.monotonic()
            if batch.done and now >= batch.end:
                return False
            if now >= until:
                return True
            job = self._jobs.popleft()
            batch.done.append(job)
            self._run(connection, job, batch)
        return False

    def _run(self, connection: sqlite3.Connection, job: Job, batch: Batch) -> None:
        """Run `job` in `batch`, and note whether COMMIT may still follow.

        A savepoint per unit costs two statements each, and hardly any unit fails after a write.
        When one does, the batch is rolled back and runs again with savepoints.
        """
        # An interruption, such as by a signal, leaves it at that.
        batch.sound = False
        wrote = self._unit(connection, job, batch)
        harmless = not wrote and not isinstance(job.error, TookTooLong)
        batch.sound = (
            connection.in_transaction and not batch.failed and (job.error is None or harmless)
        )
        if job.wake and batch.sound and self._latest < inf:
            job.told = True
            self._tell()

    def _end(self, connection: sqlite3.Connection, batch: Batch) -> None:
        """Write the rows that were put off and COMMIT; run the batch again if it failed."""
        done = batch.done
        if batch.sound:
            try:
                batch.write(connection)
            except Exception:  # noqa: BLE001 - the unit that put the row off gets the error
                self._again(connection, done)
                return
            self._commit_all(connection, done)
        elif not connection.in_transaction and not batch.failed:
            # SQLite has ended the transaction itself; the last unit is the one that failed.
            self._finish([done.pop()])
            self._each_alone(done)
        else:
            self._again(connection, done)

    def _again(self, connection: sqlite3.Connection, done: list[Job]) -> None:
        """Run a batch once more, each unit with its own rows, because it failed together."""
        if not connection.in_transaction:
            self._each_alone(done)
            return
        connection.execute("rollback")
        self._with_savepoints(connection, done)

    def _with_savepoints(self, connection: sqlite3.Connection, done: list[Job]) -> None:
        """Run a batch again with savepoints, so that only the failing unit is undone."""
        self._begin(connection)
        for job in done:
            connection.execute("savepoint unit")
            self._unit(connection, job)
            if job.error is not None and connection.in_transaction:
                connection.execute("rollback to unit")
            if not connection.in_transaction:
                done.remove(job)
                self._finish([job])
                self._each_alone(done)
                return
            connection.execute("release unit")
        self._commit_all(connection, done)

    def _commit_all(self, connection: sqlite3.Connection, done: list[Job]) -> None:
        if self._commit(connection, done) and len(done) > 1:
            # One large unit may have filled the disk; each unit gets one more try by itself.
            self._each_alone(done)

    def _each_alone(self, jobs: list[Job]) -> None:
        """Run `jobs` once more, each in its own transaction, after a unit ended their transaction.

        Their results may depend on rolled-back rows, so all of them run again.
        """
        while jobs:
            job = jobs[0]
            try:
                connection = self._open()
                self._begin(connection)
                self._unit(connection, job)
                if connection.in_transaction and job.error is not None:
                    connection.execute("rollback")
                elif connection.in_transaction:
                    self._commit(connection, [job])
            except sqlite3.Error as error:
                if _is_busy(error):
                    # Each by itself would wait as long.
                    raise
                job.error = fault_of(error)
            self._finish([jobs.pop(0)])

    def _unit(self, connection: sqlite3.Connection, job: Job, batch: Batch | None = None) -> bool:
        """Step `job` and keep its error in it; return whether it may have written."""
        latest = None if self._latest == inf else (self._latest, self._clock.monotonic)
        tx = SqliteTx(connection, self._ids, self._clock.wall(), batch, latest)
        try:
            job.step(tx)
        except BaseException as error:  # noqa: BLE001 - passed to the caller, whatever it is
            job.error = fault_of(error)
        return tx.wrote

    def _commit(self, connection: sqlite3.Connection, jobs: list[Job]) -> bool:
        """COMMIT; when that fails, every successful unit gets the error.

        Return True when the disk was full and nothing is committed, so that a retry is safe. After
        a failed flush the transaction may already be in the log, where the next start finds it.
        """
        began = self._clock.monotonic()
        try:
            connection.execute("commit")
            self._flush_seconds = self._clock.monotonic() - began
        except sqlite3.Error as error:
            fault = fault_of(error)
            kind = fault.kind if isinstance(fault, DatabaseUnavailable) else None
            if kind is not None and kind not in REFUSED:
                fault = OutcomeUnknown(
                    kind, f"SQLite: {error}: it may have been written; look first"
                )
            for job in jobs:
                job.error = job.error or fault
            if kind in REFUSED:
                if connection.in_transaction:
                    connection.execute("rollback")
                return kind == "full"
            # After a failed fsync the state of the kernel's cache is unknown: reopen the file.
            self.close()
        return False

    def _open(self) -> sqlite3.Connection:
        if self._connection is None:
            self._connection = self._file.connect()
            self._busy_milliseconds = BUSY_MILLISECONDS
        return self._connection


def _is_busy(error: BaseException) -> bool:
    """Return whether a transaction did not begin, as another process had the lock for too long."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY
