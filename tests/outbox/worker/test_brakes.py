"""The limits of one webhook's owner: requests in flight at once, and requests per second."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from aiohttp import web

from outbox import database, webhooks
from outbox.clock import SystemClock
from outbox.database.transaction import Database, Tx
from outbox.durations import SECOND
from outbox.ids import Ids
from outbox.queue.drain import brakes
from outbox.queue.drain.claim import claim
from outbox.queue.drain.fanout import fan_out
from outbox.queue.drain.settle import settle
from outbox.queue.state.deliveries import Capacity, Result
from outbox.queue.state.policy import DELIVERED
from outbox.sending.outcome import unanswered
from outbox.webhooks import Draft
from outbox.webhooks.secrets import KeyRing
from tests.support.drain import Inbox, add_webhook, drain, inbox, make_many, ring, rows
from tests.support.faults import shows

EVENTS = 40


@dataclass
class Gauge:
    """A receiver that takes `seconds`; it counts requests in flight and notes their starts."""

    box: Inbox
    seconds: float = 0.0
    in_flight: int = 0
    most: int = 0
    starts: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.box.answer = self.answer

    async def answer(self, _: web.Request) -> web.Response:
        self.starts.append(time.monotonic())
        self.in_flight += 1
        self.most = max(self.most, self.in_flight)
        try:
            await asyncio.sleep(self.seconds)
        finally:
            self.in_flight -= 1
        return web.Response()


def too_early(gauge: Gauge, rate: int, began: float) -> list[float]:
    """Return the starts at which more had started since `began` than the rate allows.

    A busy machine only delays starts, so on any there is none.
    """
    most = brakes.at_once(rate * brakes.THOUSAND)
    return [
        start for number, start in enumerate(gauge.starts, start=1)
        if number > rate * (start - began) + most
    ]  # fmt: skip


@pytest.mark.parametrize(("limit", "most"), [(1, 1), (3, 3), (None, 4)])
async def test_a_webhook_has_no_more_requests_in_flight_than_its_owner_wants(
    db: Database, limit: int | None, most: int
) -> None:
    async with inbox() as box, inbox() as other, drain(db, ring()) as running:
        gauge, free = Gauge(box, seconds=0.05), Gauge(other)
        await running.webhook(box.url, concurrency=limit)
        await running.webhook(other.url)
        await db.write(make_many, EVENTS)
        await other.until(EVENTS)
        await box.until(EVENTS)
        if limit is None:
            assert gauge.most >= most, "without a limit the window grows further"
        else:
            assert gauge.most == most
            assert free.starts[-1] <= gauge.starts[-1], "others do not wait for it"


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


@pytest.mark.parametrize(("rate", "events"), [(20, 50), (100, 150)])
async def test_a_webhook_gets_no_more_requests_per_second_than_its_owner_wants(
    db: Database, rate: int, events: int
) -> None:
    async with inbox() as box, inbox() as other, drain(db, ring()) as running:
        gauge, free = Gauge(box), Gauge(other)
        await running.webhook(box.url, rate=rate * brakes.THOUSAND)
        await running.webhook(other.url)
        began = time.monotonic()
        await db.write(make_many, events)
        await other.until(events)
        await box.until(events)
        assert too_early(gauge, rate, began) == []
        assert free.starts[-1] < gauge.starts[-1], "others do not wait for it"


async def test_the_rate_holds_over_all_nodes(db: Database, db_url: str) -> None:
    if db.engine == "sqlite":
        return  # One process serves an SQLite database.
    assert (await run_nodes(db, db_url, 20, 50))["too_early"] == 0


async def test_nodes_that_hold_no_lane_back_are_seen(
    db: Database, db_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def unheld(tx: Tx, lanes: Iterable[brakes.Lane]) -> None:
        """Let each claim of each node take what one claim may take."""

    monkeypatch.setattr(brakes, "hold", unheld)
    if db.engine == "postgres":
        assert await shows(lambda seed: run_nodes(db, db_url, 2, 40), 1, "too_early")


async def run_nodes(db: Database, url: str, rate: int, events: int) -> dict[str, Any]:
    """Send events to a webhook with a rate from three nodes; return how many came too early."""
    async with several_nodes(db, url) as (gauge, keys):
        await add_webhook(db, keys, gauge.box.url, rate=rate * brakes.THOUSAND)
        began = time.monotonic()
        await db.write(make_many, events)
        await gauge.box.until(events)
        return {"too_early": len(too_early(gauge, rate, began))}


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
        claims.append((at, brakes.at_once(rate)))
        at += brakes.pause(rate, brakes.at_once(rate))
    most = max(
        sum(count for one, count in claims if start <= one < start + SECOND) for start, _ in claims
    )
    assert most <= max(-(-rate // brakes.THOUSAND), 1)
    if rate >= brakes.THOUSAND:
        assert sum(count for _, count in claims) >= 5 * rate / brakes.THOUSAND * 0.94


@asynccontextmanager
async def several_nodes(db: Database, url: str) -> AsyncIterator[tuple[Gauge, KeyRing]]:
    """Run three nodes on PostgreSQL, where several may serve."""
    keys = ring()
    async with AsyncExitStack() as stack:
        gauge = Gauge(await stack.enter_async_context(inbox()))
        for _ in range(3):
            node = await database.open(url, clock=SystemClock(), ids=Ids(), serving=True)
            stack.push_async_callback(node.close)
            await stack.enter_async_context(drain(node, keys))
        yield gauge, keys
