"""A process with 256 file descriptors, 300 clients and 300 receivers (R27).

Refusals are bounded and say so, probes are answered, and when the clients have gone, all is served.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections import Counter
from typing import Any

import aiohttp

from tests.support.deployed import Deployed, deployed
from tests.support.engines import Engine
from tests.support.ledger import query
from tests.support.requirements import need

DESCRIPTORS = 256
MANY = 300
"""Receivers, and clients that write at the same time."""
ROUNDS = 5
BACK_SECONDS = 5.0
RATE = 50.0
WRITES = 500
LATENCY = (0.05, 0.2)
# All clients of a test have one address.
SETTINGS = {"CARTEIRO_LIMITS__CONNECTIONS_PER_ADDRESS": "1000"}
OUTCOMES = "select outcome, count(*) from attempts group by outcome"
EXPECTED = {"success", "connect_error"}


async def run_few_descriptors(
    engine: Engine, seed: int, *, module: str = "gateway"
) -> dict[str, Any]:
    """Let more clients write to more receivers than the process may have descriptors for.

    `module` is another entry point in place of the product: the negative control.
    """
    prefix = (need("prlimit"), f"--nofile={DESCRIPTORS}")
    async with deployed(
        engine, seed, owners=MANY, webhooks=1, latency=LATENCY, module=module, prefix=prefix,
        settings=SETTINGS,
    ) as site:  # fmt: skip
        load = site.load
        most, probes = await _flood(site)
        refused, broken, acked = len(load.refused), len(load.broken), len(load.acked)
        back = await _until_served(site)
        reached = len(site.there.got)
        async with load.writing(site.product.address, rate=RATE):
            await site.more(WRITES)
        again = {receipt.port for receipt in site.there.got[reached:]}
        verdict = await site.verdict(f"{DESCRIPTORS} descriptors")
        outcomes = dict(await query(site.url, OUTCOMES))
        running = site.product.running
    wrong = [r for r in load.refused.values() if r.status != 503 or r.retry_after is None]
    verdict.find(len(wrong), f"refusals other than a 503 with Retry-After: {wrong[:3]}")
    verdict.find(not refused, "nobody was refused: the limit met none")
    verdict.find(not acked, "nobody was served meanwhile")
    verdict.find(len(load.broken), f"writes without an answer: {Counter(load.broken.values())}")
    verdict.find(probes, "probes without a 200 meanwhile")
    verdict.find(back > BACK_SECONDS, f"served again only after {back:.1f} s")
    verdict.find(len(load.refused) - refused, "writes refused although the clients had gone")
    verdict.find(len(again) < MANY * 0.75, f"only {len(again)} receivers were reached afterwards")
    verdict.find(not set(outcomes) <= EXPECTED, f"outcomes of attempts: {outcomes}")
    verdict.find(not running, "the process ended")
    verdict.figures |= {
        "clients": MANY, "receivers": MANY, "acked_meanwhile": acked, "refused": refused,
        "broken": broken, "back_s": round(back, 2), "most_descriptors": most,
        "connect_errors": outcomes.get("connect_error", 0),
    }  # fmt: skip
    return verdict.told()


async def _flood(site: Deployed) -> tuple[int, int]:
    """Let many clients write at once, over and over, and keep their connections meanwhile.

    Return the most descriptors that were seen, and how many probes failed.
    """
    most = failed = 0
    clients = aiohttp.ClientSession(site.product.address, connector=aiohttp.TCPConnector(limit=0))
    async with clients:
        for _ in range(ROUNDS):
            *_, sound = await asyncio.gather(
                *(site.load.write(clients) for _ in range(MANY)), _probe(site)
            )
            failed += not sound
            most = max(most, len(os.listdir(f"/proc/{site.product.pid}/fd")))
    return most, failed


async def _probe(site: Deployed) -> bool:
    """Return whether the process says that it lives and is ready."""
    try:
        for path in ("/livez", "/readyz"):
            async with aiohttp.ClientSession(site.product.address) as http:
                async with http.get(path, timeout=aiohttp.ClientTimeout(10.0)) as answer:
                    if answer.status != 200:
                        return False
    except (aiohttp.ClientError, TimeoutError):
        return False
    return True


async def _until_served(site: Deployed) -> float:
    """Return the seconds until a new client's write is acknowledged."""
    began = time.monotonic()
    while time.monotonic() < began + 2 * BACK_SECONDS:
        async with aiohttp.ClientSession(site.product.address) as http:
            if await site.load.write(http) in site.load.acked:
                break
    return time.monotonic() - began
