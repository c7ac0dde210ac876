"""PostgreSQL stops at the worst moments: nothing is written twice, nothing is lost."""

from __future__ import annotations

import asyncio
import random
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import asyncpg
import pytest

from tests.support.cluster import Cluster
from tests.support.faultproxy import Cut, FaultProxy, fault_proxy
from tests.support.faults import shows, sizes
from tests.support.ledger import Verdict, judge, read_rows, until_drained
from tests.support.load import Load
from tests.support.product import Product
from tests.support.recipients import Recipients, recipients
from tests.support.tenants import settle_in

RATE = 50.0
RECEIVERS = 6
WRITE = "insert into contacts"
DRAIN_SECONDS = 45.0
BACK_SECONDS = 5.0
HUNG_SECONDS = 10.0
BETWEEN_WRITES = (3, 12)
TERMINATE = """
select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'carteiro'
"""


@dataclass
class _Site:
    cluster: Cluster
    proxy: FaultProxy
    load: Load
    there: Recipients
    product: Product
    dice: random.Random

    async def some_writes(self) -> None:
        await self.load.until_sent(self.load.count + self.dice.randint(*BETWEEN_WRITES))


@asynccontextmanager
async def _site(seed: int, module: str, settings: dict[str, str]) -> AsyncIterator[_Site]:
    with tempfile.TemporaryDirectory(prefix="carteiro-commits-") as home:
        folder = Path(home)
        folder.chmod(0o755)
        cluster = Cluster(folder / "data")
        try:
            await cluster.create()
            await cluster.start()
            async with (
                fault_proxy(cluster.port) as proxy,
                recipients(RECEIVERS, seed=seed, latency=(0.0, 0.02)) as there,
            ):
                own = await cluster.ordinary_url()
                tenants = await settle_in(own, folder, there.ports, owners=RECEIVERS)
                url = own.replace(str(cluster.port), str(proxy.port))
                product = Product(
                    folder, url, tenants.key_file, module=module, environment=settings
                )
                load = Load(tenants, seed)
                try:
                    await product.start()
                    yield _Site(cluster, proxy, load, there, product, random.Random(seed))
                finally:
                    await product.close()
        finally:
            await cluster.close()


async def run_commit_cuts(
    rounds: int, seed: int, *, assume: Literal["", "committed", "aborted"] = ""
) -> dict[str, Any]:
    """Cut `rounds` client writes at COMMIT, and as many of the drain's; return the record.

    Half of the cuts come before the server gets the COMMIT, the others drop its reply. `assume` is
    the negative control: a product that guesses the outcome of the COMMIT.
    """
    cuts: list[Cut] = ["before", "sent", "before", "answered"]

    async def faults(site: _Site) -> None:
        for number in range(rounds):
            cut = cuts[number % len(cuts)]
            await site.some_writes()
            await site.proxy.cut_next(cut, WRITE)
            await site.some_writes()
            await site.proxy.cut_next(cut, "update deliveries")

    fault = f"{rounds} cuts during COMMIT, postgres"
    if not assume:
        return await _run(fault, seed, faults)
    settings: dict[str, str] = {"ASSUME": assume}
    return await _run(fault, seed, faults, module="tests.system.guessing_serve", settings=settings)


async def run_backend_kills(rounds: int, seed: int) -> dict[str, Any]:
    """Terminate all of the product's backends at once, `rounds` times under load."""

    async def faults(site: _Site) -> None:
        connection = await asyncpg.connect(site.cluster.url)
        try:
            for _ in range(rounds):
                await site.some_writes()
                await asyncio.sleep(site.dice.uniform(0, 1 / RATE))
                await connection.execute(TERMINATE)
        finally:
            await connection.close()

    return await _run(f"{rounds} times pg_terminate_backend, postgres", seed, faults)


async def run_database_crashes(rounds: int, seed: int) -> dict[str, Any]:
    """Stop PostgreSQL at once and start it again, `rounds` times under load."""
    back: list[float] = []

    async def faults(site: _Site) -> None:
        for _ in range(rounds):
            await site.some_writes()
            await asyncio.sleep(site.dice.uniform(0, 1 / RATE))
            await site.cluster.crash()
            await site.some_writes()
            await site.cluster.start()
            up, have = time.monotonic(), len(site.load.acked)
            while len(site.load.acked) == have and time.monotonic() - up < 2 * BACK_SECONDS:
                await site.load.until_sent(site.load.count + 1)
            back.append(time.monotonic() - up)

    def more(verdict: Verdict) -> None:
        slow = sum(seconds > BACK_SECONDS for seconds in back)
        verdict.find(slow, f"restarts after which service took longer than {BACK_SECONDS:.0f} s")
        verdict.figures["back_s"] = round(max(back), 2)

    return await _run(f"{rounds} crashes of postgres", seed, faults, more)


async def _run(
    fault: str,
    seed: int,
    faults: Callable[[_Site], Awaitable[None]],
    more: Callable[[Verdict], None] = lambda verdict: None,
    module: str = "gateway",
    settings: dict[str, str] | None = None,
) -> dict[str, Any]:
    async with _site(seed, module, settings or {}) as site:
        load = site.load
        async with load.writing(site.product.address, rate=RATE):
            await load.until_sent(10)
            await faults(site)
            await site.some_writes()
        survived = site.product.running
        rss = site.product.rss()
        left = await until_drained(site.cluster.url, DRAIN_SECONDS)
        rows = await read_rows(site.cluster.url)
        verdict = judge(fault, load, rows, site.there.got, unknown_allowed=True, rss=rss)
    slowest = max((r.seconds for r in load.refused.values()), default=0.0)
    slowest = max(slowest, max(load.milliseconds) / 1000)
    wrong = [r for r in load.refused.values() if not r.unavailable]
    verdict.find(not survived, "the product ended")
    verdict.find(left, "events and deliveries unfinished")
    verdict.find(len(load.broken), "writes without an answer")
    verdict.find(len(wrong), f"refusals other than a good 503: {wrong[:3]}")
    verdict.find(slowest > HUNG_SECONDS, f"an answer took {slowest:.1f} s")
    more(verdict)
    verdict.figures |= {"refused": len(load.refused), "slowest_s": round(slowest, 2)}
    return verdict.told()


SEED = 50260


@sizes("cuts", small=4, large=20)
async def test_connections_cut_during_commit(cuts: int) -> None:
    told = await run_commit_cuts(cuts, SEED)
    assert told["pass"], told


@pytest.mark.proof
@pytest.mark.parametrize(("assume", "figure"), [("aborted", "unexpected"), ("committed", "lost")])
async def test_guessing_the_outcome_is_seen(
    assume: Literal["aborted", "committed"], figure: str
) -> None:
    assert await shows(partial(run_commit_cuts, 4, assume=assume), SEED, figure)


@pytest.mark.proof
async def test_backends_terminated() -> None:
    told = await run_backend_kills(20, SEED)
    assert told["pass"], told


@pytest.mark.proof
async def test_the_server_crashes() -> None:
    told = await run_database_crashes(20, SEED)
    assert told["pass"], told
