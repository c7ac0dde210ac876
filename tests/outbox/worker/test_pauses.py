"""What a pause of the receiver or a limit of the owner holds, what passes it, and what is told."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest
from aiohttp import web

from outbox.database.transaction import Database, Tx
from outbox.events import enqueue
from outbox.queue.log import delivery_log
from outbox.queue.replays import delivery_steering
from outbox.queue.state import waits
from outbox.queue.state.waits import Waiting
from outbox.queue.upkeep import parking
from tests.support.drain import OWNER, Drain, Inbox, drain, inbox, make, ring, rows, run
from tests.support.waiting import until

HOUR = 3_600_000_000


async def held(db: Database) -> Mapping[str, Waiting]:
    """Return what each delivery waits for, by the record of its event."""

    async def unit(tx: Tx) -> Mapping[str, Waiting]:
        ids = await tx.all("select id, record_id from deliveries")
        every = [one for row in ids if (one := await delivery_log.one(tx, row["id"]))]
        found = await waits.of(tx, every)
        return {one.record_id: found[one.id] for one in every if one.id in found}

    return await db.read(unit)


async def id_of(db: Database, record: str) -> str:
    [row] = await db.read(rows, "select id from deliveries where record_id = $1", record)
    return str(row["id"])


async def test_event(tx: Tx, webhook_id: str) -> None:
    enqueue(
        tx, owner_id=OWNER, name="thing.made", record_id="tested", record_version=1, data={},
        webhook_id=webhook_id,
    )  # fmt: skip


test_event.__test__ = False  # type: ignore[attr-defined] # a unit, by the name of what it makes


class Busy:
    """A receiver that asks for a pause of 15 minutes on its first request."""

    def __init__(self) -> None:
        self.count = 0

    async def answer(self, request: web.Request) -> web.Response:
        self.count += 1
        if self.count > 1:
            return web.Response()
        return web.Response(status=429, headers={"Retry-After": "900"})


async def paused_by_receiver(running: Drain, box: Inbox, **draft: Any) -> str:
    """Return a webhook whose receiver has asked for a pause, with two deliveries that wait."""
    box.answer = Busy().answer
    webhook_id = await running.webhook(box.url, **draft)
    await running.db.write(make, "first")
    await running.watch.until("attempt")
    await running.db.write(make, "second")
    await until(lambda: held_records(running.db, {"first", "second"}))
    return webhook_id


async def held_records(db: Database, records: set[str]) -> bool:
    return set(await held(db)) == records


async def test_a_pause_of_the_receiver_is_told_and_passed_on_request(db: Database) -> None:
    async with inbox() as box, drain(db, ring(), slots=4) as running:
        webhook_id = await paused_by_receiver(running, box)
        told = await held(db)
        # The first one's own next attempt is about as far away.
        assert told["second"].reason == "retry_after"
        now = db.clock.wall()
        assert all(one.until and 800 < (one.until - now) / 1e6 <= 901 for one in told.values())
        [whole] = (await db.read(waits.of_webhooks, [webhook_id])).values()
        assert whole.reason == "retry_after"
        await db.write(delivery_steering.try_now, await id_of(db, "second"))
        await box.until(2)
        await db.write(test_event, webhook_id)
        got = await box.until(3)
        assert got[-1].headers["X-Webhook-Test"] == "1"
        # The others wait on, and so does what comes.
        await running.watch.until("delivery_finished", 2)
        await db.write(make, "third")
        assert await until(lambda: held_records(db, {"first", "third"}))
        assert len(box.got) == 3
        assert await db.read(rows, "select * from passes") == []


@pytest.mark.parametrize("rate", [1, 1_000_000])
async def test_a_rate_holds_what_passes_a_pause(db: Database, rate: int) -> None:
    """At a request in 1,000 seconds nothing passes; at a thousand a second everything does."""
    async with inbox() as box, drain(db, ring()) as running:
        webhook_id = await paused_by_receiver(running, box, rate=rate)
        await db.write(delivery_steering.try_now, await id_of(db, "second"))
        await db.write(test_event, webhook_id)
        limit = await db.read(waits.limit_of, webhook_id)
        if rate > 1:
            await box.until(3)
            return
        await until(lambda: held_records(db, {"first", "second", "tested"}))
        told = await held(db)
        assert (told["second"].reason, told["tested"].reason) == ("rate_limit", "rate_limit")
        assert limit is not None
        assert limit.reason == "rate_limit"
        assert limit.until is not None
        assert 900 < (limit.until - db.clock.wall()) / 1e6 <= 1_001
        assert len(box.got) == 1


async def test_a_limit_of_requests_at_once_is_told(db: Database) -> None:
    go = asyncio.Event()

    async def slow(request: web.Request) -> web.Response:
        await go.wait()
        return web.Response()

    async with inbox() as box, drain(db, ring()) as running:
        box.answer = slow
        webhook_id = await running.webhook(box.url, concurrency=1)
        await db.write(make, "first")
        await box.until(1)
        await db.write(make, "second")
        await until(lambda: held_records(db, {"second"}))
        assert await held(db) == {"second": Waiting("concurrency_limit")}
        await db.write(delivery_steering.try_now, await id_of(db, "second"))
        assert await db.read(waits.limit_of, webhook_id) == Waiting("concurrency_limit")
        go.set()
        await box.until(2)
        await running.watch.until("delivery_finished", 2)
        assert await held(db) == {}


async def test_each_state_of_a_webhook_is_told(db: Database) -> None:
    async with inbox() as box, drain(db, ring(), slots=1) as running:
        webhook_id = await running.webhook(box.url, ordered=True)
        await db.write(parking.pause, webhook_id)
        await db.write(make, "one")
        await db.write(make, "one")
        await until(lambda: held_records(db, {"one"}))
        reasons = {one.reason for one in (await held_each(db)).values()}
        assert reasons == {"paused", "earlier_delivery"}
        await db.write(run, "update webhooks set state = 'disabled'")
        assert {one.reason for one in (await held_each(db)).values()} == {
            "disabled", "earlier_delivery",
        }  # fmt: skip
        await db.write(run, "update webhooks set state = 'active', circuit = 'open'")
        await db.write(run, "update lanes set probe_at = due_now() + $1", HOUR)
        told = {one.reason: one for one in (await held_each(db)).values()}
        assert set(told) == {"circuit_open", "earlier_delivery"}
        left = (told["circuit_open"].until or 0) - db.clock.wall()
        assert 3_500 < left / 1e6 <= 3_601
        # In the middle of a move to another database nobody says a time.
        await db.write(run, "update lanes set wait_until = wait_until + $1", 2**61)
        assert {one.reason for one in (await held_each(db)).values()} == set(told)
        assert await db.read(waits.of, []) == {}


async def held_each(db: Database) -> Mapping[str, Waiting]:
    async def unit(tx: Tx) -> Mapping[str, Waiting]:
        ids = await tx.all("select id from deliveries")
        every = [one for row in ids if (one := await delivery_log.one(tx, row["id"]))]
        return await waits.of(tx, every)

    return await db.read(unit)
