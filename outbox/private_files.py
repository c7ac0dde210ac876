"""Create files that only the current user can read, and find files that others can read."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

FOLDER = 0o700
FILE = 0o600
MASK = 0o077


@contextmanager
def private() -> Iterator[None]:
    """Make files created in the block private to the current user."""
    before = os.umask(MASK)
    try:
        yield
    finally:
        os.umask(before)


def make(path: Path) -> None:
    """Create an empty file unless it exists."""
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, FILE))


def warning(paths: Iterable[Path]) -> str | None:
    """Return one line with the files of `paths` that others can read and the fix, or None."""
    found = {str(path): mode for path in paths if (mode := _mode(path)) & MASK}
    if not found:
        return None
    named = ", ".join(f"{path} (mode {mode:04o})" for path, mode in found.items())
    return f"readable by other users: {named}; run: chmod go-rwx {' '.join(found)}"


def _mode(path: Path) -> int:
    try:
        return stat.S_IMODE(path.stat().st_mode)
    except OSError:
        return 0
