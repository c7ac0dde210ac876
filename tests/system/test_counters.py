"""Metrics, log and receivers agree on a run without a crash."""

from __future__ import annotations

import asyncio
import re
import urllib.request
from typing import Any

import aiohttp

from tests.support.deployed import Deployed, deployed
from tests.support.engines import Engine
from tests.support.faults import ENGINES, sizes
from tests.support.ledger import Held, query, until_drained

RATE = 50.0
FAILED = 10
WAIT_SECONDS = 60.0
FAILURES = "select count(*) from attempts where outcome = 'http_5xx'"
COUNTER = re.compile(r"^webhook_attempts_total\{[^}]*\} (\S+)$", re.MULTILINE)
ROWS = "select count(*), count(distinct delivery_id || ' ' || number) from attempts"


async def run_counters(engine: Engine, seed: int, *, writes: int = 200) -> dict[str, Any]:
    """Write, with some receivers that fail at first; compare the three; return the record."""
    async with deployed(engine, seed) as site:
        await _fail_some(site)
        async with site.load.writing(site.product.address, rate=RATE):
            await site.more(writes)
        await until_drained(site.url, WAIT_SECONDS)
        verdict = await site.verdict("counters", in_flight=_failed(site))
        page = await asyncio.to_thread(_metrics, site)
        counted = round(sum(float(value) for value in COUNTER.findall(page)))
        [(logged, different)] = await query(site.url, ROWS)
        received = len(site.there.got)
    verdict.find(
        not counted == logged == different == received,
        f"{counted} counted, {logged} rows of {different} attempts, {received} received",
    )
    verdict.find(verdict.duplicated == 0, "no delivery failed first")
    verdict.figures |= {"counted": counted, "logged": logged, "received": received}
    return verdict.told()


async def _fail_some(site: Deployed) -> None:
    """Write until some deliveries have failed, which are tried again."""
    site.there.behave(status=500)
    async with aiohttp.ClientSession(site.product.address) as http, asyncio.timeout(WAIT_SECONDS):
        failed = 0
        while failed < FAILED:
            await site.load.write(http)
            [(failed,)] = await query(site.url, FAILURES)
    site.there.behave(status=200)


def _failed(site: Deployed) -> list[Held]:
    """Return the deliveries whose receiver gave no 2xx, once for each time."""
    paths = site.load.tenants.paths
    return [
        {(receipt.event_id, paths[receipt.path]): "failed"}
        for receipt in site.there.got
        if receipt.answered is None
    ]


def _metrics(site: Deployed) -> str:
    with urllib.request.urlopen(f"{site.product.address}/metrics", timeout=30) as answer:
        page: str = answer.read().decode()
        return page


SEED = 93260


@sizes("writes", small=200, large=500)
@ENGINES
async def test_attempts_are_counted_logged_and_received_once(engine: Engine, writes: int) -> None:
    told = await run_counters(engine, SEED, writes=writes)
    assert told["pass"], told
