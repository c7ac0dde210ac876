"""The product with a broken rule: deliveries are due by the wall clock.

Run in place of `python -m gateway`, on SQLite.
"""

from __future__ import annotations

import sys

from gateway.__main__ import main
from gateway.server.parts import Parts
from outbox.clock import SystemClock


class Walled(SystemClock):
    """The broken rule: the due clock counts the time since boot, which here is that of the wall."""

    def boot(self) -> int:
        return self.wall()


if __name__ == "__main__":
    sys.exit(main(parts=Parts(clock=Walled())))
