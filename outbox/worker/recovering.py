"""Run the jobs that recover, backfill and send snapshots: a step of each in turn.

A job makes no more in a second than its rate, and a step no more than it may cost others.
"""

from __future__ import annotations

import asyncio

import structlog

from outbox.database.fair_limit import Crowded
from outbox.database.pacing import JobPace
from outbox.database.transaction import DUTIES, Database
from outbox.errors import DatabaseUnavailable
from outbox.queue.replays import job_steps, jobs, snapshot_steps
from outbox.queue.replays.job_steps import Step
from outbox.queue.replays.jobs import Job
from outbox.queue.replays.snapshot_steps import Source

TICK_SECONDS = 0.05
"""After a round without a step."""
LONGEST_TICK_SECONDS = 0.8
"""The longest time between rounds without a step; a rate keeps what it allowed in a second."""
LEAST = 10
"""Events of a step that others feel, however small it is."""
AT_ONCE = 100
"""Jobs of one round. More take turns, as some may wait for their receivers for days."""

log = structlog.get_logger("outbox")


class Recovering:
    """The runner of the jobs; one of all nodes runs it, and two do no harm.

    Without a `source` of records, it leaves snapshots to another process.
    """

    def __init__(self, db: Database, source: Source | None = None) -> None:
        self._db = db
        self._source = source
        self._pace = JobPace(db.meter, job_steps.MOST[db.engine], LEAST, clock=db.clock)

    async def any_running(self) -> bool:
        """Return whether a job runs at an active webhook."""
        return bool(await self._running(1))

    async def run_once(self) -> None:
        """Run until no job runs at an active webhook."""
        with self._pace.running():
            await self._run()

    async def _run(self) -> None:
        after, pause = "", TICK_SECONDS
        while (running := await self._running(AT_ONCE, after)) or after:
            moved = [await self.step(job) for job in running]
            after = running[-1].id if len(running) == AT_ONCE else ""
            if any(moved):
                pause = TICK_SECONDS
                continue
            await asyncio.sleep(pause)
            pause = min(pause * 2, LONGEST_TICK_SECONDS)

    async def _running(self, most: int, after: str = "") -> list[Job]:
        snapshots = self._source is not None
        return await self._db.read(jobs.running, most, after=after, snapshots=snapshots)

    async def step(self, job: Job) -> bool:
        """Move a job on as far as its rate allows, in one transaction; end one that cannot run.

        Return False if it has to wait.
        """
        if job.reason is not None:
            await self._fail(job, job.reason)
            return True
        try:
            return await self._move(job)
        except Crowded:
            # Too many other scans of the installation wait; the next round tries again.
            return False
        except DatabaseUnavailable as error:
            if error.kind != "busy":
                raise
            # Its search may be too long for one statement; the other jobs go on.
            log.warning("job_put_off", job=job.id, webhook_id=job.webhook_id, error=str(error))
            return False
        except Exception:
            # An error ends this job alone.
            log.exception("job_error", job=job.id, webhook_id=job.webhook_id)
            await self._fail(job, jobs.FAILED)
            return True

    async def _fail(self, job: Job, reason: str) -> None:
        if await self._db.write(jobs.cancel, job.id, reason):
            self._db.observer.job_ended(job.kind, "cancelled")
            log.error("job_failed", job=job.id, webhook_id=job.webhook_id, reason=reason)

    async def _move(self, job: Job) -> bool:
        step = await (self._replay(job) if job.kind != "snapshot" else self._send_copies(job))
        if step is None:
            return False
        if step.made:
            self._db.observer.job_made(job.kind, step.made)
        if step.done:
            self._db.observer.job_ended(job.kind, "done")
            log.info(
                "job_done", job=job.id, kind=job.kind, webhook_id=job.webhook_id,
                made=job.made + step.made, refused=job.refused + step.refused,
            )  # fmt: skip
        return True

    async def _replay(self, job: Job) -> Step | None:
        allowed = job_steps.allowance(job, self._db.clock.wall(), self._pace.amount)
        if not allowed:
            return None
        async with self._pace.step() as most:
            # The search reads many rows, so it holds up nobody's transaction.
            events = await self._db.scan(DUTIES, job_steps.find, job, min(allowed, most))
            if events is None:
                return None
            return await self._db.write(job_steps.advance, job, events)

    async def _send_copies(self, job: Job) -> Step | None:
        allowed = self._pace.amount
        if self._source is None or await self._db.read(snapshot_steps.behind, job, allowed):
            return None
        async with self._pace.step() as most:
            return await self._db.write(
                snapshot_steps.advance, job, self._source, min(allowed, most)
            )
