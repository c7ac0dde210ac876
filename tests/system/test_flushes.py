"""Flushes that fail or take long: no write is acknowledged before it is on the disk."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import aiohttp
import asyncpg
import pytest

from tests.benchmarks.figures import quantile
from tests.support.cluster import Cluster
from tests.support.deployed import Deployed, deployed
from tests.support.engines import Engine, state_after_kill
from tests.support.faults import ENGINES, shows, sizes
from tests.support.injecting import injected
from tests.support.ledger import query
from tests.support.shim import shim

RATE = 50.0
FIRST_FLUSHES = (1, 12)
"""The flush of a thread or backend that fails, counted from the start of the fault."""
HIT_SECONDS = 20.0
BACK_SECONDS = 10.0
FLUSH_SECONDS = 2.0
SLOW_FLUSHES = 8
FLUSHES_OF_A_WRITE = 6
"""A write waits for the batch before it and for its own; each may be followed by a checkpoint."""
LOOP_MS = 100.0
BACKENDS = "select pid from pg_stat_activity where backend_type in ('client backend', 'walwriter')"
CALLS = {"sqlite": "fdatasync,fsync", "postgres": "fdatasync"}


@asynccontextmanager
async def _site(engine: Engine, seed: int, module: str = "gateway") -> AsyncIterator[Deployed]:
    """Run the product; on PostgreSQL, on a server of its own that flushes."""
    if engine == "sqlite":
        async with deployed(engine, seed, module=module) as site:
            yield site
        return
    with tempfile.TemporaryDirectory(prefix="carteiro-flush-") as home:
        folder = Path(home)
        # PostgreSQL's own user must reach its data.
        folder.chmod(0o755)
        cluster = Cluster(folder / "data")
        try:
            await cluster.create()
            await cluster.start()
            async with deployed(engine, seed, url=cluster.url, module=module) as site:
                yield site
        finally:
            await cluster.close()


async def _pids(site: Deployed) -> list[int]:
    """Return the processes that flush, once PostgreSQL has recovered from an earlier fault."""
    if site.engine == "sqlite":
        return [site.product.pid]
    async with asyncio.timeout(HIT_SECONDS):
        while True:
            try:
                return [pid for (pid,) in await query(site.url, BACKENDS)]
            except (OSError, asyncpg.PostgresError):
                await asyncio.sleep(0.1)


async def run_failed_flushes(
    rounds: int, engine: Engine, seed: int, *, module: str = "gateway"
) -> dict[str, Any]:
    """Let one flush fail with EIO, `rounds` times under load; return the record.

    `module` is another entry point in place of the product: the negative control.
    """
    async with _site(engine, seed, module) as site:
        hit = 0
        backs = []
        async with site.load.writing(site.product.address, rate=RATE):
            for _ in range(rounds):
                await site.more(20)
                fault = f"error=EIO:when={site.dice.randint(*FIRST_FLUSHES)}"
                pids = await _pids(site)
                async with injected(pids, CALLS[engine], fault, site.folder) as injection:
                    hit += await injection.until_hit(HIT_SECONDS)
                backs.append(await _back(site))
        await _pids(site)
        met, integrity = await state_after_kill(site.url) if engine == "sqlite" else ({}, "ok")
        verdict = await site.verdict("flush failed", in_flight=[met], unknown_allowed=True)
        running = site.product.running
        status = await site.product.stop()
    wrong = [r for r in site.load.refused.values() if not r.unavailable]
    verdict.find(len(wrong), f"refusals other than a good 503: {wrong[:3]}")
    verdict.find(rounds - hit, "rounds in which no flush failed")
    verdict.find(not site.load.refused, "no write was refused: the fault met none")
    verdict.find(sum(back > BACK_SECONDS for back in backs), "times later than 10 s to serve again")
    verdict.find(len(site.load.broken), "writes without an answer")
    verdict.find(integrity != "ok", f"file damaged: {integrity}")
    verdict.find(not running or status != 0, f"the process ended with {status}")
    verdict.figures |= {
        "rounds": rounds,
        "refused": len(site.load.refused),
        "back_s": round(max(backs), 2),
    }
    return verdict.told()


async def _back(site: Deployed) -> float:
    """Return the seconds until a write is acknowledged again."""
    began = time.monotonic()
    acked = len(site.load.acked)
    while len(site.load.acked) == acked and time.monotonic() < began + 2 * BACK_SECONDS:
        await asyncio.sleep(0.02)
    return time.monotonic() - began


async def run_slow_flush(seed: int) -> dict[str, Any]:
    """Let each flush of SQLite take two seconds: others are read and probed as before."""
    with tempfile.TemporaryDirectory(prefix="carteiro-shim-") as home, shim(Path(home)) as faults:
        async with deployed("sqlite", seed, settings=faults.environment) as site:
            reads: list[float] = []
            async with site.load.writing(site.product.address, rate=RATE):
                await site.more(50)
            site.load.milliseconds.clear()
            faults.set(flush_seconds=FLUSH_SECONDS)
            asking = asyncio.create_task(_ask(site, reads))
            async with site.load.writing(site.product.address, rate=RATE):
                while faults.flushes < SLOW_FLUSHES:
                    await site.more(10)
            faults.set()
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)
            slow, flushes = list(site.load.milliseconds), faults.flushes
            verdict = await site.verdict("flush of 2 s")
    bound = FLUSHES_OF_A_WRITE * FLUSH_SECONDS * 1000
    writes, probes = quantile(slow, 0.99), quantile(reads, 0.99)
    verdict.find(writes > bound, f"the p99 of writes is {writes:.0f} ms")
    verdict.find(probes > LOOP_MS, f"the p99 of reads and probes is {probes:.0f} ms")
    verdict.find(len(site.load.refused) + len(site.load.broken), "writes refused or cut")
    verdict.figures |= {
        "flushes": flushes,
        "reads": len(reads),
        "read_p99_ms": round(probes, 1),
    }
    return verdict.told()


async def _ask(site: Deployed, times: list[float]) -> None:
    """Read a list and probe over and over, and record milliseconds."""
    [owner, *_] = site.load.tenants.keys
    headers = {"X-API-Key": site.load.tenants.keys[owner]}
    async with aiohttp.ClientSession(site.product.address, headers=headers) as http:
        while True:
            for path in ("/livez", "/api/contacts?limit=1"):
                began = time.monotonic()
                async with http.get(path) as answer:
                    await answer.read()
                    assert answer.status == 200, (path, answer.status)
                times.append((time.monotonic() - began) * 1000)
            await asyncio.sleep(0.02)


SEED = 41260
HOPEFUL = "tests.system.hopeful_serve"


@sizes("flushes", large=8)
@ENGINES
async def test_a_write_whose_flush_failed_is_refused(engine: Engine, flushes: int) -> None:
    told = await run_failed_flushes(flushes, engine, SEED)
    assert told["pass"], told


@pytest.mark.proof
async def test_forgetting_a_failed_flush_is_seen() -> None:
    assert await shows(partial(run_failed_flushes, 3, "sqlite", module=HOPEFUL), SEED)


@pytest.mark.proof
@pytest.mark.timed
async def test_a_flush_of_two_seconds_holds_up_writes_alone() -> None:
    told = await run_slow_flush(SEED)
    assert told["pass"], told
