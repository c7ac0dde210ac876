"""A store that fails one call in a hundred costs no write and no delivery (R29)."""

from __future__ import annotations

import asyncio
import json
import signal
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.support.engines import Engine, empty_database
from tests.support.faults import ENGINES, sizes
from tests.support.ledger import CONTACTS, judge, query, read_rows, until_drained
from tests.support.load import Load
from tests.support.product import Product
from tests.support.recipients import Recipients, recipients
from tests.support.tenants import Tenants, settle_in

OWNERS = 10
RATE = 100.0
LATENCY = (0.0, 0.05)
TRIES = 20
PATIENCE = 120.0
"""A delivery whose claim nobody knows of is found within a minute."""


async def run_flaky(
    engine: Engine, seed: int, *, writes: int = 1_000, share: float = 0.01, forgets: bool = False
) -> dict[str, Any]:
    """Write under faults of the store; return the record. `forgets` is the negative control."""
    with tempfile.TemporaryDirectory(prefix="carteiro-flaky-") as home:
        folder = Path(home)
        async with empty_database(engine, folder) as url:
            async with recipients(OWNERS, seed=seed, latency=LATENCY) as there:
                tenants = await settle_in(url, folder, there.ports, owners=OWNERS)
                environment = {"FLAKY_SEED": str(seed), "FLAKY_SHARE": str(share)}
                product = Product(
                    folder, url, tenants.key_file, module="tests.system.flaky_serve",
                    environment=environment | ({"FLAKY_FORGETS": "1"} if forgets else {}),
                )  # fmt: skip
                try:
                    await product.start()
                    return await _judged(engine, seed, url, tenants, there, product, writes)
                finally:
                    await product.close()


async def _judged(
    engine: Engine, seed: int, url: str, tenants: Tenants, there: Recipients, product: Product,
    writes: int,
) -> dict[str, Any]:  # fmt: skip
    load = Load(tenants, seed)
    product.send(signal.SIGUSR1)
    async with load.writing(product.address, rate=RATE):
        await load.until_sent(writes, seconds=PATIENCE)
        reads = await _reads(product, tenants, writes // 4)
    insisted = await _insist(product, tenants, seed, writes // 4)
    product.send(signal.SIGUSR2)
    left = await until_drained(url, PATIENCE)
    rows = await read_rows(url)
    # What insisting clients wrote is judged by itself: one of their requests is repeated.
    named = Counter(name for _, _, name in await query(url, CONTACTS))
    own = {record for record, _, name in rows.contacts if name.startswith("insisted-")}
    rows.contacts = [row for row in rows.contacts if row[0] not in own]
    events = {event for event, _, record, _ in rows.events if record in own}
    rows.events = [row for row in rows.events if row[0] not in events]
    rows.deliveries = [row for row in rows.deliveries if row[0] not in events]
    got = [receipt for receipt in there.got if receipt.event_id not in events]
    verdict = judge(
        f"store fails, {engine}", load, rows, got, unknown_allowed=True, rss=product.rss()
    )
    verdict.find(left, "events and deliveries unfinished")
    verdict.find(len(load.broken), "writes without a response")
    verdict.find(
        sum(not refused.unavailable for refused in load.refused.values()),
        "writes refused by another response than 503 with Retry-After",
    )
    verdict.lost += verdict.find(
        sum(named[name] == 0 for name in insisted), "writes lost that were answered 201 at last"
    )
    verdict.unexpected += verdict.find(
        sum(named[name] > 1 for name in insisted), "writes with one Idempotency-Key done twice"
    )
    verdict.find(
        sum(status not in (200, 503) for status in reads.elements()), "reads answered otherwise"
    )
    log = product.log.read_text(errors="replace")
    verdict.find(log.count("Traceback"), "tracebacks in the log")
    verdict.figures |= {
        "refused": len(load.refused),
        "insisted": len(insisted),
        "repeated": sum(insisted.values()) - len(insisted),
        "reads": dict(reads),
        "failed_turns": log.count("take_failed") + log.count("settle_failed"),
    }
    return verdict.told()


async def _reads(product: Product, tenants: Tenants, count: int) -> Counter[int]:
    """Read pages of contacts; return how often each status came."""
    found: Counter[int] = Counter()
    key = next(iter(tenants.keys.values()))
    async with aiohttp.ClientSession(product.address, headers={"X-API-Key": key}) as http:
        for _ in range(count):
            async with http.get("/api/contacts") as answer:
                await answer.read()
                found[answer.status] += 1
    return found


async def _insist(product: Product, tenants: Tenants, seed: int, count: int) -> dict[str, int]:
    """Write with an Idempotency-Key until the answer is 201; return the requests of each name."""
    keys = list(tenants.keys.values())
    tries: dict[str, int] = {}

    async def one(http: aiohttp.ClientSession, number: int) -> None:
        name = f"insisted-{seed}-{number}"
        headers = {
            "X-API-Key": keys[number % len(keys)], "Idempotency-Key": name,
            "Content-Type": "application/json",
        }  # fmt: skip
        for tried in range(1, TRIES + 1):
            body = json.dumps({"name": name})
            async with http.post("/api/contacts", data=body, headers=headers) as answer:
                await answer.read()
                tries[name] = tried
                if answer.status == 201:
                    return
                # 409: the first request is still under way, or its outcome is.
                assert answer.status in (409, 503), answer.status
            await asyncio.sleep(0.05)
        raise AssertionError(f"{name} was never answered 201")

    async with aiohttp.ClientSession(product.address) as http:
        for first in range(0, count, 10):
            await asyncio.gather(*(one(http, first + n) for n in range(min(10, count - first))))
    return tries


SEED = 2_900


@sizes("writes, share", small=(400, 0.02), large=(10_000, 0.01))
@ENGINES
async def test_a_failing_store_loses_nothing(engine: Engine, writes: int, share: float) -> None:
    told = await run_flaky(engine, SEED, writes=writes, share=share)
    assert told["pass"], told
    assert told["refused"], "no write met a fault"
    assert told["failed_turns"], "the drain met no fault"


@pytest.mark.proof
async def test_forgotten_results_are_seen() -> None:
    told = await run_flaky("sqlite", SEED, writes=400, share=0.1, forgets=True)
    assert told["lost"] or told["unexpected"], told
