"""Why a path is no database file that can be used: one line with the fix."""

from __future__ import annotations

import os
import sqlite3
import stat
from pathlib import Path

from outbox.database.database_urls import resolved
from outbox.errors import CannotStart

_NOT_WRITABLE = (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM)


def damaged(path: Path, what: str) -> CannotStart:
    """Return the refusal of a damaged file."""
    return CannotStart(
        f"the database {path} is damaged ({' '.join(what.split())}); keep a copy of it with its "
        "-wal, then restore the newest backup with `carteiro restore FILE --overwrite`"
    )


def unusable(path: Path, error: OSError | sqlite3.Error) -> CannotStart:
    """Return the refusal of a file that cannot be opened."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code == sqlite3.SQLITE_CORRUPT:
        return damaged(path, str(error))
    start = f"cannot open the database {path}: "
    if code == sqlite3.SQLITE_NOTADB:
        return CannotStart(f"{start}{error}; correct database.url")
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return CannotStart(f"{start}another program has locked it; end that program")
    if isinstance(error, PermissionError) or code in _NOT_WRITABLE:
        return CannotStart(
            f"{start}this user (uid {os.geteuid()}) must be allowed to write it, files beside it "
            f"and its folder {path.parent}; change the rights, or correct database.url"
        )
    if not isinstance(error, OSError):
        return CannotStart(f"{start}{error}; check its disk, or correct database.url")
    beside = f" ({error.filename})" if error.filename not in (None, str(path)) else ""
    return CannotStart(f"{start}{error.strerror}{beside}; correct database.url")


def must_be_a_file(path: Path) -> None:
    """Raise CannotStart when there is something at `path` that is not a file with one name."""
    real = resolved(path)
    try:
        status = path.stat()
        if not real.exists():
            raise CannotStart(
                f"the database {path} was deleted and is only reached by a handle of a process; "
                "restore a backup"
            )
    except FileNotFoundError:
        return
    except OSError as error:
        raise unusable(path, error) from error
    if stat.S_ISDIR(status.st_mode):
        raise CannotStart(
            f"the database {path} is a folder; add the name of a file to database.url, such as "
            f"sqlite:///{path}/carteiro.db"
        )
    if not stat.S_ISREG(status.st_mode):
        raise CannotStart(f"the database {path} is not a file; correct database.url")
    if status.st_nlink > 1:
        raise CannotStart(
            f"the database {path} has {status.st_nlink} names (hard links), and SQLite keeps the "
            "log of a file beside one name only; end all that use it, find its names with `find / "
            f"-xdev -samefile {path}`, and delete all but one"
        )
