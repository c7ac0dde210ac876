"""The product without the guards around sign-ins: no limits, and one short queue for all.

Run in place of `python -m gateway`. Nothing is counted by address, network or account, and a client
that fills the queue of hashes blocks all others.
"""

from __future__ import annotations

import sys
from functools import partial

from gateway.__main__ import main
from gateway.domain.accounts.passwords import Passwords
from gateway.domain.accounts.sign_in import SignInDelays
from gateway.server.http.rate_limits import RateLimits
from gateway.server.parts import Parts
from outbox.database.fair_limit import Places

WAITING = 64


class OneQueue(Places):
    """Places for which everybody is the same holder."""

    async def take(self, holder: str) -> None:
        await super().take("all")

    def leave(self, holder: str) -> None:
        super().leave("all")


def uncounted(*_: object) -> None:
    """Replaces a limit."""


if __name__ == "__main__":
    for owner, name in ((SignInDelays, "begin"), (RateLimits, "sign_in")):
        setattr(owner, name, uncounted)
    queue = OneQueue(2, each=2, waiting=WAITING)
    sys.exit(main(parts=Parts(passwords=partial(Passwords, places=queue))))
