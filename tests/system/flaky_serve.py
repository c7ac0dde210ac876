"""The product on a store that fails one call in a hundred.

Run in place of `python -m gateway`; SIGUSR1 starts the faults, SIGUSR2 ends them. A fault comes
before the call (the database is busy, or the connection is lost) or after its COMMIT, which is then
reported as unknown. FLAKY_FORGETS=1 breaks a rule for the negative control: results whose
write fails are forgotten.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Awaitable, Callable
from random import Random
from typing import Any

from gateway.__main__ import main
from gateway.server.parts import PARTS, Parts
from outbox.clock import Clock
from outbox.database.postgres import PostgresDatabase
from outbox.database.sqlite import SqliteDatabase
from outbox.database.transaction import Database
from outbox.errors import DatabaseFault, DatabaseUnavailable, OutcomeUnknown
from outbox.worker.settling import Settling, Write

SHARE = float(os.environ.get("FLAKY_SHARE", "0.01"))
Call = Callable[..., Awaitable[Any]]


class Flaw:
    """Decides which calls fail."""

    def __init__(self) -> None:
        self.on = False
        self.dice = Random(int(os.environ.get("FLAKY_SEED", "1")))

    def now(self) -> bool:
        return self.on and self.dice.random() < SHARE

    def set(self, number: int, frame: object) -> None:
        self.on = number == signal.SIGUSR1


FLAW = Flaw()


def failing_before(call: Call) -> Call:
    """Return `call` with faults before it."""

    async def called(*args: Any, **kwargs: Any) -> Any:
        if FLAW.now():
            kind: DatabaseFault = FLAW.dice.choice(("busy", "connection"))
            raise DatabaseUnavailable(kind, f"simulated: {kind}")
        return await call(*args, **kwargs)

    return called


def failing_after(call: Call) -> Call:
    """Return `call` with faults after its COMMIT."""

    async def called(*args: Any, **kwargs: Any) -> Any:
        result = await call(*args, **kwargs)
        if FLAW.now():
            raise OutcomeUnknown("connection", "simulated: no answer to COMMIT")
        return result

    return called


class Forgetful(Settling):
    """Drops results whose write fails."""

    def __init__(self, db: Database, clock: Clock) -> None:
        super().__init__(db, clock)
        self.parts = (db, clock)

    async def write(self, first: Write | None = None) -> float | None:
        wait = await super().write(first)
        if wait is None:
            self.__init__(*self.parts)  # type: ignore[misc] # as new: without results
        return wait


if __name__ == "__main__":
    for database in (SqliteDatabase, PostgresDatabase):
        for name in ("read", "scan", "write"):
            call = getattr(database, name)
            after = failing_after(call) if name == "write" else call
            setattr(database, name, failing_before(after))
    signal.signal(signal.SIGUSR1, FLAW.set)
    signal.signal(signal.SIGUSR2, FLAW.set)
    # The rule that is broken.
    sys.exit(main(parts=Parts(settling=Forgetful) if os.environ.get("FLAKY_FORGETS") else PARTS))
