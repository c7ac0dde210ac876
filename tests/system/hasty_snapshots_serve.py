"""The product with a broken rule for snapshots: their place moves before their events are made.

Run in place of `python -m gateway`. A kill between the two transactions loses records.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence

from gateway.__main__ import main
from gateway.server.parts import Parts
from outbox.database.transaction import Database, Tx
from outbox.events import enqueue
from outbox.queue.replays import snapshot_steps
from outbox.queue.replays.jobs import Job
from outbox.queue.replays.snapshot_steps import Copy, Source
from outbox.worker.recovering import Recovering

BETWEEN_SECONDS = 1.0


class HastyRecovering(Recovering):
    """Stores the place of a snapshot, and then its events."""

    def __init__(self, db: Database, source: Source | None = None) -> None:
        super().__init__(db, source)
        self.db = db
        self.source = source

    async def step(self, job: Job) -> bool:
        if self.source is None or await self.db.read(snapshot_steps.behind, job):
            return False
        found = await self.db.write(_pass, job, self.source)
        await asyncio.sleep(BETWEEN_SECONDS)
        await self.db.write(_late, job, found)
        return True


async def _pass(tx: Tx, job: Job, source: Source) -> Sequence[Copy]:
    [name] = job.names or ()
    place = job.reached_at, job.reached
    found = await source(tx, job.owner_id, name, place, snapshot_steps.MOST)
    await tx.run(
        "update jobs set reached_at = $2, reached = $3, made = made + $4,"
        " state = case when $5 then 'done' else state end where id = $1",
        job.id, *((found[-1].created_at, found[-1].record_id) if found else place), len(found),
        not found,
    )  # fmt: skip
    return found


async def _late(tx: Tx, job: Job, found: Sequence[Copy]) -> None:
    [name] = job.names or ()
    for copy in found:
        enqueue(
            tx, owner_id=job.owner_id, name=name, record_id=copy.record_id,
            record_version=copy.version, data=copy.data, webhook_id=job.webhook_id,
            about_id=job.id, record_fields=copy.fields,
        )  # fmt: skip


if __name__ == "__main__":
    sys.exit(main(parts=Parts(recovering=HastyRecovering)))
