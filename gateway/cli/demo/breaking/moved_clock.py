"""A wall clock that another process moves while it runs: the demo's "move the clock".

Time since boot and monotonic time stay as they are, as when somebody sets a machine's clock.
"""

import mmap
import struct
from pathlib import Path

from outbox.clock import SystemClock
from outbox.durations import SECOND

_FORM = struct.Struct("<qq")
RECENT = 60 * SECOND


class MovedClock(SystemClock):
    """The clocks of the machine, with a wall clock that is ahead by what a file says."""

    def __init__(self, file: Path) -> None:
        if not file.exists():
            file.write_bytes(bytes(_FORM.size))
        with file.open("r+b") as opened:
            self._map = mmap.mmap(opened.fileno(), _FORM.size)
        self._moved_at = -RECENT

    def wall(self) -> int:
        ahead, _ = self._read()
        return super().wall() + ahead

    def walls(self) -> tuple[int, ...]:
        """Return the time, and shortly after a move also the time as it was without the move.

        A request may be signed before a move and arrive after it.
        """
        ahead, before = self._read()
        now = super().wall()
        recent = self.boot() - self._moved_at < RECENT
        return (now + ahead, now + before) if recent else (now + ahead,)

    def move(self, ahead: int) -> None:
        """Set the clock ahead of the machine's by these microseconds, in all processes."""
        current, _ = self._read()
        self._moved_at = self.boot()
        self._map[:] = _FORM.pack(ahead, current)

    def _read(self) -> tuple[int, int]:
        ahead, before = _FORM.unpack(self._map[:])
        return ahead, before
