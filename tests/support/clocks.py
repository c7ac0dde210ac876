"""Clocks that a test moves."""

from outbox.clock import SystemClock


class Wall(SystemClock):
    """A clock whose wall time is off."""

    offset = 0

    def wall(self) -> int:
        return super().wall() + self.offset


class Stopped(SystemClock):
    """A clock whose seconds stand, so that no machine is too slow for a test."""

    now = 0.0

    def monotonic(self) -> float:
        return self.now


class Hand(Stopped):
    """A clock that stands as a whole."""

    def wall(self) -> int:
        return int(self.now * 1_000_000)

    boot = wall
