"""Is this process fit to be sent requests? What /livez and /readyz answer."""

import asyncio
from typing import Protocol

from outbox.database.transaction import Database, Tx
from outbox.errors import DatabaseUnavailable
from outbox.worker import skew

STALE_SECONDS = 30.0
PROBE_SECONDS = 2.0
"""A database that takes longer to write one row is not fit for requests."""
FRESH_SECONDS = 1.0
"""Who asks again sooner gets the answer of before."""
FAULTS = {"read_only": "read-only", "full": "disk full"}


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
        self._probe: asyncio.Task[str | None] | None = None
        self._probed = float("-inf")
        self.draining = False

    async def faults(self) -> list[str]:
        """Why this process should get no requests now; empty when it may."""
        found = []
        if self.draining:
            found.append("shutting down")
        if self._delivers and self._db.clock.monotonic() - self._ticks.ticked > STALE_SECONDS:
            found.append("the drain has not gone round for half a minute")
        fault = await self._database_fault()
        if fault is not None:
            found.append(fault)
        return found

    async def _database_fault(self) -> str | None:
        """Of one try for all who ask within a second."""
        now = self._db.clock.monotonic()
        if self._probe is None or (self._probe.done() and now - self._probed > FRESH_SECONDS):
            self._probed = now
            self._probe = asyncio.create_task(self._try_a_write(), name="readiness")
        # Shielded: one who goes away takes the answer from nobody else.
        return await asyncio.shield(self._probe)

    async def _try_a_write(self) -> str | None:
        try:
            async with asyncio.timeout(PROBE_SECONDS):
                await self._db.write(_touch)
                ahead = await skew.measure(self._db, self._db.clock)
        except DatabaseUnavailable as error:
            return f"the database is not available ({FAULTS.get(error.kind, error.kind)})"
        except TimeoutError:
            return f"the database took no write within {PROBE_SECONDS:.0f} s"
        if abs(ahead) > skew.MOST_SECONDS:
            return f"this node's clock is {abs(ahead):.0f} s from the database server's"
        return None


async def _touch(tx: Tx) -> None:
    """A write that changes nothing, yet needs all that a write needs."""
    await tx.run(
        "update schema_migrations set applied_at = applied_at"
        " where component = 'outbox' and number = 1"
    )
