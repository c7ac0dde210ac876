"""The product without the guards around sign-ins: no limits, and one short queue for all.

Run in place of `python -m gateway`. Nothing is counted by address, network or account, and a client
that fills the queue of hashes blocks all others.
"""

from __future__ import annotations

import sys
from typing import Any

from gateway.__main__ import main
from gateway.domain.accounts.passwords import Passwords
from gateway.domain.accounts.sign_in import SignInDelays
from gateway.server.http.rate_limits import RateLimits
from outbox.database.fair_limit import Places

WAITING = 64
_init = Passwords.__init__


def in_one_queue(self: Passwords, **given: Any) -> None:
    """As the product's, with a queue that ignores the holder."""
    _init(self, **given)
    self._places = OneQueue(2, each=2, waiting=WAITING)


class OneQueue(Places):
    """Places for which everybody is the same holder."""

    async def take(self, holder: str) -> None:
        await super().take("all")

    def leave(self, holder: str) -> None:
        super().leave("all")


def uncounted(*_: object) -> None:
    """Replaces a limit."""


if __name__ == "__main__":
    for owner, name, free in (
        (Passwords, "__init__", in_one_queue), (SignInDelays, "begin", uncounted),
        (RateLimits, "sign_in", uncounted),
    ):  # fmt: skip
        setattr(owner, name, free)
    sys.exit(main())
