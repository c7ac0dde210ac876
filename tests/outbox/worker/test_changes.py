"""An owner's edit, pause or delete applies to a request that is not sent yet."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from aiohttp import web

from outbox import webhooks
from outbox.clock import SystemClock
from outbox.database.transaction import Database
from outbox.ids import Ids
from outbox.queue.upkeep import parking
from outbox.sending.egress_guard import Guard
from outbox.sending.send import Sender
from outbox.webhooks import Draft
from outbox.webhooks.secrets import KeyRing
from outbox.worker import Worker, WorkerSettings
from tests.support.chains import walked
from tests.support.drain import RULES, Counted, Inbox, drain, inbox, make, make_many, ring, rows
from tests.support.waiting import HANG_SECONDS, until


async def _fanned_out(db: Database, count: int) -> bool:
    return len(await db.read(rows, "select id from deliveries")) == count


async def _none_left(db: Database) -> bool:
    return not await db.read(rows, "select 1 as one from deliveries where finished_at is null")


@dataclass
class SlowNames:
    """A name server that responds when the test allows it."""

    looked_up: asyncio.Event = field(default_factory=asyncio.Event)
    loop: asyncio.AbstractEventLoop | None = None
    answer: asyncio.Event = field(default_factory=asyncio.Event)

    def look_up(self, host: str) -> Sequence[str]:
        assert self.loop is not None
        self.loop.call_soon_threadsafe(self.looked_up.set)
        asyncio.run_coroutine_threadsafe(self.answer.wait(), self.loop).result(20)
        return ["127.0.0.1"]


@dataclass
class Resolving:
    """A drain whose request to `webhook_id` still waits for its name."""

    db: Database
    ring: KeyRing
    box: Inbox
    names: SlowNames
    watch: Counted
    webhook_id: str

    async def draft(self, path: str) -> None:
        webhook = await self.db.read(webhooks.one, self.webhook_id)
        assert webhook is not None
        draft = Draft(url=self.box.url + path, events=("thing.made",))
        assert await self.db.write(
            webhooks.change, self.webhook_id, webhook.version, draft, self.ring
        )


@asynccontextmanager
async def resolving(db: Database) -> AsyncIterator[Resolving]:
    names = SlowNames(loop=asyncio.get_running_loop())
    clock = SystemClock()
    key = ring()
    db.observer = watch = Counted()
    sender = Sender(Guard(RULES, clock, names.look_up), clock)
    worker = Worker(
        db, key, sender, clock=clock, ids=Ids(), settings=WorkerSettings(timeout=HANG_SECONDS)
    )
    task = asyncio.create_task(worker.run())
    async with inbox() as box:
        port = box.url.rpartition(":")[2]
        webhook_id = await db.write(
            webhooks.create, owner_id="0" * 24, secret="whsec_" + "A" * 44, ring=key,
            draft=Draft(url=f"http://slow.example:{port}/old", events=("thing.made",)),
        )  # fmt: skip
        await db.write(make, "r1")
        await names.looked_up.wait()
        try:
            yield Resolving(db, key, box, names, watch, webhook_id)
        finally:
            names.answer.set()
            await worker.drain(1.0)
            await sender.close()
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


async def test_a_pause_reaches_a_request_that_is_still_resolving(db: Database) -> None:
    async with resolving(db) as under_way:
        await db.write(parking.pause, under_way.webhook_id)
        under_way.names.answer.set()
        await under_way.watch.until("attempt")
        [row] = await db.read(rows, "select state, tries from deliveries")
        assert (row["state"], row["tries"]) == ("ready", 0)
        assert under_way.box.got == []


async def test_a_delete_reaches_a_request_that_is_still_resolving(db: Database) -> None:
    async with resolving(db) as under_way:
        assert await parking.remove(db, under_way.webhook_id)
        under_way.names.answer.set()
        await under_way.watch.until("attempt")
        [row] = await db.read(rows, "select state, reason from deliveries")
        assert (row["state"], row["reason"]) == ("cancelled", "webhook deleted")
        [row] = await db.read(rows, "select outcome, error from attempts")
        assert row["outcome"] == "aborted"
        assert "before the request was sent" in row["error"]
        assert under_way.box.got == []


async def test_a_delete_records_what_its_receiver_gets(db: Database, db_url: str) -> None:
    """Requests in flight end after their webhook, each as it ends, and the chain stays whole."""
    key = ring()
    async with inbox() as box, drain(db, key) as running:
        deleted = asyncio.Event()

        async def answer(request: web.Request) -> web.Response:
            if request.path == "/in":
                return web.Response()
            await deleted.wait()
            return web.Response(status=int(request.path[1:]))

        box.answer = answer
        await running.webhook(f"{box.url}/in")
        hooks = [await running.webhook(f"{box.url}/{status}") for status in (200, 500, 410)]
        await db.write(make, "r1")
        await box.until(4)
        await db.write(make, "r2")
        await box.until(8)
        await db.write(make_many, 3)
        await until(lambda: _fanned_out(db, 20))
        removed = [await parking.remove(db, webhook_id) for webhook_id in hooks]
        assert removed == [parking.Removed(3, 2)] * 3
        deleted.set()
        await running.watch.until("attempt", 11)
        await until(lambda: _none_left(db))
        ends = await db.read(
            rows,
            "select d.state, count(*) as n, sum(d.attempts) as attempts, count(a.number) as kept"
            " from deliveries d left join attempts a on a.delivery_id = d.id"
            " where d.webhook_id in ($1, $2, $3) group by d.webhook_id, d.state"
            " order by d.state, n",
            *hooks,
        )
        assert [(row["state"], row["n"], row["attempts"], row["kept"]) for row in ends] == [
            ("cancelled", 3, 0, 0), ("cancelled", 3, 0, 0), ("cancelled", 5, 2, 2),
            ("delivered", 2, 2, 2), ("gone", 2, 2, 2),
        ]  # fmt: skip
        counted = await db.read(rows, "select id, cancelled from deleted_webhooks order by id")
        assert [row["cancelled"] for row in counted] == [
            {hooks[1]: 5}.get(one, 3) for one in sorted(hooks)
        ]
        for state, count in (("cancelled", 11), ("delivered", 2 + 5), ("gone", 2)):
            ended = [
                count
                for key, count in running.watch.counts.items()
                if key.startswith("delivery_finished ") and key.endswith(state)
            ]
            assert sum(ended) == count
        found = await walked(db_url, key)
        assert (found.faults, found.attempts) == ([], 11)


async def test_a_410_of_the_old_address_does_not_disable_a_moved_webhook(db: Database) -> None:
    async with inbox() as box, drain(db, ring()) as running:
        moved = asyncio.Event()

        async def gone(request: web.Request) -> web.Response:
            if request.path == "/old":
                await moved.wait()
                return web.Response(status=410)
            return web.Response()

        box.answer = gone
        webhook_id = await running.webhook(f"{box.url}/old")
        await db.write(make, "r1")
        await box.until(1)
        webhook = await db.read(webhooks.one, webhook_id)
        assert webhook is not None
        draft = Draft(url=f"{box.url}/new", events=("thing.made",))
        assert await db.write(webhooks.change, webhook_id, webhook.version, draft, running.ring)
        moved.set()
        await running.watch.until("delivery_finished")
        webhook = await db.read(webhooks.one, webhook_id)
        assert webhook is not None
        assert webhook.state == "active"
        await db.write(make, "r2")
        await box.until(1, "/new")
