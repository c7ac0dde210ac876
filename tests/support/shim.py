"""A wall clock that is off and flushes that take long, for a process that is started with them.

`shim.c` is preloaded, so that every library of the process sees the fault, and a file that both
sides have mapped tells it what to do.
"""

from __future__ import annotations

import mmap
import os
import struct
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.requirements import need

SOURCE = Path(__file__).with_name("shim.c")
WORDS = struct.Struct("=qqq")


class Shim:
    """The faults of the processes that have `environment`."""

    def __init__(self, library: Path, control: Path, words: mmap.mmap) -> None:
        self.environment = {"LD_PRELOAD": str(library), "SHIM_CONTROL": str(control)}
        self._words = words

    def set(self, *, ahead_seconds: int = 0, flush_seconds: float = 0.0) -> None:
        """Let the wall clock be this far ahead, and each flush take so long, from now on."""
        self._words[:16] = struct.pack("=qq", ahead_seconds, round(flush_seconds * 1e6))

    @property
    def flushes(self) -> int:
        """The flushes so far that took long."""
        return int(WORDS.unpack(self._words[: WORDS.size])[2])


@contextmanager
def shim(folder: Path) -> Iterator[Shim]:
    """Build the library in `folder`; there are no faults at first."""
    need("linux")
    library, control = folder / "shim.so", folder / "shim.control"
    subprocess.run(
        [need("gcc"), "-shared", "-fPIC", "-O2", "-o", str(library), str(SOURCE), "-ldl"],
        check=True, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    control.write_bytes(bytes(mmap.PAGESIZE))
    handle = os.open(control, os.O_RDWR)
    try:
        words = mmap.mmap(handle, mmap.PAGESIZE)
    finally:
        os.close(handle)
    with words:
        yield Shim(library, control, words)
