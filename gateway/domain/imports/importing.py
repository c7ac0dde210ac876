"""Runs the imports: a step of one import of each owner in turn. One of all nodes runs it."""

from collections.abc import Collection

import structlog

from gateway.domain.imports import import_jobs, import_steps, upkeep
from gateway.domain.imports.import_jobs import Import
from outbox.database.pacing import JobPace
from outbox.database.transaction import Database
from outbox.errors import DatabaseUnavailable

OWNERS = 50
"""Owners of one round."""
LEAST = 5
"""Lines of a step that others feel, however small it is."""
_BROKEN = "An error in Carteiro stopped it; its log has the reason. What was imported stays."

log = structlog.get_logger("gateway")


class Importing:
    """The runner of the imports; two of them do no harm."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._pace = JobPace(db.meter, import_steps.MOST[db.engine], LEAST, clock=db.clock)

    async def any_waiting(self) -> bool:
        """Return whether an import runs, or has ended and still has lines."""
        return bool(await self._db.read(upkeep.turns, 1))

    async def run_once(self) -> None:
        """Run until no import runs.

        One whose next line waits too long, such as for the lock of a record, is left to the next
        run, so that it holds up no other owner; its error is raised at the end.
        """
        late: dict[str, DatabaseUnavailable] = {}
        while turns := await self._turns(late):
            for job in turns:
                try:
                    await self.step(job)
                except DatabaseUnavailable as error:
                    if error.kind != "busy":
                        raise
                    late[job.id] = error
        if late:
            raise next(iter(late.values()))

    async def _turns(self, late: Collection[str]) -> list[Import]:
        found = await self._db.read(upkeep.turns, OWNERS + len(late))
        return [job for job in found if job.id not in late]

    async def step(self, job: Import) -> None:
        """Move an import on, or delete lines of one that has ended."""
        if not job.is_open:
            async with self._pace.step():
                await import_jobs.clear(self._db, job.id)
            return
        try:
            async with self._pace.step() as most:
                await self._move(job, most)
        except DatabaseUnavailable:
            raise
        except Exception:
            # An error ends this import alone.
            log.exception("import_error", job=job.id)
            await self._db.write(import_jobs.fail, job.id, _BROKEN)
            await import_jobs.clear(self._db, job.id)

    async def _move(self, job: Import, most: int) -> None:
        try:
            await import_steps.step(self._db, job, most)
        except DatabaseUnavailable as error:
            if error.kind != "busy":
                raise
            # Too much for the time limit of a transaction, on a slow database.
            await import_steps.step(self._db, job, 1)
