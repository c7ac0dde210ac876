"""Jobs take turns: those that wait for their receivers hold up no others."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from outbox.database.transaction import Database, Tx
from outbox.queue.replays import jobs, snapshot_steps
from outbox.queue.replays.snapshot_steps import Copy
from outbox.worker import recovering
from outbox.worker.recovering import Recovering
from tests.support.drain import OWNER, add_webhook, make, ring
from tests.support.lines import URL, fanned, lane_locked
from tests.support.waiting import until


async def records(
    tx: Tx, owner_id: str, name: str, after: tuple[int, str], most: int
) -> Sequence[Copy]:
    """Return the only record."""
    return [] if after[1] else [Copy("record", 1, 5, {"id": "record"}, {})]


async def snapshot(db: Database, webhook_id: str, name: str) -> str:
    return await db.write(
        jobs.create_snapshot, owner_id=OWNER, webhook_id=webhook_id, user_id="maria",
        names=(name,), rate=1000, total=1,
    )  # fmt: skip


@pytest.mark.slow
async def test_snapshots_that_wait_for_their_receivers_hold_up_no_others(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recovering, "AT_ONCE", 2)
    monkeypatch.setattr(snapshot_steps, "WAITING", 1)
    keys = ring()
    stuck, _ = await add_webhook(db, keys, URL, "thing.stuck")
    free, _ = await add_webhook(db, keys, URL, "thing.made")
    # Nobody sends, so this delivery waits.
    await db.write(make, "first", "thing.stuck")
    await fanned(db)
    for _ in range(4):
        await snapshot(db, stuck, "thing.stuck")
    last = await snapshot(db, free, "thing.made")
    run = asyncio.create_task(Recovering(db, records).run_once())

    async def ended() -> jobs.Job | None:
        assert not run.done()
        job = await db.read(jobs.one, last)
        return job if job is not None and job.state != "running" else None

    try:
        job = await until(ended)
        assert db.meter.jobs, "others are measured between steps, too"
    finally:
        run.cancel()
        await asyncio.gather(run, return_exceptions=True)
    assert not db.meter.jobs
    assert job is not None
    assert (job.state, job.made) == ("done", 1)
    waiting = await db.read(jobs.running)
    assert [(job.webhook_id, job.made) for job in waiting] == [(stuck, 0)] * 4


@pytest.mark.slow
@pytest.mark.parametrize("db_url", ["postgres"], indirect=True)
async def test_a_job_at_a_locked_lane_holds_up_no_others(db: Database) -> None:
    keys = ring()
    held, _ = await add_webhook(db, keys, URL, "thing.made")
    free, _ = await add_webhook(db, keys, URL, "thing.made")
    first = await snapshot(db, held, "thing.made")
    last = await snapshot(db, free, "thing.made")
    async with lane_locked(db, held):
        # Its statements wait a second for a lock.
        run = asyncio.create_task(Recovering(db.apart("drain"), records).run_once())

        async def ended(job_id: str) -> bool:
            job = await db.read(jobs.one, job_id)
            return job is not None and job.state == "done"

        await until(lambda: ended(last))
        assert not run.done()
        assert not await ended(first)
    await run
    assert await ended(first)
