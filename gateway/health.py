"""Is this process fit to be sent requests? What /livez and /readyz answer."""

from typing import Protocol

from outbox.database import Database, Tx
from outbox.errors import DatabaseUnavailable

STALE_SECONDS = 30.0


class Ticks(Protocol):
    """Who knows when the drain last went round, in monotonic seconds."""

    @property
    def ticked(self) -> float: ...


class Health:
    """Gathers the few facts on which readiness depends."""

    def __init__(self, db: Database, ticks: Ticks, *, delivers: bool) -> None:
        self._db = db
        self._ticks = ticks
        self._delivers = delivers
        self.draining = False

    async def faults(self) -> list[str]:
        """Why this process should get no requests now; empty when it may."""
        found = []
        if self.draining:
            found.append("shutting down")
        if self._delivers and self._db.clock.monotonic() - self._ticks.ticked > STALE_SECONDS:
            found.append("the drain has not gone round for half a minute")
        try:
            await self._db.read(_probe)
        except DatabaseUnavailable as error:
            found.append(f"the database is not available ({error.kind})")
        return found


async def _probe(tx: Tx) -> None:
    await tx.one("select 1 as answer")
