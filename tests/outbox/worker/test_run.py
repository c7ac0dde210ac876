"""A worker in the background of a process."""

import asyncio

from outbox.database.transaction import Database
from outbox.sending.egress_guard import Guard
from outbox.worker import WorkerSettings
from outbox.worker.background_worker import Running
from tests.support.drain import RULES, Counted, ring


def drains() -> int:
    return sum(task.get_name() == "delivery" for task in asyncio.all_tasks())


async def test_a_second_start_starts_no_second_drain(db: Database) -> None:
    guard = Guard(RULES, db.clock)
    try:
        db.observer = watch = Counted()
        delivery = Running(db, ring(), guard, WorkerSettings())
        delivery.start()
        delivery.start()
        assert drains() == 1
        await watch.until("slots")
        await delivery.drain(1.0)
        assert not drains()
        # Until the next start it has no slots.
        assert watch.counts["drain_ended"] == 1
        delivery.start()
        assert drains() == 1
        await delivery.drain(1.0)
    finally:
        await guard.close()
