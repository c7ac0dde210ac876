"""What others notice of one owner at every limit at once: next to nothing (R40).

The owner has 50 webhooks with ten conditions each, 300,000 replays that begin to be sent, ten
backfills, 100 erasures, writes at a steady rate and, on PostgreSQL, a locked row that all those
writes wait for.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp
import asyncpg
import pytest

from outbox import database
from outbox import webhooks as endpoints
from outbox.clock import SystemClock
from outbox.database.transaction import Database, Tx
from outbox.ids import Ids
from outbox.queue.replays import jobs
from outbox.queue.upkeep import erasure_requests, parking
from outbox.sending.request import new_secret
from outbox.webhooks import Draft
from outbox.webhooks.conditions import MOST, Condition
from outbox.webhooks.key_files import read_key_file
from outbox.webhooks.secrets import KeyRing
from tests.benchmarks.figures import quantile
from tests.support.deployed import Deployed, deployed
from tests.support.drain import make, make_many
from tests.support.engines import Engine
from tests.support.ledger import Verdict, query
from tests.support.load import Load
from tests.support.tenants import EVENT, Tenants, move_in
from tests.support.waiting import until
from tests.system.staging import pile_up

WEBHOOKS = 50
BACKFILLS = jobs.MOST_RUNNING
ERASURES = 100
AT_ONCE = 10_000
RATE = 40.0
"""Writes a second of the others, and as many reads."""
ITS_RATE = 10.0
MOST_MS = 100.0
SETTLE_SECONDS = 2.0
UNSEEN = "select count(*) = 0 from events where seq is null"


@dataclass(frozen=True, slots=True)
class Times:
    """Milliseconds of the others' requests."""

    writes: list[float]
    reads: list[float]

    def p99(self) -> tuple[float, float]:
        return quantile(self.writes, 0.99), quantile(self.reads, 0.99)


async def run_greedy(
    engine: Engine,
    seed: int,
    *,
    events: int = 50_000,
    replays: int = 300_000,
    seconds: float = 20.0,
) -> dict[str, Any]:
    """Measure the others alone and beside the owner at all limits; return the record of the run."""
    async with deployed(engine, seed, owners=3, webhooks=1) as site:
        db = await database.open(site.url, clock=SystemClock(), ids=Ids())
        try:
            tenants, records = await _staged(site, db, events, replays)
            await asyncio.sleep(SETTLE_SECONDS)
            quiet = await _measured(site, seconds)
            async with _greed(site, db, tenants, records):
                loud = await _measured(site, seconds)
        finally:
            await db.close()
        verdict = Verdict(f"R40 one owner at all limits, {engine}", seed, len(site.load.acked))
        verdict.lost += verdict.find(await site.until_own(60), "deliveries of others missing")
    for what, before, beside in zip(("write", "read"), quiet.p99(), loud.p99(), strict=True):
        verdict.find(beside > MOST_MS, f"p99 of a {what} {beside:.1f} ms, alone {before:.1f} ms")
        verdict.figures |= {
            f"{what}_p99_alone_ms": round(before, 1), f"{what}_p99_beside_ms": round(beside, 1),
            f"{what}_times_alone": round(beside / before, 1),
        }  # fmt: skip
    verdict.find(len(site.load.refused) + len(site.load.broken), "writes of others refused")
    return verdict.told()


async def _staged(
    site: Deployed, db: Database, events: int, replays: int
) -> tuple[Tenants, list[str]]:
    """Create the owner, with past events, webhooks and replays that wait at a paused one."""
    tenants = Tenants(site.load.tenants.key_file)
    ring = read_key_file(tenants.key_file, Ids())
    await db.write(move_in, tenants, Ids(), ring, 1_000, [])
    [owner] = tenants.keys
    for first in range(0, events, AT_ONCE):
        await db.write(make_many, min(AT_ONCE, events - first), owner)
    await until(lambda: _seen(site), 120)
    places = [f"http://127.0.0.1:{site.there.ports[0]}/greedy{n}" for n in range(WEBHOOKS)]
    await db.write(_add_webhooks, tenants, places, ring)
    event = await db.write(make, "replayed", "thing.replayed", owner)
    await until(lambda: _seen(site), 60)
    paused = tenants.webhooks[owner][0]
    await db.write(parking.pause, paused)
    # A request must end within ten seconds on PostgreSQL.
    patient = db.apart("migration")
    for first in range(0, replays, AT_ONCE):
        await patient.write(pile_up, [paused], event, min(AT_ONCE, replays - first))
    return tenants, [f"record-{n}" for n in range(ERASURES)]


async def _add_webhooks(tx: Tx, tenants: Tenants, places: list[str], ring: KeyRing) -> None:
    [owner] = tenants.keys
    conditions = (Condition("id"),) * MOST
    for place in places:
        draft = Draft(place, (EVENT, "thing.made"), conditions=conditions)
        secret = new_secret(Ids().token(32))
        tenants.webhooks[owner].append(
            await endpoints.create(tx, owner_id=owner, draft=draft, secret=secret, ring=ring)
        )


async def _seen(site: Deployed) -> bool:
    [(done,)] = await query(site.url, UNSEEN)
    return bool(done)


@asynccontextmanager
async def _greed(
    site: Deployed, db: Database, tenants: Tenants, records: list[str]
) -> AsyncIterator[None]:
    """Start everything of the owner at once; it goes on during the block."""
    [owner] = tenants.keys
    webhooks = tenants.webhooks[owner]
    async with AsyncExitStack() as stack:
        if site.engine == "postgres":
            await stack.enter_async_context(_locked_row(site.url, owner))
        load = Load(tenants, site.load.seed + 1)
        await stack.enter_async_context(load.writing(site.product.address, rate=ITS_RATE))
        for record in records:
            await db.write(erasure_requests.request, owner, [record])
        now = db.clock.wall()
        draft = jobs.Draft((), ("thing.made",), 0, now, jobs.FASTEST)
        for webhook in webhooks[1 : 1 + BACKFILLS]:
            await db.write(
                jobs.create, owner_id=owner, webhook_id=webhook, user_id=owner, draft=draft, total=1
            )
        await parking.activate(db, webhooks[0], "all")
        yield


@asynccontextmanager
async def _locked_row(url: str, owner: str) -> AsyncIterator[None]:
    """Lock the totals of the owner, which each of its writes changes."""
    connection = await asyncpg.connect(url)
    try:
        async with connection.transaction():
            await connection.execute("select 1 from tallies where owner_id = $1 for update", owner)
            yield
    finally:
        await connection.close()


async def _measured(site: Deployed, seconds: float) -> Times:
    """Let the others write and read at a steady rate; return what their requests took."""
    before = len(site.load.milliseconds)
    reads: list[float] = []
    async with (
        aiohttp.ClientSession(site.product.address) as http,
        site.load.writing(site.product.address, rate=RATE),
        asyncio.TaskGroup() as group,
    ):
        began = time.monotonic()
        number = 0
        while (due := began + number / RATE) < began + seconds:
            number += 1
            await asyncio.sleep(max(due - time.monotonic(), 0.0))
            group.create_task(_read(site, http, reads))
    return Times(site.load.milliseconds[before:], reads)


async def _read(site: Deployed, http: aiohttp.ClientSession, times: list[float]) -> None:
    key = site.load.tenants.keys[site.load.owner()]
    began = time.monotonic()
    async with http.get("/api/contacts?limit=3", headers={"X-API-Key": key}) as answer:
        await answer.read()
        assert answer.status == 200, answer.status
    times.append((time.monotonic() - began) * 1000)


@pytest.mark.proof
@pytest.mark.timed
@pytest.mark.timeout(600)
@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
async def test_an_owner_at_every_limit_holds_up_nobody(engine: Engine) -> None:
    told = await run_greedy(engine, seed=1)
    assert told["pass"], told
