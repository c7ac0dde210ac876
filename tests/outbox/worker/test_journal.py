"""The journal: each event and attempt with its ids, before the result is stored."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest
import structlog
from aiohttp import web

from outbox.clock import SystemClock
from outbox.database.transaction import Database, Tx
from outbox.events import Cause, cause
from outbox.ids import Ids
from outbox.queue.drain.fanout import Announced
from outbox.queue.drain.rescue import Rescued
from outbox.queue.state.deliveries import Result
from outbox.queue.state.policy import Schedule
from outbox.sending.guard import Guard
from outbox.sending.request import span_of, trace_of
from outbox.sending.send import Sender
from outbox.webhooks.secrets import KeyRing
from outbox.worker import Worker, WorkerSettings
from outbox.worker.journal import Journal, Log, attempt_fields, event_of, rescued_fields
from tests.support.drain import RULES, add_webhook, inbox, make, ring

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
CAUSE = Cause("search-me", f"00-{TRACE}-00f067aa0ba902b7-01")
STATE = "select state from deliveries"


@dataclass
class Kept:
    """A journal that keeps what it gets, and the state of the delivery in the file then."""

    file: str = ""
    events: list[Announced] = field(default_factory=list)
    results: list[Result] = field(default_factory=list)
    lost: list[Rescued] = field(default_factory=list)
    states: list[str] = field(default_factory=list)

    def fanned_out(self, events: Sequence[Announced]) -> None:
        self.events += events

    def attempted(self, result: Result) -> None:
        self.results.append(result)
        if self.file:
            other = sqlite3.connect(self.file)
            self.states += [state for (state,) in other.execute(STATE)]
            other.close()

    def rescued(self, deliveries: Sequence[Rescued]) -> None:
        self.lost += deliveries


@asynccontextmanager
async def working(db: Database, journal: Journal, keys: KeyRing) -> AsyncIterator[Worker]:
    clock = SystemClock()
    sender = Sender(Guard(RULES, clock), clock)
    worker = Worker(
        db, keys, sender, clock=clock, ids=Ids(), journal=journal,
        settings=WorkerSettings(schedule=Schedule((0.05,) * 5), timeout=5.0),
    )  # fmt: skip
    task = asyncio.create_task(worker.run())
    try:
        yield worker
    finally:
        # Nothing hangs here: all that is under way ends, on a busy machine too.
        await worker.drain(20.0)
        await sender.close()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def caused(db: Database) -> str:
    """Write an event on behalf of a request; return its id."""
    cause.set(CAUSE)
    return await db.write(make, "r1")


async def run(tx: Tx, statement: str) -> int:
    return await tx.run(statement)


async def test_each_attempt_is_named_with_what_the_receiver_got(db: Database) -> None:
    journal = Kept()
    answers = [503, 503, 200]

    async def answer(request: web.Request) -> web.StreamResponse:
        return web.Response(status=answers.pop(0))

    keys = ring()
    async with inbox() as box:
        box.answer = answer
        webhook_id, _ = await add_webhook(db, keys, box.url)
        async with working(db, journal, keys):
            event_id = await caused(db)
            seen = await box.until(3)
    records = [attempt_fields(result) for result in journal.results]
    assert [event_of(result) for result in journal.results] == ["attempt"] * 3
    assert [fields["span_id"] for fields in records] == [
        got.headers["traceparent"].split("-")[2] for got in seen
    ]
    assert len({fields["span_id"] for fields in records}) == 3
    assert [fields["attempt"] for fields in records] == [1, 2, 3]
    for fields, got in zip(records, seen, strict=True):
        assert fields["event_id"] == event_id == got.headers["webhook-id"]
        assert fields["trace_id"] == TRACE == trace_of(got.headers["traceparent"])
        assert (fields["request_id"], fields["webhook_id"]) == ("search-me", webhook_id)
    assert [fields["outcome"] for fields in records] == ["throttled", "throttled", "success"]
    assert ["next_attempt_at" in fields for fields in records] == [True, True, False]
    [event] = journal.events
    assert (event.event_id, event.request_id, event.deliveries) == (event_id, "search-me", 1)


@pytest.mark.parametrize("db_url", ["sqlite"], indirect=True)
async def test_an_attempt_is_noted_before_its_result_is_stored(db: Database, db_url: str) -> None:
    """A kill in between leaves the record; the other order would leave none."""
    journal = Kept(db_url.removeprefix("sqlite:///"))
    keys = ring()
    async with inbox() as box:
        await add_webhook(db, keys, box.url)
        async with working(db, journal, keys):
            await caused(db)
            await box.until(1)
    assert journal.states == ["in_flight"]


async def test_an_attempt_of_a_killed_process_is_noted_with_its_span(db: Database) -> None:
    journal = Kept()
    keys = ring()
    async with inbox() as box:
        await add_webhook(db, keys, box.url)
        async with working(db, Kept(), keys):
            event_id = await caused(db)
            await box.until(1)
        # As if the process had been killed before it stored the result.
        await db.write(
            run,
            "update deliveries set state = 'in_flight', claim = 'c', node_id = 'dead',"
            " finished_at = null",
        )
        await db.write(run, "delete from attempts")
        async with working(db, journal, keys):
            seen = await box.until(2)
    [lost] = journal.lost
    fields = rescued_fields(lost)
    first, second = (got.headers["traceparent"].split("-")[2] for got in seen)
    assert fields["span_id"] == first
    assert fields["event_id"] == event_id
    assert (fields["request_id"], fields["trace_id"]) == ("search-me", TRACE)
    assert (fields["attempt"], fields["state"]) == (1, "ready")
    [again] = journal.results
    assert attempt_fields(again)["span_id"] == second


async def test_a_delivery_that_cannot_be_sent_is_noted_as_unsent(db: Database) -> None:
    journal = Kept()
    keys = ring()
    async with inbox() as box:
        await add_webhook(db, keys, box.url)
        await caused(db)
        await db.write(run, "update events set body_digest = 'x'")
        async with working(db, journal, keys):
            async with asyncio.timeout(20):
                while not journal.results:
                    await asyncio.sleep(0.01)
    [result] = journal.results
    fields = attempt_fields(result)
    assert event_of(result) == "unsent"
    assert (fields["state"], fields["reason"]) == ("dead", "the body of the event is damaged")
    assert "span_id" not in fields
    assert fields["request_id"] == "search-me"


async def test_an_event_without_a_request_is_noted_without_one(db: Database) -> None:
    journal = Kept()
    keys = ring()
    async with inbox() as box:
        await add_webhook(db, keys, box.url)
        await db.write(make, "r1")
        await db.write(run, "update events set traceparent = 'damaged'")
        async with working(db, journal, keys):
            [got] = await box.until(1)
    [result] = journal.results
    assert {"request_id", "trace_id", "span_id"} & attempt_fields(result).keys() == set()
    assert "traceparent" not in {name.lower() for name in got.headers}


def test_the_log_of_the_engine_alone_has_the_same_fields() -> None:
    lost = Rescued("d1", "e1", "w1", 3, "ready", "search-me", CAUSE.traceparent)
    with structlog.testing.capture_logs() as lines:
        Log().rescued([lost])
        Log().fanned_out([Announced("e1", "thing.made", "r1", "search-me", None, 7, 2)])
    assert lines == [
        {
            "event": "attempt_unrecorded", "log_level": "warning", "request_id": "search-me",
            "trace_id": TRACE, "span_id": span_of("d1", 3), "event_id": "e1", "delivery_id": "d1",
            "webhook_id": "w1", "attempt": 3, "state": "ready",
        },
        {
            "event": "fanned_out", "log_level": "info", "request_id": "search-me",
            "event_id": "e1", "event_name": "thing.made", "record_id": "r1", "seq": 7,
            "deliveries": 2,
        },
    ]  # fmt: skip
