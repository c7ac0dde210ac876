"""The SQLite driver: one thread writes, two threads read, and each steps units to their end.

Nothing else writes to or checkpoints the file while a server runs: SQLite before 3.51.3 can
corrupt a WAL when two connections write and checkpoint at once.
"""

from __future__ import annotations

import asyncio
import contextvars
import fcntl
import os
import queue
import sqlite3
import threading
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import IO, Any, Concatenate, Literal

from outbox.clock import Clock
from outbox.database import P, Row, T, Tx
from outbox.dialect import translate
from outbox.errors import CannotStart, DatabaseFault, DatabaseUnavailable, UnitError
from outbox.events import INSERT
from outbox.ids import Ids
from outbox.observer import DatabaseObserver, Unwatched

VERSION = sqlite3.sqlite_version
"""Of the SQLite library, for metrics and the curious."""
BATCH_UNITS = 256
BATCH_SECONDS = 0.005
BUSY_MILLISECONDS = 5000
READERS = 2
SCANNERS = 1

# Primary result codes of sqlite.org/rescode.html, as the closed list of outbox.errors.
_FAULTS: dict[int, DatabaseFault] = {
    sqlite3.SQLITE_BUSY: "busy",
    sqlite3.SQLITE_LOCKED: "busy",
    sqlite3.SQLITE_FULL: "full",
    sqlite3.SQLITE_NOMEM: "io",
    sqlite3.SQLITE_INTERRUPT: "io",
    sqlite3.SQLITE_IOERR: "io",
    sqlite3.SQLITE_CANTOPEN: "io",
    sqlite3.SQLITE_READONLY: "io",
    sqlite3.SQLITE_CORRUPT: "corrupt",
    sqlite3.SQLITE_NOTADB: "corrupt",
}


def _fault(error: BaseException) -> BaseException:
    """What the caller gets for `error`: engine troubles by name, everything else as it is."""
    if isinstance(error, sqlite3.Error):
        kind = _FAULTS.get(getattr(error, "sqlite_errorcode", 0) & 0xFF)
        if kind is not None:
            return DatabaseUnavailable(kind, f"SQLite: {error}")
    return error


class SqliteTx:
    """`Tx` on one connection; its methods never suspend, so a unit can be stepped to its end."""

    __slots__ = ("_connection", "_ids", "now", "outgoing", "wake")
    engine: Literal["sqlite", "postgres"] = "sqlite"

    def __init__(self, connection: sqlite3.Connection, ids: Ids, now: int) -> None:
        self._connection = connection
        self._ids = ids
        self.now = now
        self.outgoing: list[tuple[Any, ...]] = []
        self.wake = False

    def new_id(self) -> str:
        return self._ids.new(self.now)

    async def one(self, sql: str, *args: Any) -> Row | None:
        cursor = self._connection.execute(translate(sql, "sqlite"), args)
        row: Row | None = cursor.fetchone()
        # An unfinished statement would keep its snapshot; closing resets it.
        cursor.close()
        return row

    async def all(self, sql: str, *args: Any) -> list[Row]:
        return self._connection.execute(translate(sql, "sqlite"), args).fetchall()

    async def run(self, sql: str, *args: Any) -> int:
        return self._connection.execute(translate(sql, "sqlite"), args).rowcount

    async def many(self, sql: str, rows: Sequence[Sequence[Any]]) -> list[Row]:
        text = translate(sql, "sqlite")
        # executemany refuses statements that return rows, and only those name `returning`.
        if "returning" not in text:
            self._connection.executemany(text, rows)
            return []
        found: list[Row] = []
        for row in rows:
            found.extend(self._connection.execute(text, row).fetchall())
        return found


class _Job:
    """One call of `read` or `write` on its way through a thread."""

    __slots__ = ("args", "context", "error", "future", "kwargs", "result", "unit", "wake")

    def __init__(
        self,
        unit: Callable[..., Awaitable[Any]],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        future: asyncio.Future[Any],
    ) -> None:
        self.unit = unit
        self.args = args
        self.kwargs = kwargs
        self.future = future
        self.context = contextvars.copy_context()
        self.result: Any = None
        self.error: BaseException | None = None
        self.wake = False

    def step(self, tx: SqliteTx) -> None:
        """Run the unit to its end with `tx`; its events are written last. Raises what it raises."""
        self.error = None
        self.context.run(self._step, tx)
        if tx.outgoing:
            tx._connection.executemany(translate(INSERT, "sqlite"), tx.outgoing)
        self.wake = tx.wake or bool(tx.outgoing)

    def _step(self, tx: SqliteTx) -> None:
        coroutine: Any = self.unit(tx, *self.args, **self.kwargs)
        try:
            coroutine.send(None)
        except StopIteration as stop:
            self.result = stop.value
        else:
            coroutine.close()
            name = getattr(self.unit, "__qualname__", self.unit)
            raise UnitError(f"the unit {name} awaited something that is not its tx")


class SqliteDatabase:
    """`Database` on one SQLite file."""

    engine: Literal["sqlite", "postgres"] = "sqlite"

    def __init__(self, files: _Files, clock: Clock, ids: Ids) -> None:
        self.clock = clock
        self.ids = ids
        self.observer: DatabaseObserver = Unwatched()
        self.files = files
        self._loop = asyncio.get_running_loop()
        self._listeners: list[Callable[[], None]] = []
        self._closed = False
        self.writes: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._reads: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._scans: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._writer = _Writer(self, files.connect())
        self._threads = [threading.Thread(target=self._writer.run, name="sqlite-writer")]
        for number in range(READERS):
            reader = _Reader(self, self._reads, files.connect(writable=False))
            self._threads.append(threading.Thread(target=reader.run, name=f"sqlite-read-{number}"))
        for number in range(SCANNERS):
            reader = _Reader(self, self._scans, files.connect(writable=False))
            self._threads.append(threading.Thread(target=reader.run, name=f"sqlite-scan-{number}"))
        for thread in self._threads:
            thread.daemon = True
            thread.start()

    def listen(self, callback: Callable[[], None]) -> None:
        self._listeners.append(callback)

    async def write(
        self, unit: Callable[Concatenate[Tx, P], Awaitable[T]], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        result: T = await self._put(self.writes, unit, args, kwargs)
        return result

    async def read(
        self, unit: Callable[Concatenate[Tx, P], Awaitable[T]], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        result: T = await self._put(self._reads, unit, args, kwargs)
        return result

    async def scan(
        self, unit: Callable[Concatenate[Tx, P], Awaitable[T]], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        result: T = await self._put(self._scans, unit, args, kwargs)
        return result

    def _put(
        self,
        jobs: queue.SimpleQueue[_Job | None],
        unit: Callable[..., Awaitable[Any]],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> asyncio.Future[Any]:
        if self._closed:
            raise DatabaseUnavailable("connection", "the database is closed")
        future = self._loop.create_future()
        jobs.put(_Job(unit, args, kwargs, future))
        return future

    def finish(self, op: Literal["read", "write"], jobs: list[_Job], seconds: float) -> None:
        """From a thread: answer all of `jobs` with one wake-up of the loop."""
        self._loop.call_soon_threadsafe(self._answer, op, jobs, seconds)

    def _answer(self, op: Literal["read", "write"], jobs: list[_Job], seconds: float) -> None:
        wake = False
        for job in jobs:
            if job.error is None:
                wake = wake or job.wake
            elif isinstance(job.error, DatabaseUnavailable):
                self.observer.fault(job.error.kind)
            # A caller that was cancelled no longer waits; its unit took place all the same.
            if job.future.done():
                continue
            if job.error is not None:
                job.future.set_exception(job.error)
            else:
                job.future.set_result(job.result)
        self.observer.transaction(op, seconds)
        if wake:
            for callback in self._listeners:
                callback()

    async def close(self) -> None:
        """Finish what was accepted, then close; the writer last, so that it alone checkpoints."""
        if self._closed:
            return
        self._closed = True
        readers = self._threads[1:]
        for jobs, count in ((self._reads, READERS), (self._scans, SCANNERS)):
            for _ in range(count):
                jobs.put(None)
        for thread in readers:
            await asyncio.to_thread(thread.join)
        self.writes.put(None)
        await asyncio.to_thread(self._threads[0].join)
        self.files.release()


class _Reader:
    """A thread that runs read units, each on a snapshot of its own."""

    def __init__(
        self,
        database: SqliteDatabase,
        jobs: queue.SimpleQueue[_Job | None],
        connection: sqlite3.Connection,
    ) -> None:
        self._database = database
        self._jobs = jobs
        self._connection = connection

    def run(self) -> None:
        """Until the None that `close` puts."""
        clock = self._database.clock
        while (job := self._jobs.get()) is not None:
            began = clock.monotonic()
            self._read(job)
            done = [job]
            # Units that are already waiting share this wake-up of the loop.
            while clock.monotonic() - began < BATCH_SECONDS and not self._jobs.empty():
                try:
                    more = self._jobs.get_nowait()
                except queue.Empty:
                    break
                if more is None:
                    self._jobs.put(None)
                    break
                self._read(more)
                done.append(more)
            self._database.finish("read", done, clock.monotonic() - began)
        self._connection.close()

    def _read(self, job: _Job) -> None:
        connection = self._connection
        try:
            connection.execute("begin")
            job.step(SqliteTx(connection, self._database.ids, self._database.clock.wall()))
        except BaseException as error:  # noqa: BLE001 - handed to the caller, whatever it is
            job.error = _fault(error)
        try:
            if connection.in_transaction:
                connection.execute("rollback")
        except sqlite3.Error:
            connection.close()
            self._connection = self._database.files.connect(writable=False)


class _Writer:
    """The thread that does all writes, gathered into batches with one COMMIT."""

    def __init__(self, database: SqliteDatabase, connection: sqlite3.Connection) -> None:
        self._database = database
        self._connection: sqlite3.Connection | None = connection

    def run(self) -> None:
        """Until the None that `close` puts."""
        while (job := self._database.writes.get()) is not None:
            batch = [job]
            try:
                self._batch(batch)
            except BaseException as error:  # noqa: BLE001 - the thread must outlive any fault
                for unanswered in batch:
                    unanswered.error = unanswered.error or _fault(error)
                self._connection = None
                self._database.finish("write", batch, 0.0)
        if self._connection is not None:
            self._connection.close()

    def _batch(self, done: list[_Job]) -> None:
        """Run the one job of `done` and what is waiting behind it; `done` grows along."""
        clock = self._database.clock
        began = clock.monotonic()
        connection = self._open()
        connection.execute("begin immediate")
        job: _Job | None = done[0]
        while job is not None:
            self._unit(connection, job)
            if not connection.in_transaction:
                # SQLite has ended the transaction itself; this unit is the one that failed.
                self._database.finish("write", [done.pop()], clock.monotonic() - began)
                self._each_alone(done)
                return
            job = self._next(len(done), clock.monotonic() - began)
            if job is not None:
                done.append(job)
        if self._commit(connection, done) and len(done) > 1:
            # One big unit may have filled the disk for all; each tries once more by itself.
            self._each_alone(done)
            return
        self._database.finish("write", done, clock.monotonic() - began)

    def _next(self, count: int, seconds: float) -> _Job | None:
        writes = self._database.writes
        if count >= BATCH_UNITS or seconds >= BATCH_SECONDS or writes.empty():
            return None
        try:
            job = writes.get_nowait()
        except queue.Empty:
            return None
        if job is None:
            writes.put(None)
        return job

    def _each_alone(self, jobs: list[_Job]) -> None:
        """Run `jobs` once more, each in its own transaction, after another unit ended theirs.

        What they had answered may rest on rows that are gone now, so all of them run again.
        """
        clock = self._database.clock
        while jobs:
            job = jobs[0]
            began = clock.monotonic()
            try:
                connection = self._open()
                connection.execute("begin immediate")
                self._unit(connection, job)
                if connection.in_transaction:
                    self._commit(connection, [job])
            except sqlite3.Error as error:
                job.error = _fault(error)
            self._database.finish("write", [jobs.pop(0)], clock.monotonic() - began)

    def _unit(self, connection: sqlite3.Connection, job: _Job) -> None:
        """Step `job` inside a savepoint; a failure rolls back to it alone."""
        tx = SqliteTx(connection, self._database.ids, self._database.clock.wall())
        try:
            connection.execute("savepoint unit")
            job.step(tx)
            connection.execute("release unit")
        except BaseException as error:  # noqa: BLE001 - handed to the caller, whatever it is
            job.error = _fault(error)
            if connection.in_transaction:
                try:
                    connection.execute("rollback to unit")
                    connection.execute("release unit")
                except sqlite3.Error:
                    connection.execute("rollback")

    def _commit(self, connection: sqlite3.Connection, jobs: list[_Job]) -> bool:
        """COMMIT; when that fails, every unit that had succeeded gets the error.

        True when the disk was full and nothing is committed, so that trying again is safe.
        """
        try:
            connection.execute("commit")
        except sqlite3.Error as error:
            fault = _fault(error)
            for job in jobs:
                job.error = job.error or fault
            kind = fault.kind if isinstance(fault, DatabaseUnavailable) else None
            if kind == "full":
                if connection.in_transaction:
                    connection.execute("rollback")
                return True
            # After a failed fsync nobody knows what the kernel still holds: start afresh.
            self._connection = None
            connection.close()
        return False

    def _open(self) -> sqlite3.Connection:
        if self._connection is None:
            self._connection = self._database.files.connect()
        return self._connection


class _Files:
    """The database file, its lock and the due clock that its connections share."""

    def __init__(
        self, path: Path, clock: Clock, serving: bool, synchronous: Literal["full", "normal"]
    ) -> None:
        self._path = path
        self._clock = clock
        self._serving = serving
        self._synchronous = synchronous
        self._lock: IO[str] | None = None
        self._due_base = clock.wall()
        self._boot = clock.boot()

    def lock(self) -> None:
        """Become the file's one server. The kernel frees the lock when the process dies."""
        handle = Path(f"{self._path}.lock").open("a+", encoding="ascii")  # noqa: SIM115 - held
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            handle.seek(0)
            holder = handle.read().strip() or "unknown"
            handle.close()
            raise CannotStart(
                f"{self._path} is already served by process {holder}; stop that one first, "
                "or use PostgreSQL for several nodes"
            ) from None
        handle.truncate(0)
        handle.write(str(os.getpid()))
        handle.flush()
        self._lock = handle

    def release(self) -> None:
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def prepare(self) -> None:
        """Create the file in WAL mode and read how far the due clock has been."""
        connection = self.connect()
        try:
            row = connection.execute(
                "select 1 from sqlite_master where name = 'outbox_state'"
            ).fetchone()
            if row:
                mark = connection.execute("select due_mark from outbox_state").fetchone()
                self._due_base = max(self._due_base, mark[0] if mark else 0)
        finally:
            connection.close()

    def due_now(self) -> int:
        return self._due_base + self._clock.boot() - self._boot

    def connect(self, writable: bool = True) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self._path,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=512,
            timeout=BUSY_MILLISECONDS / 1000,
        )
        try:
            connection.row_factory = sqlite3.Row
            connection.create_function("due_now", 0, self.due_now)
            for pragma in self._pragmas(writable):
                connection.execute(f"pragma {pragma}")
        except BaseException:
            connection.close()
            raise
        return connection

    def _pragmas(self, writable: bool) -> list[str]:
        if not writable:
            return ["query_only = on", "cache_size = -16384", "temp_store = memory"]
        return [
            # Only a new file takes this one; it lets retention give space back in small steps.
            "auto_vacuum = incremental",
            "journal_mode = wal",
            f"synchronous = {self._synchronous}",
            "foreign_keys = on",
            "cache_size = -65536",
            "temp_store = memory",
            "journal_size_limit = 67108864",
            # Beside a running server nobody else may checkpoint.
            f"wal_autocheckpoint = {1000 if self._serving else 0}",
        ]


async def open(
    path: str,
    *,
    clock: Clock,
    ids: Ids,
    serving: bool,
    synchronous: Literal["full", "normal"],
) -> SqliteDatabase:
    """Open or create the file at `path`. Raises CannotStart with one clear line."""
    file = Path(path)
    files = _Files(file, clock, serving, synchronous)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        if serving:
            files.lock()
        files.prepare()
        return SqliteDatabase(files, clock, ids)
    except (OSError, sqlite3.Error) as error:
        files.release()
        raise CannotStart(f"cannot open the database {file}: {error}") from error
