"""Checks whether this process is ready for requests, for /readyz."""

import asyncio
import os
import shutil
from pathlib import Path
from typing import Protocol

from aiohttp import web

from outbox.database.transaction import Database, Tx
from outbox.errors import DatabaseUnavailable
from outbox.worker import skew

STALE_SECONDS = 30.0
PROBE_SECONDS = 2.0
"""A database that needs longer to write one row is not ready."""
FRESH_SECONDS = 1.0
"""An earlier probe is reused for this time."""
LEAST_FREE = 2**20
"""Bytes that must be free beside an SQLite file. The row of a probe fits into the log as it is, so
it can be written when nothing else can."""
ROOM_SECONDS = 5.0
"""PostgreSQL is asked for room after this time; after a write that found none, by each probe."""
FAULTS = {"read_only": "read-only", "full": "disk full"}
# The touched row fits into its page when no other write finds room. As the memory is too small for
# these pages, the server puts them into a file beside its tables, a MiB, and deletes it at once. A
# server that limits such files is not asked.
BESIDE = "select set_config('work_mem', '64kB', true), set_config('temp_tablespaces', '', true)"
ROOM = """
with pages as materialized (
  select repeat('x', 8192) from generate_series(1, case
    when pg_size_bytes(current_setting('temp_file_limit')) between 0 and 2097152 then 0
    else 128 end))
select count(*) from pages
"""
UNAVAILABLE = "the database is not available ({})"


class Ticks(Protocol):
    """Tells moments, in monotonic seconds."""

    @property
    def ticked(self) -> float:
        """The drain's last loop."""

    @property
    def found_full(self) -> float:
        """The last time that the database had no room."""


class Health:
    """The checks of readiness."""

    def __init__(
        self, db: Database, ticks: Ticks, *, delivers: bool, file: Path | None = None
    ) -> None:
        self._db = db
        self._file = file
        self._ticks = ticks
        self.delivers = delivers
        self._probe: asyncio.Task[str | None] | None = None
        self._probed = float("-inf")
        self._had_room = float("-inf")
        self.draining = False

    async def faults(self) -> list[str]:
        """Return why this process is not ready; empty when it is."""
        faults = []
        if self.draining:
            faults.append("shutting down")
        if self.delivers and self._db.clock.monotonic() - self._ticks.ticked > STALE_SECONDS:
            faults.append("the drain has not run for half a minute")
        fault = await self._database_fault()
        if fault is not None:
            faults.append(fault)
        return faults

    async def _database_fault(self) -> str | None:
        """Return the fault of a write; probes within a second share one write."""
        now = self._db.clock.monotonic()
        if self._probe is None or (self._probe.done() and now - self._probed > FRESH_SECONDS):
            self._probed = now
            self._probe = asyncio.create_task(self._try_a_write(), name="readiness")
        # Shielded, so that one cancelled request does not cancel the probe of others.
        return await asyncio.shield(self._probe)

    async def _try_a_write(self) -> str | None:
        room = LEAST_FREE
        now = self._db.clock.monotonic()
        due = now - self._had_room >= ROOM_SECONDS or self._ticks.found_full >= self._had_room
        try:
            async with asyncio.timeout(PROBE_SECONDS):
                await self._db.write(_touch, due)
                if due:
                    self._had_room = now
                ahead = await skew.measure(self._db, self._db.clock)
                if self._file is not None:
                    # In a thread, since a file system may hang.
                    room = await asyncio.to_thread(_room, self._file)
        except DatabaseUnavailable as error:
            return UNAVAILABLE.format(FAULTS.get(error.kind, error.kind))
        except TimeoutError:
            return f"the database did not complete a write within {PROBE_SECONDS:.0f} s"
        if room < LEAST_FREE:
            return UNAVAILABLE.format(FAULTS["full"])
        if abs(ahead) > skew.MOST_SECONDS:
            return f"this node's clock differs by {abs(ahead):.0f} s from the database server's"
        return None


async def _touch(tx: Tx, room: bool) -> None:
    """Write a row without changing it, and with `room` find out whether others may become longer.

    On SQLite the file system tells that.
    """
    if room and tx.engine == "postgres":
        await tx.one(BESIDE)
        await tx.one(ROOM)
    await tx.run(
        "update schema_migrations set applied_at = applied_at"
        " where component = 'outbox' and number = 1"
    )


def _room(file: Path) -> int:
    """Return the free bytes of the file system of `file`; enough where it cannot tell."""
    try:
        return shutil.disk_usage(os.path.dirname(file) or ".").free
    except OSError:
        return LEAST_FREE


HEALTH = web.AppKey("HEALTH", Health)
