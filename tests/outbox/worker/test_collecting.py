"""Results wait for the next event only while events follow closely and nothing needs the result."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from outbox.database.sqlite import write_queue, writer
from outbox.database.sqlite.steps import Job
from outbox.database.sqlite.writer import Writer
from outbox.database.transaction import Database, Tx, brief
from outbox.queue.state import policy
from outbox.queue.state.deliveries import Claimed, Result
from outbox.queue.state.policy import again
from outbox.worker import COLLECT_SECONDS, Worker
from tests.outbox.worker.test_settling import Stepped, result
from tests.support.drain import drain, inbox, make, ring, worker_for

SQLITE = pytest.mark.parametrize("db_url", ["sqlite"], indirect=True)
DELIVERED = replace(result("d", "w"), decision=policy.DELIVERED)


@brief
async def quick(tx: Tx, record: str) -> str:
    return await make(tx, record)


def heard(db: Database, *moments: float) -> Worker:
    """Return a worker, not running, that heard of events at these moments."""
    clock = Stepped()
    worker, _ = worker_for(db, ring(), clock)
    for moment in moments:
        clock.now = 1000.0 + moment
        worker._hear()
    worker._wake.clear()
    return worker


def waits(worker: Worker, put: Result) -> bool:
    worker._put(put)
    waiting = not worker._wake.is_set()
    worker._stop_timer()
    return waiting


@SQLITE
async def test_a_result_waits_while_events_follow_closely(db: Database) -> None:
    assert waits(heard(db, 0.0, COLLECT_SECONDS / 2), DELIVERED)


@SQLITE
async def test_the_first_result_after_silence_does_not_wait(db: Database) -> None:
    assert not waits(heard(db, 0.0, COLLECT_SECONDS * 2), DELIVERED)


def changed(**fields: Any) -> Claimed:
    return replace(DELIVERED.delivery, **fields)


@SQLITE
@pytest.mark.parametrize(
    "urgent",
    [
        replace(DELIVERED, decision=again("failed")),
        replace(DELIVERED, delivery=changed(tries=1)),
        replace(DELIVERED, delivery=changed(probe=True)),
        replace(DELIVERED, delivery=changed(ordered=True)),
    ],
    ids=["failed", "after_failures", "probe", "ordered"],
)
async def test_a_result_that_something_waits_for_is_written_now(
    db: Database, urgent: Result
) -> None:
    assert not waits(heard(db, 0.0, COLLECT_SECONDS / 2), urgent)


@SQLITE
async def test_no_result_waits_while_deliveries_wait(db: Database) -> None:
    worker = heard(db, 0.0, COLLECT_SECONDS / 2)
    worker._claimer.behind = True
    assert not waits(worker, DELIVERED)


@SQLITE
async def test_a_result_is_written_when_no_event_follows(db: Database) -> None:
    worker = heard(db, 0.0, COLLECT_SECONDS / 2)
    worker._put(DELIVERED)
    async with asyncio.timeout(10):
        await worker._wake.wait()


@SQLITE
async def test_an_event_and_its_claim_share_a_commit(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    # On a busy machine a batch may otherwise end, because its time is up.
    for module in (writer, write_queue):
        for limit in ("BATCH_SECONDS", "LONG_SECONDS", "SLICE_SECONDS"):
            monkeypatch.setattr(module, limit, 10.0, raising=False)
    batches: list[list[str]] = []
    real = Writer.end

    def ended(self: Writer) -> list[Job]:
        done = real(self)
        batches.append([job.unit.__name__ for job in done])
        return done

    async with inbox() as box, drain(db, ring()) as running:
        await running.webhook(box.url)
        await db.write(make, "r0")
        await running.watch.until("delivery_finished")
        monkeypatch.setattr(Writer, "end", ended)
        await db.write(quick, "r1")
        await running.watch.until("delivery_finished", 2)
        assert [units for units in batches if units] == [["quick", "take"], ["settle_and_take"]]


@SQLITE
async def test_a_write_that_fails_after_its_event_leaves_nothing(db: Database) -> None:
    @brief
    async def fails(tx: Tx) -> None:
        await make(tx, "never")
        raise ValueError("after the event")

    async with inbox() as box, drain(db, ring()) as running:
        await running.webhook(box.url)
        with pytest.raises(ValueError, match="after the event"):
            await db.write(fails)
        await db.write(make, "r1")
        await running.watch.until("delivery_finished")
        assert [b'"r1"' in got.body for got in box.got] == [True]
