"""The SQLite driver: one connection writes, the event loop and a few threads read.

Each runs a unit to its end.

Nothing else writes to or checkpoints the file while a server runs: SQLite before 3.51.3 can corrupt
a WAL when two connections write and checkpoint at once.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import (
    AsyncGenerator,
    Awaitable,
    Callable,
    Collection,
    Iterable,
    Mapping,
    Sequence,
)
from functools import partial
from pathlib import Path
from typing import Any, Concatenate, Literal

from outbox import private_files
from outbox.clock import Clock
from outbox.database.claims import Reserve
from outbox.database.leadership import Alone, Leadership, Pace
from outbox.database.moving_owners import must_be_here
from outbox.database.pacing import Meter, working
from outbox.database.sqlite.file import File
from outbox.database.sqlite.loop_reads import LoopReads
from outbox.database.sqlite.refusals import unusable
from outbox.database.sqlite.streams import Streams
from outbox.database.sqlite.threads import Reader, Readers, Scanner
from outbox.database.sqlite.unit_thread import Job
from outbox.database.sqlite.write_queue import WriteQueue
from outbox.database.transaction import (
    PACE,
    Batch,
    Home,
    Idle,
    Name,
    P,
    Purpose,
    Scrubbed,
    T,
    Tx,
    Unsubscribe,
    Values,
    Wake,
    commits,
)
from outbox.database.unit_limits import scan_places
from outbox.errors import CannotStart, DatabaseUnavailable, OutcomeUnknown
from outbox.ids import Ids
from outbox.observer import Observer

VERSION = sqlite3.sqlite_version
READERS = 2
SCANNERS = 2


class SqliteDatabase:
    """`Database` on one SQLite file."""

    engine: Literal["sqlite", "postgres"] = "sqlite"
    shared = False
    one_writer = True
    # While brief units write, the event loop runs nothing else.
    batch = Batch(128, 512 * 1024)

    def __init__(self, file: File, clock: Clock, ids: Ids) -> None:
        self.clock = clock
        self.ids = ids
        self.closed_owners: Mapping[str, Home | None] = {}
        self.unreadable_owners: Mapping[str, Home | None] = {}
        self.moves_seen: int | None = None
        self.moves_epoch = 0
        self.reserve: Reserve | None = None
        self.observer = Observer()
        self.meter = Meter(clock)
        self._file = file
        self._loop = asyncio.get_running_loop()
        self._listeners: list[Callable[[], None]] = []
        self._drains: list[Callable[[], None]] = []
        self._watchers: list[Callable[[Collection[str]], None]] = []
        self._closed = False
        self._reads = Readers(Reader, READERS, file, clock, ids, self._finish)
        self._scans = Readers(Scanner, SCANNERS, file, clock, ids, self._finish)
        self._loop_reads = LoopReads(file, clock, ids)
        self._writes = WriteQueue(file, clock, ids, partial(self._answer, "write"), self._tell)
        self._streams = Streams(file.path, clock)
        # One place per thread, so that no scan waits behind another scan of the same owner.
        self._places = scan_places(SCANNERS)

    def apart(self, purpose: Purpose) -> SqliteDatabase:
        return self

    def listen(
        self, callback: Wake, node: Name | None = None, idle: Idle | None = None
    ) -> Unsubscribe:
        listeners = self._listeners if node is None else self._drains
        listeners.append(callback)
        return partial(listeners.remove, callback)

    def announce(self) -> None:
        """Do nothing: there is no other node."""

    def on_change(self, callback: Callable[[Collection[str]], None]) -> Unsubscribe:
        self._watchers.append(callback)
        return partial(self._watchers.remove, callback)

    def on_move(self, callback: Callable[[], None]) -> Unsubscribe:
        return lambda: None

    def leadership(self, pace: Pace = PACE) -> Leadership:
        return Alone()

    async def write(
        self, unit: Callable[Concatenate[Tx, P], Awaitable[T]], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        if self.closed_owners:
            must_be_here(self.closed_owners)
        result: T = await self._put(self._writes, self._job(unit, args, kwargs))
        noted = commits.get()
        if noted is not None:
            noted.any = True
        return result

    async def read(
        self, unit: Callable[Concatenate[Tx, P], Awaitable[T]], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        job = self._job(unit, args, kwargs)
        # The threads of scans and streams take the interpreter lock at each row. Jobs and the drain
        # read on threads, too: on the loop their steps would delay clients.
        elsewhere = self._writes.scans or self._streams.fetching or working.get()
        took = None if self._closed or elsewhere else self._loop_reads.step(job)
        if took is None:
            await self._put(self._reads, job)
        else:
            self.observer.transaction("read", took)
            # A caller that reads repeatedly must not keep the loop from all others.
            await asyncio.sleep(0)
            if job.error is not None:
                raise job.error
        result: T = job.result
        return result

    async def scan(
        self,
        owner: str,
        unit: Callable[Concatenate[Tx, P], Awaitable[T]],
        /,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        job = self._job(unit, args, kwargs)
        async with self._places.place(owner):
            with self._writes.beside_scan():
                answer = self._put(self._scans, job)
                try:
                    result: T = await asyncio.shield(answer)
                except asyncio.CancelledError:
                    job.abandoned = True
                    # Only now is its thread free again.
                    await asyncio.wait([answer])
                    answer.exception()
                    raise
                return result

    def stream(self, owner: str, sql: str, *args: Any) -> AsyncGenerator[Sequence[Values], None]:
        return self._streams.rows(owner, sql, args)

    def _job(
        self, unit: Callable[..., Awaitable[Any]], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Job:
        return Job(unit, args, kwargs, self._loop.create_future(), self.clock.monotonic())

    def _put(self, jobs: WriteQueue | Readers, job: Job) -> asyncio.Future[Any]:
        if self._closed:
            raise DatabaseUnavailable("connection", "the database is closed")
        jobs.put(job)
        return job.future

    def _finish(self, op: Literal["read", "write"], jobs: list[Job]) -> None:
        """Complete all `jobs` from a thread, with one wake-up of the loop."""
        self._loop.call_soon_threadsafe(self._answer, op, jobs)

    def _answer(self, op: Literal["read", "write"], jobs: list[Job]) -> None:
        wake = untold = False
        changed: set[str] = set()
        now = self.clock.monotonic()
        for job in jobs:
            self.observer.transaction(op, now - job.began)
            if self.meter.jobs and op == "write" and not job.context.get(working):
                self.meter.note(job.began, now)
            if job.error is None or isinstance(job.error, OutcomeUnknown):
                wake = wake or job.wake
                untold = untold or (job.wake and not job.told)
                changed |= job.changed
            if isinstance(job.error, DatabaseUnavailable) and not job.abandoned:
                for kind in job.error.kinds:
                    self.observer.fault(kind)
            # A cancelled caller no longer waits; its unit ran all the same.
            if job.future.done():
                continue
            if job.error is not None:
                job.future.set_exception(job.error)
            else:
                job.future.set_result(job.result)
        # The callers resume after this, so they see these callbacks as done.
        if changed:
            for watcher in self._watchers:
                watcher(changed)
        if wake:
            for callback in self._listeners:
                callback()
        if untold:
            self._tell()

    def _tell(self) -> None:
        """Wake the drains, perhaps before COMMIT: their units follow in this batch or a later one.

        A drain that finds nothing, as after a rollback, has lost one look.
        """
        for callback in self._drains:
            callback()

    async def scrub(self, tables: Iterable[Scrubbed]) -> bool:
        if not self._file.serving:
            # Beside a running server no other process may checkpoint.
            return False
        self._writes.empty_log()
        await self.write(_nothing)
        return self._writes.emptied

    def census(self) -> Mapping[str, int]:
        return {}

    async def close(self) -> None:
        """Finish the accepted jobs, then close; the writer closes last, as it alone checkpoints."""
        if self._closed:
            return
        self._closed = True
        await self._streams.close()
        self._loop_reads.close()
        await asyncio.to_thread(self._end_reads)
        await self._writes.close()
        self._file.release()

    def _end_reads(self) -> None:
        self._reads.close()
        self._scans.close()


async def _nothing(tx: Tx) -> None:
    """Do nothing, in a batch of its own or with others."""


async def open(
    path: Path,
    *,
    clock: Clock,
    ids: Ids,
    serving: bool,
    synchronous: Literal["full", "normal"],
) -> SqliteDatabase:
    """Open or create the file at `path`. Raise CannotStart with a one-line error."""
    file = File(path, clock, serving, synchronous)
    try:
        file.path.parent.mkdir(private_files.FOLDER, parents=True, exist_ok=True)
        if serving:
            file.lock()
            file.must_not_be_copied()
        file.prepare()
        if serving:
            file.must_be_sound()
        return SqliteDatabase(file, clock, ids)
    except CannotStart:
        file.release()
        raise
    except (OSError, sqlite3.Error) as error:
        file.release()
        raise unusable(file.path, error) from error
