"""When the drain looks for work: as soon as there may be some, and without waiting for others."""

from __future__ import annotations

import asyncio

import pytest
from aiohttp import web

from outbox.database.transaction import Database, Tx
from outbox.queue.state.policy import Schedule
from outbox.worker import claimer, windows
from outbox.worker.joint_claimer import JointClaimer
from tests.support.drain import add_webhook, drain, inbox, make, ring, worker_for

SQLITE = pytest.mark.parametrize("db_url", ["sqlite"], indirect=True)


async def test_the_last_failing_send_gives_its_place_to_another_webhook(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    # No poll finds it instead, and no send becomes slow on a busy machine.
    monkeypatch.setattr(claimer, "POLL_SECONDS", 600.0)
    monkeypatch.setattr(windows, "SLOW_SECONDS", 600.0)
    keys = ring()
    answer = asyncio.Event()

    async def slowly(_: web.Request) -> web.Response:
        await answer.wait()
        return web.Response()

    async with inbox() as first, inbox() as second, inbox() as quick:
        first.answer = slowly
        ids = [
            (await add_webhook(db, keys, box.url, name))[0]
            for box, name in ((first, "thing.failed"), (second, "thing.failed_later"))
        ]

        async def fail(tx: Tx, webhook_id: str) -> None:
            await tx.run("update lanes set failing = true where webhook_id = $1", webhook_id)
            await tx.run("update webhooks set failures = 1 where id = $1", webhook_id)

        for webhook_id in ids:
            await db.write(fail, webhook_id)
        # With so few slots, one place is for all failing webhooks.
        never = Schedule((600.0,))
        async with drain(db, keys, slots=4, schedule=never) as running:
            await running.webhook(quick.url)
            await db.write(make, "r1", "thing.failed")
            await first.until(1)
            await db.write(make, "r2", "thing.failed_later")
            # Looks that find nothing, because the place is in use.
            for number in range(1, 4):
                await db.write(make, f"q{number}")
                await running.watch.until("delivery_finished", number)
            assert not second.got
            answer.set()
            await second.until(1)


@SQLITE
async def test_a_look_that_a_fault_prevented_is_made_in_the_next_turn(db: Database) -> None:
    worker, sender = worker_for(db, ring())
    taking = worker._claimer
    assert isinstance(taking, JointClaimer)
    await taking._settle_and_take(0, [])
    taking._orphans.append("claim")
    await db.close()
    assert await taking.take(0, set, set()) is None
    assert not taking._looked
    await sender.close()
