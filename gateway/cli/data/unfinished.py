"""Write a new file that has its name only when it is complete."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from outbox import private_files
from outbox.errors import CannotStart


@contextmanager
def unfinished(file: Path) -> Iterator[IO[bytes]]:
    """Open `FILE.part` for this user alone, and rename it after the block.

    A part that an ended process has left is used again; after an error it is removed, and so is one
    without content. Raise CannotStart when the file exists, or when somebody writes it now.
    """
    if file.exists():
        raise CannotStart(f"{file} already exists; choose another name")
    part = file.with_name(f"{file.name}.part")
    try:
        # In a folder that others may write to, a link would lead to a file of their choice.
        number = os.open(part, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, private_files.FILE)
    except OSError as error:
        raise CannotStart(f"cannot write {part}: {error.strerror}") from None
    with os.fdopen(number, "wb", buffering=0) as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise CannotStart(f"another process is writing {part}") from None
        if not _is_named(number, part):
            raise CannotStart(f"another process has just written {part}; try again")
        try:
            os.fchmod(number, private_files.FILE)
        except OSError as error:
            raise CannotStart(f"cannot write {part}: {error.strerror}") from None
        try:
            handle.truncate(0)
            yield handle
            if not os.fstat(number).st_size:
                part.unlink()
                return
            if file.exists():
                raise CannotStart(f"{file} exists by now; choose another name")
            part.rename(file)
        except BaseException:
            part.unlink(missing_ok=True)
            raise
    folder = os.open(file.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _is_named(number: int, part: Path) -> bool:
    """Return whether the open file still has this name; its last writer may have renamed it."""
    try:
        return os.path.samestat(os.fstat(number), part.lstat())
    except FileNotFoundError:
        return False
