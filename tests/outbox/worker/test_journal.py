"""The journal: each event and attempt with its ids, before the result is stored."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest

from outbox.clock import SystemClock
from outbox.database.transaction import Database
from outbox.events import Cause, cause
from outbox.ids import Ids
from outbox.queue.drain.fanout import Announced
from outbox.queue.drain.rescue import Rescued
from outbox.queue.state.claimed_deliveries import Result
from outbox.queue.state.policy import Schedule
from outbox.sending.egress_guard import Guard
from outbox.sending.send import Sender
from outbox.webhooks.secrets import KeyRing
from outbox.worker import Worker, WorkerSettings
from outbox.worker.journal import Journal, attempt_fields, event_of
from tests.support.drain import RULES, add_webhook, inbox, make, ring, run
from tests.support.waiting import HANG_SECONDS, until

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
        settings=WorkerSettings(schedule=Schedule((0.05,) * 5), timeout=HANG_SECONDS),
    )  # fmt: skip
    task = asyncio.create_task(worker.run())
    try:
        yield worker
    finally:
        # Nothing hangs here: all that is under way ends, on a busy machine too.
        await worker.drain(HANG_SECONDS)
        await sender.close()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def caused(db: Database) -> str:
    """Write an event on behalf of a request; return its id."""
    cause.set(CAUSE)
    return await db.write(make, "r1")


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


async def test_a_delivery_that_cannot_be_sent_is_noted_as_unsent(db: Database) -> None:
    journal = Kept()
    keys = ring()
    async with inbox() as box:
        await add_webhook(db, keys, box.url)
        await caused(db)
        await db.write(run, "update events set body_digest = 'x'")
        async with working(db, journal, keys):
            await until(lambda: journal.results)
    [result] = journal.results
    fields = attempt_fields(result)
    assert event_of(result) == "unsent"
    assert (fields["state"], fields["reason"]) == ("dead", "the body of the event is damaged")
    assert "span_id" not in fields
    assert fields["request_id"] == "search-me"
