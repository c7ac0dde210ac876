"""Files that are for the user alone whom the program runs as: making them so, finding others."""

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
    """What this process makes in the block is its user's alone."""
    before = os.umask(MASK)
    try:
        yield
    finally:
        os.umask(before)


def make(path: Path) -> None:
    """Make an empty file, unless there is one."""
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, FILE))


def warning(paths: Iterable[Path]) -> str | None:
    """One line naming those of `paths` that others may look into, and the fix; None without any."""
    found = {str(path): mode for path in paths if (mode := _mode(path)) & MASK}
    if not found:
        return None
    named = ", ".join(f"{path} (mode {mode:04o})" for path, mode in found.items())
    return f"open to other users: {named}; run: chmod go-rwx {' '.join(found)}"


def _mode(path: Path) -> int:
    try:
        return stat.S_IMODE(path.stat().st_mode)
    except OSError:
        return 0
