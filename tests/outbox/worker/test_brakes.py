"""The limits of one webhook's owner: requests in flight at once, and requests per second."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import pytest
from aiohttp import web

from outbox import webhooks
from outbox.database.transaction import Database, Tx
from outbox.durations import SECOND
from outbox.queue.drain import owner_limits
from outbox.queue.drain.claim import claim
from outbox.queue.drain.fanout import fan_out
from outbox.queue.drain.settle import settle
from outbox.queue.state.claimed_deliveries import Capacity, Result
from outbox.queue.state.policy import DELIVERED
from outbox.sending.outcome import unanswered
from outbox.webhooks import Draft
from tests.support.drain import Inbox, Still, add_webhook, drain, inbox, make_many, ring, rows

EVENTS = 40


@dataclass
class Gauge:
    """A receiver that answers while its gate is open, and counts the requests in flight."""

    box: Inbox
    gate: asyncio.Event = field(default_factory=asyncio.Event)
    in_flight: int = 0
    most: int = 0

    def __post_init__(self) -> None:
        self.gate.set()
        self.box.answer = self.answer

    async def answer(self, _: web.Request) -> web.Response:
        self.in_flight += 1
        self.most = max(self.most, self.in_flight)
        await self.gate.wait()
        self.in_flight -= 1
        return web.Response()


@pytest.mark.slow
@pytest.mark.parametrize("limit", [1, 3])
async def test_a_webhook_has_no_more_requests_in_flight_than_its_owner_wants(
    db: Database, limit: int
) -> None:
    async with inbox() as box, inbox() as other, drain(db, ring(), Still()) as running:
        gauge = Gauge(box)
        await running.webhook(box.url, concurrency=limit)
        await running.webhook(other.url)
        # Its window grows with the first ones.
        await db.write(make_many, 8)
        await running.watch.until("delivery_finished", 16)
        gauge.gate.clear()
        await db.write(make_many, EVENTS)
        # The others do not wait for it.
        await other.until(8 + EVENTS)
        await box.until(8 + limit)
        assert gauge.in_flight == limit
        gauge.gate.set()
        await box.until(8 + EVENTS)
        assert gauge.most == limit


@pytest.mark.parametrize(("limit", "counts"), [(3, (3, 0, 2)), (None, (10, 0, 10))])
async def test_the_limit_counts_what_all_nodes_have_in_flight(
    db: Database, limit: int | None, counts: tuple[int, int, int]
) -> None:
    webhook_id, _ = await add_webhook(db, ring(), "http://127.0.0.1:9/", concurrency=limit)
    await db.write(make_many, EVENTS)
    await db.write(fan_out, Capacity("node-0", "claim-0", 0, 0, 0, {}, 0))

    def node(number: int) -> Capacity:
        return Capacity(f"node-{number}", f"claim-{number}", 64, 16, 16, {webhook_id: 10}, 1 << 20)

    first = await db.write(claim, node(1), {})
    second = await db.write(claim, node(2), {})
    results = [
        Result(one, DELIVERED, unanswered("success", "", 0.1), 1, ("sent",), "", "node-1")
        for one in first.claimed[:2]
    ]
    await db.write(settle, results)
    third = await db.write(claim, node(2), {})
    assert tuple(len(taken.claimed) for taken in (first, second, third)) == counts


async def test_the_rate_of_a_webhook_holds_over_all_nodes(db: Database) -> None:
    """A claim takes what its rate allows at once, and its lane waits as long as that may take."""
    rate = owner_limits.THOUSAND // 10
    webhook_id, _ = await add_webhook(db, ring(), "http://127.0.0.1:9/", rate=rate)
    await db.write(make_many, EVENTS)
    await db.write(fan_out, Capacity("node-0", "claim-0", 0, 0, 0, {}, 0))

    async def later(tx: Tx, micros: int) -> None:
        await tx.run("update lanes set wait_until = wait_until - $1, due_at = due_at - $1", micros)

    async def claims(number: int) -> int:
        room = Capacity(f"node-{number}", f"c{number}", 64, 16, 16, {webhook_id: 10}, 1 << 20)
        return len((await db.write(claim, room, {})).claimed)

    at_once, pause = (
        owner_limits.at_once(rate),
        owner_limits.pause(rate, owner_limits.at_once(rate)),
    )
    assert [await claims(1), await claims(2)] == [at_once, 0]
    [lane] = await db.read(rows, "select wait_until - due_now() as wait from lanes")
    assert lane["wait"] <= pause
    await db.write(later, pause)
    assert [await claims(3), await claims(1)] == [at_once, 0]


async def test_a_changed_limit_applies_at_once(db: Database) -> None:
    keys = ring()
    async with inbox() as box, drain(db, keys) as running:
        webhook_id = await running.webhook(box.url, rate=1)
        await db.write(make_many, 5)
        await box.until(1)
        [lane] = await db.read(rows, "select wait_until - due_now() as wait from lanes")
        assert lane["wait"] > 900_000_000, "a thousand seconds"
        assert await db.write(webhooks.change, webhook_id, 1, Draft(box.url, ("thing.made",)), keys)
        await box.until(5)
        [lane] = await db.read(rows, "select concurrency, rate from lanes")
        assert (lane["concurrency"], lane["rate"]) == (None, None)


@pytest.mark.parametrize("rate", [1, 500, 1_000, 1_500, 19_999, 20_000, 40_000, 333_333, 1_000_000])
def test_no_second_has_more_claims_than_the_rate(rate: int) -> None:
    """The worst case: each claim takes all that it may, as soon as it may."""
    at, claims = 0, list[tuple[int, int]]()
    while at < 5 * SECOND:
        claims.append((at, owner_limits.at_once(rate)))
        at += owner_limits.pause(rate, owner_limits.at_once(rate))
    most = max(
        sum(count for one, count in claims if start <= one < start + SECOND) for start, _ in claims
    )
    assert most <= max(-(-rate // owner_limits.THOUSAND), 1)
    if rate >= owner_limits.THOUSAND:
        assert sum(count for _, count in claims) >= 5 * rate / owner_limits.THOUSAND * 0.94
