"""A recover job that is killed on its way ends complete: each failed delivery is replayed once."""

from __future__ import annotations

import asyncio
import hashlib
import random
import re
import tempfile
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from outbox import database
from outbox.clock import SystemClock
from outbox.database import sql
from outbox.database.transaction import Tx
from outbox.events.body import message
from outbox.ids import Ids
from tests.support.console import Forms, Seen
from tests.support.engines import Engine, empty_database, state_after_kill
from tests.support.faults import ENGINES, LARGE, shows
from tests.support.ledger import (
    Held,
    Pair,
    Rows,
    Verdict,
    held,
    judge,
    newly,
    query,
    read_rows,
    until_drained,
)  # fmt: skip
from tests.support.load import Load
from tests.support.product import Product
from tests.support.recipients import Receipt, Recipients, recipients
from tests.support.site import HASHED
from tests.support.tenants import EVENT, Tenants, settle_in

RATE = 1_000
"""The fastest that a job may be."""
WRITES = 20.0
"""Writes per second meanwhile."""
AT_ONCE = 500
LEASE_SECONDS = 30.0
HOUR = 3_600_000_000
JOBS = "select state, made, refused, total, user_id from jobs"
REPLAYS = "select event_id, state, replayed_by from deliveries where origin = 'replay'"
EVENTS = (
    "id", "seq", "owner_id", "name", "record_id", "record_version", "occurred_at", "body",
    "body_digest",
)  # fmt: skip
DELIVERIES = (
    "id", "owner_id", "event_id", "webhook_id", "origin", "state", "retry", "next_at", "tries",
    "attempts", "record_id", "seq", "created_at", "finished_at",
)  # fmt: skip


async def run_recover(
    count: int, engine: Engine, seed: int, *, kills: int = 2, within: float = 0.2,
    module: str = "gateway", nodes: int = 1,
) -> dict[str, Any]:  # fmt: skip
    """Recover `count` deliveries from the console, with writes and kills; return the record.

    Each kill comes `within` seconds of a random part of the way, so anywhere in a step of the job.
    Of several nodes it ends the one that leads, which runs the job.
    """
    with tempfile.TemporaryDirectory(prefix="carteiro-recover-") as home:
        folder = Path(home)
        async with empty_database(engine, folder) as url, recipients(1, seed=seed) as there:
            tenants = await settle_in(url, folder, there.ports, owners=1, webhooks=1)
            staged = await _stage(url, tenants, count)
            products = [
                Product(folder, url, tenants.key_file, module=module, name=f"node{number}")
                for number in range(nodes)
            ]
            try:
                for product in products:
                    await product.start()
                return await _recover(
                    url, tenants, there, products, staged, engine, seed, kills, within
                )
            finally:
                for product in products:
                    await product.close()


async def _stage(url: str, tenants: Tenants, count: int) -> list[str]:
    """Store events whose deliveries were given up an hour ago; return the events."""
    [(owner_id, [webhook_id])] = tenants.webhooks.items()
    clock, ids = SystemClock(), Ids()
    at = clock.wall() - HOUR
    staged = [ids.new(at) for _ in range(count)]
    db = await database.open(url, clock=clock, ids=ids)

    async def some(tx: Tx, first: int, events: Sequence[str]) -> None:
        bodies = [message(EVENT, at, {"id": event_id}) for event_id in events]
        await sql.insert(tx, "events", EVENTS, [
            (event_id, first + n, owner_id, EVENT, event_id, 1, at, body,
             hashlib.sha256(body).hexdigest())
            for n, (event_id, body) in enumerate(zip(events, bodies, strict=True))
        ])  # fmt: skip
        await sql.insert(tx, "deliveries", DELIVERIES, [
            (ids.new(at), owner_id, event_id, webhook_id, "event", "exhausted", True, 0, 10, 10,
             event_id, first + n, at, at)
            for n, event_id in enumerate(events)
        ])  # fmt: skip
        await tx.run("update outbox_state set seq = $1", first + len(events) - 1)

    async def let_in(tx: Tx) -> None:
        await tx.run("update users set password_hash = $1", HASHED)

    try:
        for start in range(0, count, AT_ONCE):
            await db.write(some, start + 1, staged[start : start + AT_ONCE])
        await db.write(let_in)
    finally:
        await db.close()
    return staged


async def _recover(
    url: str, tenants: Tenants, there: Recipients, products: list[Product], staged: list[str],
    engine: Engine, seed: int, kills: int, within: float,
) -> dict[str, Any]:  # fmt: skip
    dice = random.Random(seed)
    load = Load(tenants, seed)
    [[webhook_id]] = tenants.webhooks.values()
    told = await _start(products[0], webhook_id)
    met: list[Held] = []
    made_at: list[int] = []
    ended: Counter[Product] = Counter()
    rss = 0.0
    # Each kill has its part of the way, and meets the job somewhere in it.
    for number in range(kills):
        mark = int(len(staged) * (number + dice.uniform(0.2, 0.8)) / (kills + 1))
        async with load.writing(products[-1].address, rate=WRITES):
            made_at.append(await _until_made(url, mark))
            product = await _leader(products, ended)
            rss = max(rss, product.rss())
            await asyncio.sleep(dice.uniform(0.0, within))
            product.kill()
            ended[product] += 1
        await product.ended()
        if len(products) > 1:
            # The others go on.
            in_flight = await held(url)
        else:
            in_flight, integrity = await state_after_kill(url)
            assert integrity == "ok", integrity
        met.append(newly(in_flight, met))
        await product.start()
    async with load.writing(products[-1].address, rate=WRITES):
        await _until_done(url, len(staged))
    left = await until_drained(url, 120.0 + (0.0 if engine == "sqlite" else LEASE_SECONDS))
    rss = max(rss, *(product.rss() for product in products), 0.0)
    found = _judge(load, await read_rows(url), there.got, met, staged, rss, engine)
    await _replays(found, url, staged, there.got, met, set(tenants.webhooks))
    found.find(left, "events and deliveries unfinished")
    found.find(told != len(staged), f"{told} deliveries were told before the start")
    # A kill proves something only on the way.
    found.find(sum(not 0 < made < len(staged) for made in made_at), "kills beside the way")
    found.find(len(load.refused), "writes refused")
    found.figures |= {"count": len(staged), "kills": len(made_at), "made_at_kills": made_at}
    return found.told()


async def _leader(products: list[Product], ended: Counter[Product]) -> Product:
    """Return the node that leads, by its log; `ended` counts the leaders that were killed."""
    if len(products) == 1:
        return products[0]
    async with asyncio.timeout(60):
        while True:
            for product in products:
                log = product.log.read_text()
                if log.count('"leading"') - log.count('"no_longer_leading"') > ended[product]:
                    return product
            await asyncio.sleep(0.1)


async def _start(product: Product, webhook_id: str) -> int:
    """Start the job in the console; return the number that it told before."""
    jar = aiohttp.CookieJar(unsafe=True)
    async with aiohttp.ClientSession(product.address, cookie_jar=jar) as http:
        somebody = Forms(http)
        await somebody.sign_in("owner0@example.com")
        path = f"/console/webhooks/{webhook_id}/recover"
        asked: Seen = await somebody.submit(
            path, kind="recover", ends=["exhausted", "gone", "dead"], since="2000-01-01T00:00",
            until="", rate=str(RATE),
        )  # fmt: skip
        hidden = re.findall('type="hidden" name="([a-z_]+)" value="([^"]*)"', asked.html)
        started = await somebody.post(path, hidden)
        assert started.path.startswith("/console/jobs/"), started
        [told] = re.findall(r"[\d,]+", asked.test_id("job-total") or "")
    return int(told.replace(",", ""))


async def _until_made(url: str, mark: int) -> int:
    async with asyncio.timeout(120):
        while True:
            [(_, made, *_)] = await query(url, JOBS)
            if made >= mark:
                return int(made)
            await asyncio.sleep(0.02)


async def _until_done(url: str, count: int) -> None:
    async with asyncio.timeout(120 + count / 100):
        while (await query(url, JOBS))[0][0] == "running":
            await asyncio.sleep(0.1)


def _judge(
    load: Load, rows: Rows, got: list[Receipt], met: list[Held], staged: list[str], rss: float,
    engine: Engine,
) -> Verdict:  # fmt: skip
    """Judge the writes of the run as after any kill."""
    old = set(staged)
    rows.events = [row for row in rows.events if row[0] not in old]
    rows.deliveries = [row for row in rows.deliveries if row[0] not in old]
    written = [receipt for receipt in got if receipt.event_id not in old]
    return judge(f"recover killed, {engine}", load, rows, written, in_flight=met, rss=rss)


async def _replays(
    verdict: Verdict, url: str, staged: list[str], got: list[Receipt], met: list[Held],
    owners: set[str],
) -> None:  # fmt: skip
    """Each failed delivery has one replay, of a user, which its receiver has, and no other has."""
    old = set(staged)
    replays = await query(url, REPLAYS)
    had = Counter(event_id for event_id, _, _ in replays)
    [(state, made, refused, _, _)] = await query(url, JOBS)
    verdict.lost += verdict.find(len(old - set(had)), "failed deliveries never replayed")
    verdict.lost += verdict.find(
        sum(state != "delivered" for _, state, _ in replays), "replays not delivered"
    )
    verdict.unexpected += verdict.find(
        sum(n > 1 for n in had.values()) + len(set(had) - old), "replays that should not be"
    )
    verdict.find(sum(user not in owners for _, _, user in replays), "replays without their user")
    came = Counter(receipt.event_id for receipt in got if receipt.event_id in old)
    verdict.lost += verdict.find(len(old - set(came)), "replays that no receiver has")
    allowed: Counter[str] = Counter()
    for in_flight in met:
        pairs: set[Pair] = set(in_flight)
        allowed.update(event_id for event_id, _ in pairs)
    verdict.duplicated += sum(n - 1 for n in came.values())
    verdict.unexpected += verdict.find(
        sum(max(n - 1 - allowed[event_id], 0) for event_id, n in came.items()),
        "arrivals repeated although no kill met them",
    )
    verdict.find((state, made, refused) != ("done", len(staged), 0), f"the job is {state}, {made}")
    verdict.deliveries += len(replays)


SEED = 20260
HASTY = "tests.system.hasty_jobs_serve"
# A step replays up to 200: with few deliveries the last step may follow the one before it
# between two looks, and the kill comes too late.
SMALL = pytest.param(
    "sqlite", 2_000, 1, id="small", marks=(pytest.mark.slow, pytest.mark.timeout(180))
)


@pytest.mark.parametrize(
    ("engine", "count", "kills"),
    [
        SMALL,
        pytest.param("sqlite", 50_000, 2, id="sqlite-large", marks=LARGE),
        pytest.param("postgres", 50_000, 2, id="postgres-large", marks=LARGE),
    ],
)
async def test_kills_lose_and_double_no_replay(engine: Engine, count: int, kills: int) -> None:
    """R24."""
    told = await run_recover(count, engine, SEED, kills=kills)
    assert told["pass"], told


@pytest.mark.proof
@pytest.mark.timeout(300)
async def test_another_node_goes_on_when_the_one_that_leads_is_killed() -> None:
    told = await run_recover(10_000, "postgres", SEED + 2, kills=3, nodes=3)
    assert told["pass"], told


@pytest.mark.proof
@pytest.mark.timeout(300)
@ENGINES
async def test_moving_on_before_replaying_is_seen(engine: Engine) -> None:
    assert await shows(partial(run_recover, 2_000, engine, within=1.0, module=HASTY), SEED)
