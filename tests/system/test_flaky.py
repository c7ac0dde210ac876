"""A store that fails one call in a hundred costs no write and no delivery (R29)."""

from __future__ import annotations

import asyncio
import json
import signal
from collections import Counter

import aiohttp

from tests.support.deployed import Deployed, deployed
from tests.support.engines import Engine
from tests.support.faults import ENGINES
from tests.support.ledger import CONTACTS, Verdict, judge, query, until_drained

SEED = 2_900
WRITES = 4_000
TRIES = 20
PATIENCE = 120.0
"""A delivery whose claim nobody knows of is found within a minute."""


async def run_flaky(engine: Engine, writes: int, share: float, broken: str) -> Verdict:
    """Write under faults of the store, and insist on other writes with a key."""
    settings = {"FLAKY_SEED": str(SEED), "FLAKY_SHARE": str(share)}
    async with deployed(
        engine, SEED, owners=10, latency=(0.0, 0.05), broken=broken, settings=settings
    ) as site:
        load, product = site.load, site.product
        product.send(signal.SIGUSR1)
        async with site.writing(100.0):
            reading = asyncio.create_task(_reads(site, writes // 4))
            await site.more(writes, PATIENCE)
            reads = await reading
        insisted = await _insist(site, writes // 4)
        product.send(signal.SIGUSR2)
        left = await until_drained(site.url, PATIENCE)
        # What insisting clients wrote is judged by itself: one of their requests is repeated.
        rows, named = await site.own_rows(), Counter[str]()
        named.update(name for _, _, name in await query(site.url, CONTACTS))
        own = {record for record, _, name in rows.contacts if name.startswith("insisted-")}
        rows.contacts = [row for row in rows.contacts if row[0] not in own]
        events = {event for event, _, record, _ in rows.events if record in own}
        rows.events = [row for row in rows.events if row[0] not in events]
        rows.deliveries = [row for row in rows.deliveries if row[0] not in events]
        got = [receipt for receipt in site.there.got if receipt.event_id not in events]
        verdict = judge(f"store fails, {engine}", load, rows, got, unknown_allowed=True)
        log = product.log.read_text(errors="replace")
    verdict.find(left, "events and deliveries unfinished")
    verdict.find(len(load.broken), "writes without a response")
    verdict.find(len(load.wrong), f"refusals other than a good 503: {load.wrong[:3]}")
    verdict.lost += verdict.find(
        sum(named[name] == 0 for name in insisted), "writes lost that were answered 201 at last"
    )
    verdict.unexpected += verdict.find(
        sum(named[name] > 1 for name in insisted), "writes with one Idempotency-Key done twice"
    )
    verdict.find(
        sum(status not in (200, 503) for status in reads.elements()), "reads answered otherwise"
    )
    verdict.find(log.count("Traceback"), "tracebacks in the log")
    verdict.figures |= {
        "refused": len(load.refused), "repeated": sum(insisted.values()) - len(insisted),
        "reads": dict(reads), "failed_turns": log.count("take_failed") + log.count("settle_failed"),
    }  # fmt: skip
    return verdict


async def _reads(site: Deployed, count: int) -> Counter[int]:
    """Read pages of contacts; return how often each status came."""
    found, headers = Counter[int](), {"X-API-Key": next(iter(site.tenants.keys.values()))}
    async with aiohttp.ClientSession(site.product.address, headers=headers) as http:
        for _ in range(count):
            async with http.get("/api/contacts") as answer:
                await answer.read()
                found[answer.status] += 1
    return found


async def _insist(site: Deployed, count: int) -> dict[str, int]:
    """Write with an Idempotency-Key until the answer is 201; return the requests of each name."""
    keys, tries = list(site.tenants.keys.values()), dict[str, int]()

    async def one(http: aiohttp.ClientSession, number: int) -> None:
        name = f"insisted-{number}"
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

    async with aiohttp.ClientSession(site.product.address) as http:
        for first in range(0, count, 10):
            await asyncio.gather(*(one(http, first + n) for n in range(min(10, count - first))))
    return tries


@ENGINES
async def test_a_failing_store_loses_nothing(engine: Engine) -> None:
    verdict = await run_flaky(engine, WRITES, 0.01, "flaky_store")
    verdict.find(not verdict.figures["refused"], "no write met a fault")
    verdict.find(not verdict.figures["failed_turns"], "the drain met no fault")
    verdict.must_hold()


async def test_forgotten_results_are_seen() -> None:
    verdict = await run_flaky("sqlite", 400, 0.1, "flaky_store_and_forgets")
    assert verdict.lost or verdict.unexpected, verdict
