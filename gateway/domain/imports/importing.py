"""Runs the imports: a step of one import of each owner in turn. One of all nodes runs it."""

import asyncio

import structlog

from gateway.domain.imports import jobs, steps, upkeep
from gateway.domain.imports.jobs import Import
from outbox.database.transaction import Database
from outbox.errors import DatabaseUnavailable

OWNERS = 50
"""Owners of one round."""
PAUSE_SECONDS = 0.005
"""After each step, so that other work comes between."""
_BROKEN = "An error in Carteiro stopped it; its log has the reason. What was imported stays."

log = structlog.get_logger("gateway")


class Importing:
    """The runner of the imports; two of them do no harm."""

    def __init__(self, db: Database) -> None:
        self._db = db

    async def any_waiting(self) -> bool:
        """Return whether an import runs, or has ended and still has lines."""
        return bool(await self._db.read(upkeep.turns, 1))

    async def run_once(self) -> None:
        """Run until no import runs."""
        while turns := await self._db.read(upkeep.turns, OWNERS):
            for job in turns:
                await self.step(job)
                await asyncio.sleep(PAUSE_SECONDS)

    async def step(self, job: Import) -> None:
        """Move an import on, or delete lines of one that has ended."""
        if not job.is_open:
            await jobs.clear(self._db, job.id)
            return
        try:
            await self._move(job)
        except DatabaseUnavailable:
            raise
        except Exception:
            # An error ends this import alone.
            log.exception("import_error", job=job.id)
            await self._db.write(jobs.fail, job.id, _BROKEN)
            await jobs.clear(self._db, job.id)

    async def _move(self, job: Import) -> None:
        try:
            await steps.step(self._db, job)
        except DatabaseUnavailable as error:
            if error.kind != "busy":
                raise
            # Too much for the time limit of a transaction, on a slow database.
            await steps.step(self._db, job, 1)
