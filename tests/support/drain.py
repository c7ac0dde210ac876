"""The engine with real parts: webhooks in a database, a drain, and a receiver on loopback."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

from outbox import webhooks
from outbox.clock import Clock, SystemClock
from outbox.database.transaction import Database, Row, Tx
from outbox.events import enqueue
from outbox.ids import Ids
from outbox.observer import Observer
from outbox.queue.state.claimed_deliveries import Claimed, ClaimedEvent
from outbox.queue.state.creation_snapshots import forget_since
from outbox.queue.state.policy import Schedule
from outbox.sending.addresses import Rules, parse_place
from outbox.sending.egress_guard import Guard
from outbox.sending.request import new_secret
from outbox.sending.send import Sender
from outbox.webhooks import Draft
from outbox.webhooks.secrets import KeyRing, new_key_line, parse_keys
from outbox.worker import Worker, WorkerSettings
from tests.support.receiver import Received, Receiver, receiver
from tests.support.waiting import HANG_SECONDS

OWNER = "0" * 24
RULES = Rules(allow_http=True, allow=(parse_place("127.0.0.0/8"),))


def ring() -> KeyRing:
    ids = Ids()
    return parse_keys(new_key_line(ids, SystemClock().wall()), ids, "the test's ring")


class Still(SystemClock):
    """A clock by which no send becomes slow, so that no slot is given back."""

    def monotonic(self) -> float:
        return 1_000.0


Got = Received
Inbox = Receiver
inbox = receiver


class Counted(Observer):
    """An observer that counts calls and wakes tests that wait for a count."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self._changed = asyncio.Event()
        for name in vars(Observer):
            if not name.startswith("_"):
                setattr(self, name, self.__getattr__(name))

    def __getattr__(self, name: str) -> Callable[..., None]:
        def note(*args: Any) -> None:
            words = [str(arg) for arg in args if isinstance(arg, str | int)]
            for key in {name, " ".join([name, *words])}:
                self.counts[key] = self.counts.get(key, 0) + 1
            self._changed.set()

        return note

    async def until(self, key: str, count: int = 1, seconds: float = HANG_SECONDS) -> None:
        """Wait until `key` (a method, or it and non-float arguments) was called `count` times."""
        async with asyncio.timeout(seconds):
            while self.counts.get(key, 0) < count:
                self._changed.clear()
                await self._changed.wait()


@dataclass
class Drain:
    """A running worker with its parts."""

    db: Database
    ring: KeyRing
    worker: Worker
    watch: Counted

    async def webhook(self, url: str, *events: str, owner: str = OWNER, **draft: Any) -> str:
        webhook_id, _ = await add_webhook(self.db, self.ring, url, *events, owner=owner, **draft)
        return webhook_id


async def add_webhook(
    db: Database, ring: KeyRing, url: str, *events: str, owner: str = OWNER, **draft: Any
) -> tuple[str, str]:
    """Create a webhook; return its id and its secret."""
    secret = new_secret(Ids().token(32))
    webhook_id = await db.write(
        webhooks.create,
        owner_id=owner,
        draft=Draft(url=url, events=events or ("thing.made",), **draft),
        secret=secret,
        ring=ring,
    )
    return webhook_id, secret


def claimed(
    webhook_id: str, owner_id: str = "o", body: bytes = b"", *, delivery_id: str = "d",
    event_id: str = "e",
) -> Claimed:  # fmt: skip
    """Return a first attempt as a worker claims it."""
    event = ClaimedEvent(
        id=event_id, name="thing.made", record_id="r", record_version=1, occurred_at=0,
        request_id=None, traceparent=None, body=body, body_digest="",
    )  # fmt: skip
    return Claimed(
        id=delivery_id, owner_id=owner_id, webhook_id=webhook_id, origin="event", claim="c",
        event=event,
    )  # fmt: skip


async def make(tx: Tx, record: str, name: str = "thing.made", owner: str = OWNER) -> str:
    """Return a unit that writes one event."""
    return enqueue(
        tx, owner_id=owner, name=name, record_id=record, record_version=1, data={"id": record}
    )


async def make_many(tx: Tx, count: int, owner: str = OWNER) -> list[str]:
    return [await make(tx, f"record-{n}", owner=owner) for n in range(count)]


async def rows(tx: Tx, sql: str, *args: Any) -> list[Row]:
    return await tx.all(sql, *args)


async def run(tx: Tx, sql: str, *args: Any) -> int:
    return await tx.run(sql, *args)


async def all_forgotten(db: Database) -> bool:
    """Return whether no webhook needs its creation snapshot any longer.

    A snapshot is of the whole PostgreSQL server: transactions of other tests hold it, too.
    """
    await db.write(forget_since)
    return not await db.read(rows, "select 1 as one from webhooks where since_snapshot is not null")


def worker_for(
    db: Database, ring: KeyRing, clock: Clock | None = None, **settings: Any
) -> tuple[Worker, Sender]:
    """Return a worker that reports to the observer of `db`, and its sender."""
    clock = clock or SystemClock()
    sender = Sender(Guard(RULES, clock), clock)
    quick = WorkerSettings(schedule=Schedule((0.05,) * 5), timeout=HANG_SECONDS)
    chosen = replace(quick, **settings)
    worker = Worker(db, ring, sender, clock=clock, ids=Ids(), settings=chosen)
    return worker, sender


@asynccontextmanager
async def drain(
    db: Database, ring: KeyRing, clock: Clock | None = None, **settings: Any
) -> AsyncIterator[Drain]:
    """Run a worker until the block ends; `settings` are those of WorkerSettings."""
    db.observer = watch = Counted()
    worker, sender = worker_for(db, ring, clock, **settings)
    task = asyncio.create_task(worker.run())
    try:
        yield Drain(db, ring, worker, watch)
    finally:
        await worker.drain(1.0)
        await sender.close()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
