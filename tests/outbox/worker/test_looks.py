"""When the drain looks for work: as soon as there may be some, and without waiting for others."""

from __future__ import annotations

import pytest

from outbox.database.transaction import Database
from outbox.worker.joint_claimer import JointClaimer
from tests.support.drain import ring, worker_for

SQLITE = pytest.mark.parametrize("db_url", ["sqlite"], indirect=True)


@SQLITE
async def test_a_look_that_a_fault_prevented_is_made_in_the_next_turn(db: Database) -> None:
    worker, sender = worker_for(db, ring())
    taking = worker._claimer
    assert isinstance(taking, JointClaimer)
    await taking._settle_and_take(0, [])
    taking._orphans.append("claim")
    await db.close()
    assert await taking.take(0, set, set()) is None
    assert not taking._wakeups.looked
    await sender.close()
