"""The database file: its connections and settings, its server locks and its due clock.

A file has one name: behind symbolic links everything belongs to the file that they name, and a file
with hard links is refused, since SQLite keeps its log beside the name that was opened.

The due clock of the process that serves counts on from the wall clock at its start, or from the
stored mark if that is later. It writes into the lock file how far this is from the time since boot,
so that a command beside it has the same clock, wherever the wall clock is by then.
"""

from __future__ import annotations

import errno
import fcntl
import os
import sqlite3
import struct
from contextlib import closing
from pathlib import Path
from threading import Timer
from typing import IO, Literal

from outbox import private_files
from outbox.clock import Clock
from outbox.database.database_urls import resolved
from outbox.database.sqlite.refusals import damaged, must_be_a_file
from outbox.errors import CannotStart

BUSY_MILLISECONDS = 5000
LOG_BYTES = 1_000 * (4_096 + 24) + 32
"""A log of more than 1,000 pages is written into the file; so much of it is kept for the next."""
CHECK_SECONDS = 1.0
"""At its start a server looks for damage for so long: about 150 MiB of file."""
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_OWN_BYTE = struct.pack("hhqqi", fcntl.F_WRLCK, os.SEEK_SET, 1 << 62, 1, 0)
"""The last argument of the lock of one byte; SQLite locks 512 bytes at 1 GiB."""
# The furthest the due clock has been: as stored, or when a lane had its last turn.
MARK = """
select max(
  coalesce((select due_mark from outbox_state), 0),
  coalesce((select max(turned_at) from lanes), 0))
"""


def copied_mark(path: Path) -> Path:
    """Return the file that marks a database as copied to another one, which sends from then on."""
    return Path(f"{path}.copied")


def boot_id() -> str:
    """Return what names the time since the last boot of the machine; empty where nothing does."""
    try:
        return BOOT_ID.read_text(encoding="ascii").strip()
    except OSError:
        return ""


def _lock_path(path: Path) -> Path:
    return Path(f"{path}.lock")


class File:
    """The database file, its lock, and the due clock that its connections share."""

    def __init__(
        self, path: Path, clock: Clock, serving: bool, synchronous: Literal["full", "normal"]
    ) -> None:
        self._path = resolved(path)
        self._typed = path
        self._lock_path = _lock_path(self._path)
        self._clock = clock
        self._serving = serving
        self._synchronous = synchronous
        self._lock: IO[str] | None = None
        self._locks: list[IO[str]] = []
        self._due_base = clock.wall()
        self._boot = clock.boot()

    @property
    def path(self) -> Path:
        return self._path

    @property
    def log_path(self) -> str:
        return f"{self._path}-wal"

    def lock(self) -> None:
        """Lock the file for this process. The kernel releases the locks when the process dies.

        Beside the lock file, the file itself is locked: a mount or a new name leads to it too.
        """
        must_be_a_file(self._typed)
        self._lock = self._locked(self._lock_path)
        # A server of an older release has locked the link.
        old = _lock_path(self._typed)
        if self._typed != self._path and old.exists() and not old.samefile(self._lock_path):
            self._locked(old)
        self._lock.truncate(0)
        self._lock.write(f"{os.getpid()}\n")
        self._lock.flush()
        if self._path.exists():
            self._lock_itself()

    def _locked(self, path: Path) -> IO[str]:
        private_files.make(path)
        handle = path.open("a+", encoding="ascii")
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            handle.seek(0)
            holder = handle.readline().strip() or "unknown"
            handle.close()
            self.release()
            raise self._in_use(f"server process {holder}") from None
        self._locks.append(handle)
        return handle

    def _lock_itself(self) -> None:
        """Lock a byte that SQLite never locks.

        Only where the lock belongs to the handle: another lock would end with any handle of the
        file that this process closes. That is also why this handle stays open to the end.
        """
        if not hasattr(fcntl, "F_OFD_SETLK"):
            return
        handle = self._path.open("r+", encoding="ascii")
        try:
            fcntl.fcntl(handle, fcntl.F_OFD_SETLK, _OWN_BYTE)
        except OSError as error:
            handle.close()
            if error.errno not in (errno.EAGAIN, errno.EACCES):
                # A file system without such locks, as some of networks and virtual machines.
                return
            self.release()
            raise self._in_use("a server that reaches it by another path") from None
        self._locks.append(handle)

    def _in_use(self, holder: str) -> CannotStart:
        return CannotStart(
            f"{self._path} is already in use by {holder}; stop that one first, "
            "or use PostgreSQL for several nodes"
        )

    def mark(self) -> Path | None:
        """Return the mark of the file; older releases set it beside the link."""
        marks = (copied_mark(self._path), copied_mark(self._typed))
        return next((mark for mark in marks if mark.exists()), None)

    def must_not_be_copied(self) -> None:
        """Raise CannotStart when another database has taken over, or every delivery went twice."""
        if (mark := self.mark()) is not None:
            raise CannotStart(
                f"{mark.read_text(encoding='utf-8').strip()}; serve that database, or "
                f"delete {mark} if it will never be served"
            )

    def release(self) -> None:
        if self._lock is not None:
            # Its clock ends here: the next one may begin at the mark.
            self._lock.truncate(0)
            self._lock = None
        for handle in self._locks:
            handle.close()
        self._locks = []

    def prepare(self) -> None:
        """Create the file in WAL mode and read the stored mark of the due clock."""
        must_be_a_file(self._typed)
        is_new = not self._path.exists()
        # SQLite gives its companion files the same mode.
        private_files.make(self._path)
        if self._lock is not None and is_new:
            self._lock_itself()
        connection = self.connect()
        try:
            self._must_be_utf_8(connection)
            row = connection.execute(
                "select 1 from pragma_table_info('lanes') where name = 'turned_at'"
            ).fetchone()
            if row:
                [mark] = connection.execute(MARK).fetchone()
                self._start_clock(mark)
        finally:
            connection.close()
        if self._lock is not None:
            self._lock.write(f"{boot_id()} {self._due_base - self._boot}\n")
            self._lock.flush()

    def _must_be_utf_8(self, connection: sqlite3.Connection) -> None:
        """Raise CannotStart for another encoding: our statements count and compare bytes."""
        [encoding] = connection.execute("pragma encoding").fetchone()
        if encoding != "UTF-8":
            raise CannotStart(
                f"the database {self._path} has the encoding {encoding}; write it anew in UTF-8: "
                "`carteiro backup FILE`, then `carteiro restore FILE --overwrite`"
            )

    def _start_clock(self, mark: int) -> None:
        """Set the due clock from the stored mark of the file.

        Whatever the wall clock is, a process that does not serve gives out no time that lies ahead
        for the one that serves now, or next. That one is never before the mark at its start.
        """
        furthest = max(self._due_base, mark)
        if self._serving:
            self._due_base = furthest
            return
        served = self._served()
        if served is not None:
            self._due_base = min(served, furthest)
        elif mark:
            self._due_base = mark

    def _served(self) -> int | None:
        """Return the due clock of the process that serves, or was killed since the last boot."""
        try:
            [_, line, *_] = self._lock_path.read_text(encoding="ascii").splitlines()
            boot, ahead = line.split()
            return int(ahead) + self._boot if boot == boot_id() else None
        except (OSError, ValueError):
            return None

    def must_be_sound(self) -> None:
        """Raise CannotStart when the file is damaged, as far as a short look shows.

        Damage that it does not reach is an error of the statement that meets it.
        """
        with closing(self.connect(writable=False)) as connection:
            end = Timer(CHECK_SECONDS, connection.interrupt)
            end.start()
            try:
                [result] = connection.execute("pragma quick_check(1)").fetchone()
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode != sqlite3.SQLITE_INTERRUPT:
                    raise
                return
            finally:
                end.cancel()
                # A late interrupt must not meet a closed connection.
                end.join()
        if result != "ok":
            raise damaged(self._path, result)

    @property
    def serving(self) -> bool:
        """Whether this process is the server of the file."""
        return self._serving

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
            connection.create_function("serves", 0, lambda: self._serving)
            for pragma in self._pragmas(writable):
                connection.execute(f"pragma {pragma}")
        except BaseException:
            connection.close()
            raise
        return connection

    def _pragmas(self, writable: bool) -> list[str]:
        if not writable:
            return ["query_only = on", "cache_size = -16384", "temp_store = memory"]
        # It lets retention release space in small steps. In a file with content it changes nothing
        # and waits for the lock of writers.
        new = ["auto_vacuum = incremental"] if self._path.stat().st_size == 0 else []
        return [
            *new,
            "journal_mode = wal",
            f"synchronous = {self._synchronous}",
            "foreign_keys = on",
            "cache_size = -65536",
            "temp_store = memory",
            f"journal_size_limit = {LOG_BYTES}",
            # What a row held must not stay in the file; retention deletes personal data, too.
            "secure_delete = on",
            # Within COMMIT the units of a batch would wait for it: see Writer.write_back.
            "wal_autocheckpoint = 0",
        ]
