"""The product with a clock that SIGUSR1 puts an hour ahead, and the next SIGUSR1 right again.

Run in place of `python -m gateway`.
"""

from __future__ import annotations

import signal
import sys

from gateway.__main__ import main
from gateway.server.parts import Parts
from outbox.clock import SystemClock

HOUR = 3_600_000_000


class Astray(SystemClock):
    """The fault: a wall clock that jumps."""

    ahead = 0

    def wall(self) -> int:
        return super().wall() + self.ahead

    def turn(self, *_: object) -> None:
        self.ahead = HOUR - self.ahead


if __name__ == "__main__":
    clock = Astray()
    signal.signal(signal.SIGUSR1, clock.turn)
    sys.exit(main(parts=Parts(clock=clock)))
