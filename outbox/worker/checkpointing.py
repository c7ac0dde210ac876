"""The duty that makes a checkpoint of each owner's chains that have grown, and deletes old ones.

It looks at one part of an owner's chains at a time, as far as that delays nobody.
"""

from __future__ import annotations

import structlog

from outbox.database.pacing import JobPace
from outbox.database.transaction import DUTIES, Database
from outbox.durations import DAY
from outbox.queue.proof import chain_checkpoints
from outbox.sending.ed25519 import SEED_BYTES
from outbox.webhooks.secrets import KeyRing, SealBroken

OWNERS = 100
PURGED = 100

log = structlog.get_logger("outbox")


class Checkpointing:
    """Makes and deletes checkpoints. Run one at a time; a run may be interrupted."""

    def __init__(self, db: Database, ring: KeyRing, *, days: int) -> None:
        self._db = db
        self._ring = ring
        self._age = days * DAY
        self._pace = JobPace(db.meter, PURGED, clock=db.clock)

    async def run_once(self) -> None:
        """Make what is due of all owners, then delete what is older than the log."""
        after = ""
        while page := await self._db.scan(DUTIES, chain_checkpoints.owners, after, OWNERS):
            after = page[-1]
            for owner_id in page:
                try:
                    await self._of(owner_id)
                except SealBroken as error:
                    log.error("checkpoint_unsigned", error=str(error))
                    return
        while True:
            async with self._pace.step() as most:
                count = await self._db.write(chain_checkpoints.purge, self._age, most)
            if count < most:
                break

    async def _of(self, owner_id: str) -> None:
        after: str | None = ""
        while after is not None:
            async with self._pace.step():
                part = await self._db.read(chain_checkpoints.part, owner_id, after)
                if part.grown:
                    seed = self._db.ids.token(SEED_BYTES)
                    await self._db.write(chain_checkpoints.make, owner_id, after, self._ring, seed)
            after = part.last
