"""The product with a broken rule for recover jobs: their place moves before they replay.

Run in place of `python -m gateway`. A kill between the two transactions loses deliveries.
"""

from __future__ import annotations

import asyncio
import sys
from dataclasses import replace

from gateway.__main__ import main
from gateway.server.parts import Parts
from outbox.database.transaction import DUTIES, Database, Tx
from outbox.queue.replays import job_steps
from outbox.queue.replays.job_selection import EventPage
from outbox.queue.replays.jobs import Job
from outbox.queue.replays.snapshot_steps import Source
from outbox.queue.state import lanes
from outbox.worker.recovering import Recovering

BETWEEN_SECONDS = 2.0


class HastyRecovering(Recovering):
    """Stores the place, and then the replays."""

    def __init__(self, db: Database, source: Source | None = None) -> None:
        super().__init__(db, source)
        self.db = db

    async def step(self, job: Job) -> bool:
        found = await self.db.scan(DUTIES, job_steps.find, job)
        if found is None:
            return False
        passed = replace(found, events=(), more=True)
        if await self.db.write(job_steps.advance, job, passed) is None:
            return False
        await asyncio.sleep(BETWEEN_SECONDS)
        await self.db.write(_late, job, found)
        return True


async def _late(tx: Tx, job: Job, found: EventPage) -> None:
    await lanes.lock(tx, [job.webhook_id])
    made, refused = await job_steps.replay(tx, job, found.events)
    await tx.run(
        "update jobs set made = made + $2, refused = refused + $3,"
        " paced_at = $4, state = case when $5 then 'done' else state end where id = $1",
        job.id, made, refused, tx.now, not found.more,
    )  # fmt: skip


if __name__ == "__main__":
    sys.exit(main(parts=Parts(recovering=HastyRecovering)))
