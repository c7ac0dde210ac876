"""Runs write units in batches with a single COMMIT, on the connection that alone writes."""

from __future__ import annotations

import sqlite3
from collections import deque
from collections.abc import Callable

from outbox.clock import Clock
from outbox.database.sqlite.file import File
from outbox.database.sqlite.steps import Batch, Job, SqliteTx, fault_of
from outbox.errors import DatabaseFault, DatabaseUnavailable, OutcomeUnknown
from outbox.ids import Ids

BATCH_UNITS = 256
BATCH_SECONDS = 0.01
"""A batch ends after this time, or after the time of the last COMMIT if that took longer."""

REFUSED: frozenset[DatabaseFault] = frozenset({"full", "busy"})
"""Faults of COMMIT after which nothing is committed: its last page did not reach the log."""


class Writer:
    """The one connection that writes. A thread calls its methods."""

    def __init__(
        self,
        file: File,
        clock: Clock,
        ids: Ids,
        jobs: deque[Job],
        finish: Callable[[list[Job]], None],
    ) -> None:
        """Take units from `jobs`; `finish` answers jobs before the end of their batch."""
        self._file = file
        self._clock = clock
        self._ids = ids
        self._jobs = jobs
        self._finish = finish
        self._flush_seconds = 0.0
        self._connection: sqlite3.Connection | None = file.connect()

    def run_batch(self) -> list[Job]:
        """Run the units that wait, with one COMMIT; return their jobs, which are done."""
        # Should the transaction not begin, this job gets the error.
        batch = Batch(self._jobs.popleft())
        try:
            self._write(batch)
        except BaseException as error:  # noqa: BLE001 - the thread must outlive any fault
            if _is_busy(error):
                # Those that wait would now wait as long again, and so would those behind them.
                batch.done.extend(self._jobs.popleft() for _ in range(len(self._jobs)))
            else:
                self.close()
            for unanswered in batch.done:
                unanswered.error = unanswered.error or fault_of(error)
        return batch.done

    def close(self) -> None:
        """Close the connection; the next batch opens a new one."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _write(self, batch: Batch) -> None:
        """Run the job of `batch` and the jobs that wait behind it, and COMMIT."""
        end = self._clock.monotonic() + max(BATCH_SECONDS, self._flush_seconds)
        connection = self._open()
        connection.execute("begin immediate")
        self._step(connection, batch.done[0], batch)
        while (
            batch.sound and self._jobs and len(batch.done) < BATCH_UNITS
            and self._clock.monotonic() < end
        ):  # fmt: skip
            batch.done.append(self._jobs.popleft())
            self._step(connection, batch.done[-1], batch)
        self._end(connection, batch)

    def _step(self, connection: sqlite3.Connection, job: Job, batch: Batch) -> None:
        """Run `job` in `batch`, and note whether COMMIT may still follow.

        A savepoint per unit costs two statements each, and hardly any unit fails after a write.
        When one does, the batch is rolled back and runs again with savepoints.
        """
        wrote = self._unit(connection, job, batch)
        batch.sound = (
            connection.in_transaction and not batch.failed and (job.error is None or not wrote)
        )

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
        connection.execute("begin immediate")
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
                connection.execute("begin immediate")
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
        tx = SqliteTx(connection, self._ids, self._clock.wall(), batch)
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
        return self._connection


def _is_busy(error: BaseException) -> bool:
    """Return whether a transaction did not begin, as another process had the lock for too long."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY
