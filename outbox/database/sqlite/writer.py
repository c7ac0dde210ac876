"""The thread that writes: it gathers units into batches with a single COMMIT."""

from __future__ import annotations

import sqlite3

from outbox.clock import Clock
from outbox.database.sqlite.file import File
from outbox.database.sqlite.steps import Batch, Job, SqliteTx, fault_of
from outbox.database.sqlite.threads import Finish, Jobs
from outbox.errors import DatabaseUnavailable
from outbox.ids import Ids

BATCH_UNITS = 256
BATCH_SECONDS = 0.01
"""A batch ends after this time, or after the time of the last COMMIT if that took longer."""


class Writer:
    """The thread that runs all writes, gathered into batches with one COMMIT."""

    def __init__(self, file: File, clock: Clock, ids: Ids, jobs: Jobs, finish: Finish) -> None:
        self._file = file
        self._clock = clock
        self._ids = ids
        self._jobs = jobs
        self._finish = finish
        self._flush_seconds = 0.0
        self._connection: sqlite3.Connection | None = file.connect()

    def run(self) -> None:
        """Run until `close` puts None."""
        while (job := self._jobs.get()) is not None:
            batch = [job]
            try:
                self._batch(batch)
            except BaseException as error:  # noqa: BLE001 - the thread must outlive any fault
                for unanswered in batch:
                    unanswered.error = unanswered.error or fault_of(error)
                self._drop()
                self._finish("write", batch)
        self._drop()

    def _batch(self, done: list[Job]) -> None:
        """Run the job in `done` and the jobs that wait behind it, and append these to `done`.

        A savepoint per unit costs two statements each, and hardly any unit fails after a write.
        When one does, the batch is rolled back and runs again with savepoints.
        """
        began = self._clock.monotonic()
        connection = self._open()
        connection.execute("begin immediate")
        batch = Batch()
        job: Job | None = done[0]
        while job is not None:
            wrote = self._unit(connection, job, batch)
            if batch.failed:
                self._again(connection, done)
                return
            if not connection.in_transaction:
                # SQLite has ended the transaction itself; this is the unit that failed.
                self._finish("write", [done.pop()])
                self._each_alone(done)
                return
            if wrote and job.error is not None:
                connection.execute("rollback")
                self._with_savepoints(connection, done)
                return
            job = self._next(len(done), self._clock.monotonic() - began)
            if job is not None:
                done.append(job)
        try:
            batch.write(connection)
        except Exception:  # noqa: BLE001 - the unit that put the row off gets the error
            self._again(connection, done)
            return
        self._end(connection, done)

    def _again(self, connection: sqlite3.Connection, done: list[Job]) -> None:
        """Run a batch once more, each unit with its own rows, because those of all units failed."""
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
                self._finish("write", [job])
                self._each_alone(done)
                return
            connection.execute("release unit")
        self._end(connection, done)

    def _end(self, connection: sqlite3.Connection, done: list[Job]) -> None:
        """COMMIT and complete the jobs."""
        if self._commit(connection, done) and len(done) > 1:
            # One large unit may have filled the disk; each unit gets one more try by itself.
            self._each_alone(done)
            return
        self._finish("write", done)

    def _next(self, count: int, seconds: float) -> Job | None:
        most = max(BATCH_SECONDS, self._flush_seconds)
        if count >= BATCH_UNITS or seconds >= most or self._jobs.empty():
            return None
        job = self._jobs.get_nowait()
        if job is None:
            self._jobs.put(None)
        return job

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
                job.error = fault_of(error)
            self._finish("write", [jobs.pop(0)])

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

        Return True when the disk was full and nothing is committed, so that a retry is safe.
        """
        began = self._clock.monotonic()
        try:
            connection.execute("commit")
            self._flush_seconds = self._clock.monotonic() - began
        except sqlite3.Error as error:
            fault = fault_of(error)
            for job in jobs:
                job.error = job.error or fault
            kind = fault.kind if isinstance(fault, DatabaseUnavailable) else None
            if kind == "full":
                if connection.in_transaction:
                    connection.execute("rollback")
                return True
            # After a failed fsync the state of the kernel's cache is unknown: reopen the file.
            self._drop()
        return False

    def _drop(self) -> None:
        """Close the connection; the next batch opens a new one."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _open(self) -> sqlite3.Connection:
        if self._connection is None:
            self._connection = self._file.connect()
        return self._connection
