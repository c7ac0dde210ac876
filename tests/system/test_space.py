"""Writes without space: refused with 503, and no acknowledged write is lost."""

from __future__ import annotations

import asyncio
import json
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.support.cluster import Cluster
from tests.support.engines import state_after_kill
from tests.support.ledger import Held, Verdict, judge, read_rows, until_drained
from tests.support.load import Load
from tests.support.product import Product
from tests.support.recipients import Recipients, recipients
from tests.support.tenants import settle_in
from tests.support.volume import fill, on_small_disk, tmpfs

NOTES = 10_000
"""Characters of notes that do not fit into any free page."""
DISK_MIB = 24
SERVER_DISK_MIB = 48
PROBE_SECONDS = 0.2
FULL_SECONDS = 3.0
REFUSAL_SECONDS = 1.0
RECOVERY_SECONDS = 5.0
DRAIN_SECONDS = 20.0


@dataclass
class _Site:
    url: str
    load: Load
    there: Recipients
    product: Product

    async def verdict(self, fault: str, in_flight: Iterable[Held] = ()) -> Verdict:
        """Drain, then run the ledger."""
        rss = self.product.rss()
        left = await until_drained(self.url, DRAIN_SECONDS)
        rows = await read_rows(self.url)
        verdict = judge(fault, self.load, rows, self.there.got, in_flight=in_flight, rss=rss)
        verdict.find(left, "events and deliveries unfinished")
        return verdict


@asynccontextmanager
async def _site(
    home: Path, disk: Path, seed: int, module: str, url: str = ""
) -> AsyncIterator[_Site]:
    """Create the product at `url`, by default an SQLite file on `disk`, with its log there too."""
    url = url or f"sqlite:///{disk / 'carteiro.db'}"
    async with recipients(6, seed=seed) as there:
        tenants = await settle_in(url, home, there.ports, owners=6)
        product = Product(disk, url, tenants.key_file, module=module)
        try:
            await product.start()
            yield _Site(url, Load(tenants, seed), there, product)
        finally:
            await product.close()


async def run_batch_failures(rounds: int, seed: int) -> dict[str, Any]:
    """Send three writes at once; the long one does not fit: only it is refused."""
    with tempfile.TemporaryDirectory(prefix="carteiro-batch-") as home:
        folder = Path(home)
        async with _site(folder, folder, seed, "tests.system.tight_serve") as site:
            load, product = site.load, site.product
            alone = 0
            async with aiohttp.ClientSession(product.address) as http:
                for _ in range(rounds):
                    first, long, last = await asyncio.gather(
                        load.write(http), load.write(http, NOTES), load.write(http)
                    )
                    alone += long in load.refused and first in load.acked and last in load.acked
            ended = [
                line["again"]
                for line in map(json.loads, product.log.read_text().splitlines())
                if line["event"] == "batch_ended_by_sqlite"
            ]
            # The drain makes little progress under this limit, so the product itself takes over.
            product.kill()
            await product.ended()
            met, integrity = await state_after_kill(site.url)
            site.product = Product(folder, site.url, load.tenants.key_file)
            try:
                await site.product.start()
                verdict = await site.verdict("batch failure, sqlite", [met])
            finally:
                await site.product.close()
    verdict.find(integrity != "ok", f"file damaged: {integrity}")
    shared = sum(count >= 1 for count in ended)
    verdict.find(sum(not r.unavailable for r in load.refused.values()), "refusals other than 503")
    verdict.find(len(load.broken), "writes without an answer")
    # Sometimes a short write needs a page too, or the three are not in one batch.
    verdict.find(max(rounds // 2 - alone, 0), "rounds too few in which only the long one failed")
    verdict.find(max(rounds // 4 - shared, 0), "batches too few that SQLite ended for the others")
    verdict.figures |= {
        "rounds": rounds,
        "refused": len(load.refused),
        "only_the_long_one": alone,
        "batches_ended": shared,
    }
    return verdict.told()


async def run_disk_full(seed: int, *, rate: float = 50.0) -> dict[str, Any]:
    """Fill a disk under load and free it again; database and log are on it."""
    with tempfile.TemporaryDirectory(prefix="carteiro-full-") as home:
        with tmpfs(Path(home), DISK_MIB) as disk:
            async with _site(Path(home), disk, seed, "gateway") as site:
                load, product = site.load, site.product
                async with load.writing(product.address, rate=rate):
                    await load.until_sent(40)
                    ballast = await asyncio.to_thread(fill, disk)
                    await _until(load, lambda: len(load.refused) >= 3)
                    acked = len(load.acked)
                    answers = await _ask_while_full(site, FULL_SECONDS)
                    while_full = len(load.acked) - acked
                    ballast.unlink()
                    freed = time.monotonic()
                    have = len(load.acked)
                    await _until(load, lambda: len(load.acked) >= have + 20)
                    back = time.monotonic() - freed
                verdict = await site.verdict("disk full, sqlite")
    slowest = max(refused.seconds for refused in load.refused.values())
    wrong = [r for r in load.refused.values() if not r.unavailable]
    verdict.find(len(wrong), f"refusals other than a good 503: {wrong[:3]}")
    verdict.find(slowest > REFUSAL_SECONDS, f"a refusal took longer than 1 s ({slowest:.2f} s)")
    verdict.find(sum(s != 200 for s in answers), "reads and probes that failed while it was full")
    verdict.find(back > RECOVERY_SECONDS, f"back only {back:.1f} s after space was freed")
    verdict.find(len(load.broken), "writes without an answer")
    verdict.figures |= {
        "refused": len(load.refused),
        "acked_while_full": while_full,
        "slowest_refusal_s": round(slowest, 3),
        "reads_while_full": len(answers),
        "back_s": round(back, 2),
    }
    return verdict.told()


async def run_server_disk_full(seed: int, *, rate: float = 50.0) -> dict[str, Any]:
    """Fill the disk of PostgreSQL's tables under load, and free it when nobody writes any more."""
    with tempfile.TemporaryDirectory(prefix="carteiro-full-") as home:
        folder = Path(home)
        folder.chmod(0o755)
        cluster = Cluster(folder / "data")
        try:
            with tmpfs(folder, SERVER_DISK_MIB) as disk:
                await cluster.create()
                await cluster.start()
                url = await on_small_disk(cluster, disk)
                async with _site(folder, folder, seed, "gateway", url) as site:
                    load, product = site.load, site.product
                    async with load.writing(product.address, rate=rate, notes=NOTES):
                        await load.until_sent(40)
                        ballast = await asyncio.to_thread(fill, disk)
                        await _until(load, lambda: len(load.refused) >= 10)
                        probes = await _probes(product, FULL_SECONDS)
                    ballast.unlink()
                    idle = await _seconds_until_ready(product)
                    have = len(load.acked)
                    async with load.writing(product.address, rate=rate):
                        await _until(load, lambda: len(load.acked) >= have + 20)
                    verdict = await site.verdict("disk full, postgres")
                await cluster.close()
        finally:
            await cluster.close()
    wrong = [r for r in load.refused.values() if not r.unavailable]
    ready = sum(status == 200 for status, _ in probes)
    named = sum("disk full" in said for status, said in probes if status == 503)
    verdict.find(len(wrong), f"refusals other than a good 503: {wrong[:3]}")
    verdict.find(ready > 1 / PROBE_SECONDS, f"{ready} of {len(probes)} probes said ready")
    verdict.find(named < len(probes) - ready, "refused probes that do not name the disk")
    verdict.find(idle > RECOVERY_SECONDS, f"ready only {idle:.1f} s after space was freed")
    verdict.find(len(load.broken), "writes without an answer")
    verdict.figures |= {
        "refused": len(load.refused),
        "probes_while_full": len(probes),
        "ready_while_full": ready,
        "ready_again_s": round(idle, 2),
    }
    return verdict.told()


async def _probes(product: Product, seconds: float) -> list[tuple[int, str]]:
    """Probe the readiness over and over; return statuses and texts."""
    end = time.monotonic() + seconds
    probes: list[tuple[int, str]] = []
    async with aiohttp.ClientSession(product.address) as http:
        while time.monotonic() < end:
            async with http.get("/readyz") as answer:
                probes.append((answer.status, await answer.text()))
            await asyncio.sleep(PROBE_SECONDS)
    return probes


async def _seconds_until_ready(product: Product) -> float:
    """Return the seconds until the product is ready, without any traffic."""
    began = time.monotonic()
    while (await _probes(product, PROBE_SECONDS))[-1][0] != 200:
        if time.monotonic() - began > 2 * RECOVERY_SECONDS:
            break
    return time.monotonic() - began


async def _until(load: Load, enough: Callable[[], bool]) -> None:
    while not enough():
        await load.until_sent(load.count + 1)


async def _ask_while_full(site: _Site, seconds: float) -> list[int]:
    """Read records, health and metrics over and over; return the statuses.

    A readiness that does not name the full disk counts as a failure.
    """
    [owner, *_] = site.load.tenants.keys
    headers = {"X-API-Key": site.load.tenants.keys[owner]}
    end = time.monotonic() + seconds
    statuses = []
    async with aiohttp.ClientSession(site.product.address, headers=headers) as http:
        while time.monotonic() < end:
            for path in ("/api/contacts", "/livez", "/metrics", "/console/sign-in"):
                async with http.get(path) as answer:
                    statuses.append(answer.status)
            async with http.get("/readyz") as answer:
                said = await answer.text()
                statuses.append(200 if answer.status == 503 and "disk full" in said else 0)
            await asyncio.sleep(0.1)
    return statuses


SEED = 40260


@pytest.mark.slow
async def test_one_unit_of_a_batch_fails_and_the_others_stand() -> None:
    told = await run_batch_failures(20, SEED)
    assert told["pass"], told


@pytest.mark.proof
async def test_a_full_disk_refuses_writes_and_loses_nothing() -> None:
    told = await run_disk_full(SEED)
    assert told["pass"], told


@pytest.mark.proof
async def test_a_full_disk_of_the_server_is_not_ready() -> None:
    told = await run_server_disk_full(SEED)
    assert told["pass"], told
