"""The product with a clock that SIGUSR1 puts an hour ahead, and the next SIGUSR1 right again.

Run in place of `python -m gateway`.
"""

from __future__ import annotations

import signal
import sys

from gateway.__main__ import main
from outbox.clock import SystemClock

HOUR = 3_600_000_000
right = SystemClock.wall
ahead = 0


def wall(self: SystemClock) -> int:
    return right(self) + ahead


def turn(*_: object) -> None:
    global ahead
    ahead = HOUR - ahead


if __name__ == "__main__":
    SystemClock.wall = wall  # type: ignore[method-assign] # the fault
    signal.signal(signal.SIGUSR1, turn)
    sys.exit(main())
