"""The way of a webhook's requests, from its settings to the receiver: proxy, thin body, doctor."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from outbox.clock import SystemClock
from outbox.database.transaction import Database
from outbox.ids import Ids
from outbox.queue.state.circuits import FAILURES
from outbox.sending.egress_guard import Guard
from outbox.sending.proxies import parse_proxy
from outbox.sending.send import Sender
from outbox.worker import Worker, WorkerSettings
from tests.support.connect_proxy import connect_proxy
from tests.support.drain import RULES, Counted, add_webhook, inbox, make, ring, rows

SITE = "https://crm.example"
SETTINGS = WorkerSettings(links=lambda event, record_id: f"{SITE}/api/things/{record_id}")


async def test_a_proxy_that_fails_is_named_in_the_attempt(db: Database) -> None:
    db.observer = watch = Counted()
    keys, clock = ring(), SystemClock()
    async with connect_proxy(b"HTTP/1.1 403 No\r\n\r\n") as proxy, inbox() as box:
        office = parse_proxy("office", f"http://ana:hunter2@127.0.0.1:{proxy.port}")
        guard = Guard(replace(RULES, proxies={"office": office}), clock)
        sender = Sender(guard, clock)
        worker = Worker(db, keys, sender, clock=clock, ids=Ids(), settings=SETTINGS)
        task = asyncio.create_task(worker.run())
        try:
            await add_webhook(db, keys, box.url, proxy="office", schedule=())
            await db.write(make, "r1")
            await watch.until("delivery_finished")
        finally:
            await worker.drain(1.0)
            await asyncio.gather(task, return_exceptions=True)
            await sender.close()
            await guard.close()
        [attempt] = await db.read(rows, "select * from attempts")
        assert (attempt["outcome"], box.got) == ("proxy_error", [])
        assert attempt["error"] == "the proxy office does not allow this receiver (403)"
        assert "hunter2" not in repr(dict(attempt))


async def test_a_failing_proxy_opens_no_circuit_and_deliveries_go_on_when_it_works(
    db: Database,
) -> None:
    db.observer = watch = Counted()
    keys, clock = ring(), SystemClock()
    async with connect_proxy(b"HTTP/1.1 503 No\r\n\r\n") as proxy, inbox() as box:
        office = parse_proxy("office", f"http://127.0.0.1:{proxy.port}")
        guard = Guard(replace(RULES, proxies={"office": office}), clock)
        sender = Sender(guard, clock)
        worker = Worker(db, keys, sender, clock=clock, ids=Ids(), settings=SETTINGS)
        task = asyncio.create_task(worker.run())
        try:
            webhook_id, _ = await add_webhook(
                db, keys, box.url, proxy="office", schedule=(0.0,) * FAILURES
            )
            await db.write(make, "r1")
            await watch.until("delivery_finished")
            [lost] = await db.read(rows, "select * from webhooks where id = $1", webhook_id)
            proxy.says = None
            await db.write(make, "r2")
            await box.until(1)
            await watch.until("delivery_finished", 2)
        finally:
            await worker.drain(1.0)
            await asyncio.gather(task, return_exceptions=True)
            await sender.close()
            await guard.close()
    assert (lost["circuit"], lost["state"], lost["failures"]) == ("closed", "active", 0)
    assert (lost["failing_since"], lost["last_outcome"]) == (None, "proxy_error")
    ends = await db.read(rows, "select state, tries from deliveries")
    tries = {one["state"]: one["tries"] for one in ends}
    assert tries == {"delivered": 1, "exhausted": FAILURES + 1}
