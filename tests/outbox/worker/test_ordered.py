"""Ordered webhooks with a real drain: requests of a record arrive in the order of its writes."""

from __future__ import annotations

import asyncio
import random
from collections import Counter

from aiohttp import web

from outbox.database.transaction import Database, Tx
from outbox.queue.order import ordering
from tests.support.drain import Drain, Inbox, drain, inbox, make, ring, rows

UNFINISHED = """
select id from deliveries where finished_at is null
union all select id from events where seq is null
"""
SEQS = "select e.id, e.record_id from events e order by e.seq"


async def make_for(tx: Tx, records: list[str]) -> None:
    for record in records:
        await make(tx, record)


async def until_done(running: Drain) -> None:
    while True:
        # Counted before the look: the last delivery may end between the look and its answer.
        finished = running.watch.counts.get("delivery_finished", 0)
        # One snapshot: between two, fan-out could turn the events into deliveries unseen.
        if not await running.db.read(rows, UNFINISHED):
            return
        await running.watch.until("delivery_finished", finished + 1)


async def disorder(db: Database, box: Inbox) -> int:
    """Return the arrivals that came after a later event of their record."""
    seqs = {row["id"]: n for n, row in enumerate(await db.read(rows, SEQS))}
    records = {row["id"]: row["record_id"] for row in await db.read(rows, SEQS)}
    last: dict[str, int] = {}
    wrong = 0
    for got in box.got:
        event = got.headers["X-Webhook-Id"]
        wrong += seqs[event] < last.get(records[event], -1)
        last[records[event]] = max(seqs[event], last.get(records[event], -1))
    return wrong


class Moody:
    """A receiver that refuses a third of the requests, and answers after some turns of the loop."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.busy: Counter[str] = Counter()
        self.most = 0

    async def answer(self, request: web.Request) -> web.StreamResponse:
        record = (await request.json())["data"]["id"]
        self.busy[record] += 1
        self.most = max(self.most, self.busy[record])
        try:
            for _ in range(self.dice.randrange(30)):
                await asyncio.sleep(0)
        finally:
            self.busy[record] -= 1
        return web.Response(status=500 if self.dice.random() < 0.34 else 200)


async def test_an_owner_turns_the_order_on_while_requests_are_under_way(db: Database) -> None:
    async with inbox() as box, drain(db, ring()) as running:
        gate = asyncio.Event()

        async def closed(request: web.Request) -> web.StreamResponse:
            await gate.wait()
            return web.Response(status=500)

        box.answer = closed
        webhook_id = await running.webhook(box.url)
        await db.write(make_for, ["a", "a", "a", "b"])
        before = len(await box.until(2))
        assert not await ordering.turn(db, webhook_id, True)
        await db.write(make_for, ["a", "b"])
        moody = Moody(1)
        box.answer = moody.answer
        gate.set()
        while await ordering.any_turning(db) is not False:
            await ordering.finish_all(db)
        del box.got[:]
        assert before >= 2
        await until_done(running)
        assert await disorder(db, box) == 0
        assert moody.most == 1
