"""Disks lose their power, refuse to flush, are slow or full (R3, R4, R5).

No write is acknowledged before it is on the disk, and no acknowledged one is lost.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path

import aiohttp
import asyncpg

from tests.benchmarks.figures import quantile
from tests.support.cluster import Cluster, own_server
from tests.support.deployed import Deployed, deployed
from tests.support.engines import Engine, state_after_kill
from tests.support.faults import ENGINES, shows
from tests.support.ledger import Verdict, query
from tests.support.volume import ext4, fill, on_small_disk, tmpfs
from tests.system.test_clocks import shim
from tests.system.test_kills import injected

SEED = 30260
ROUNDS = 5
WRITES = (20, 80)
LATENCY = (0.0, 0.08)
AFTER_SECONDS = 0.3
"""Seconds that clients write to the dead disk: none of these writes may be acknowledged."""


async def run_power_cuts(
    rounds: int, engine: Engine, seed: int, *, synchronous: str = "full"
) -> Verdict:
    """Make `rounds` cuts on one database, then the ledger over all of them."""
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="carteiro-power-")))
        # PostgreSQL's own user must reach its data.
        folder.chmod(0o755)
        volume = stack.enter_context(ext4(folder, 64 if engine == "sqlite" else 384))
        cluster, url = None, f"sqlite:///{volume.path / 'carteiro.db'}"
        if engine == "postgres":
            cluster = Cluster(volume.path / "data")
            stack.push_async_callback(cluster.close)
            await cluster.create()
            await cluster.start()
            url = cluster.url
        site = await stack.enter_async_context(
            deployed(
                engine, seed, url=url, owners=20, latency=LATENCY,
                settings={"CARTEIRO_DATABASE__SYNCHRONOUS": synchronous},
            )
        )  # fmt: skip
        for _ in range(rounds):
            async with site.writing():
                await site.more(site.dice.randint(*WRITES))
                await asyncio.sleep(site.dice.uniform(0.0, 0.02))
                volume.cut()
                await asyncio.sleep(AFTER_SECONDS)
                site.product.kill()
            await site.product.ended()
            if cluster is not None:
                await cluster.kill()
            await asyncio.to_thread(volume.repower)
            if cluster is not None:
                await cluster.start()
            await site.died()
            await site.product.start()
        # The disk may have stored a COMMIT whose fsync it then refused to confirm.
        verdict = await site.verdict(f"power cut, synchronous={synchronous}", unknown_allowed=True)
    verdict.figures |= {"refused": len(site.load.refused), "broken": len(site.load.broken)}
    return verdict


@ENGINES
async def test_power_cuts_lose_nothing(engine: Engine) -> None:
    (await run_power_cuts(ROUNDS, engine, SEED)).must_hold()


@ENGINES
async def test_synchronous_normal_is_seen(engine: Engine) -> None:
    """The cost of `normal` as config.toml states it."""
    assert await shows(partial(run_power_cuts, 1, engine, synchronous="normal"), SEED)


FIRST_FLUSHES = (1, 12)
"""The flush of a thread or backend that fails, counted from the start of the fault."""
HIT_SECONDS = 20.0
MOST_ROUNDS = 4
"""Times the rounds, until a write meets a failed flush."""
BACK_SECONDS = 10.0
FLUSH_SECONDS = 2.0
SLOW_FLUSHES = 8
FLUSHES_OF_A_WRITE = 6
"""A write waits for the batch before it and for its own; each may be followed by a checkpoint."""
LOOP_MS = 100.0
BACKENDS = "select pid from pg_stat_activity where backend_type in ('client backend', 'walwriter')"
CALLS = {"sqlite": "fdatasync,fsync", "postgres": "fdatasync"}


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


@asynccontextmanager
async def flushing(engine: Engine, seed: int, broken: str) -> AsyncIterator[Deployed]:
    """Run the product; on PostgreSQL, on a server of its own that flushes."""
    async with AsyncExitStack() as stack:
        url = ""
        if engine == "postgres":
            url = (await stack.enter_async_context(own_server())).url
        yield await stack.enter_async_context(deployed(engine, seed, url=url, broken=broken))


async def run_failed_flushes(
    rounds: int, engine: Engine, seed: int, *, broken: str = ""
) -> Verdict:
    """Let one flush fail with EIO, `rounds` times under load, or until it was that of a write.

    The drain's units flush too, and any of them may meet the fault.
    """
    async with flushing(engine, seed, broken) as site:
        tried, hit, backs = 0, 0, list[float]()
        async with site.writing():
            while tried < rounds or (not site.load.refused and tried < MOST_ROUNDS * rounds):
                tried += 1
                await site.more(20)
                fault = f"error=EIO:when={site.dice.randint(*FIRST_FLUSHES)}"
                pids = await _pids(site)
                async with injected(pids, CALLS[engine], fault, site.folder) as injection:
                    hit += await injection.until_hit(HIT_SECONDS)
                backs.append(await site.acked_after(time.monotonic()))
        await _pids(site)
        met, integrity = await state_after_kill(site.url) if engine == "sqlite" else ({}, "ok")
        verdict = await site.verdict("flush failed", in_flight=[met], unknown_allowed=True)
        running = site.product.running
        status = await site.product.stop()
    load = site.load
    verdict.find(len(load.wrong), f"refusals other than a good 503: {load.wrong[:3]}")
    verdict.find(tried - hit, "rounds in which no flush failed")
    verdict.find(not load.refused, "no write was refused: the fault met none")
    verdict.find(sum(back > BACK_SECONDS for back in backs), "times later than 10 s to serve again")
    verdict.find(len(load.broken), "writes without an answer")
    verdict.find(integrity != "ok", f"file damaged: {integrity}")
    verdict.find(not running or status != 0, f"the process ended with {status}")
    verdict.figures |= {
        "rounds": tried, "refused": len(load.refused), "back_s": round(max(backs), 2),
    }  # fmt: skip
    return verdict


@ENGINES
async def test_a_write_whose_flush_failed_is_refused(engine: Engine) -> None:
    (await run_failed_flushes(ROUNDS, engine, SEED)).must_hold()


async def test_forgetting_a_failed_flush_is_seen() -> None:
    hopeful = partial(run_failed_flushes, 3, "sqlite", broken="forgets_failed_flushes")
    assert await shows(hopeful, SEED)


async def test_a_flush_of_two_seconds_holds_up_writes_alone() -> None:
    """Reads and probes beside it are judged by those of the same server before it."""
    with tempfile.TemporaryDirectory(prefix="carteiro-shim-") as home, shim(Path(home)) as faults:
        async with deployed("sqlite", SEED, settings=faults.environment) as site:
            before, meanwhile = list[float](), list[float]()
            async with site.writing(), _asking(site, before):
                await site.more(200)
            site.load.milliseconds.clear()
            faults.set(flush_seconds=FLUSH_SECONDS)
            async with site.writing(), _asking(site, meanwhile):
                while faults.flushes < SLOW_FLUSHES:
                    await site.more(10)
            faults.set()
            slow = [*site.load.milliseconds]
            verdict = await site.verdict("flush of 2 s")
    writes, quiet, probes = quantile(slow, 0.99), quantile(before, 0.99), quantile(meanwhile, 0.99)
    verdict.find(writes > FLUSHES_OF_A_WRITE * FLUSH_SECONDS * 1000, f"writes took {writes:.0f} ms")
    late = probes > max(LOOP_MS, 2 * quiet)
    verdict.find(late, f"the p99 of reads is {probes:.0f} ms, before {quiet:.0f} ms")
    verdict.find(len(site.load.wrong) + len(site.load.broken), "writes cut or refused otherwise")
    verdict.figures |= {"read_p99_ms": round(probes, 1), "read_p99_before_ms": round(quiet, 1)}
    verdict.must_hold()


@asynccontextmanager
async def _asking(site: Deployed, times: list[float]) -> AsyncIterator[None]:
    """Read a list and probe over and over during the block; note the milliseconds."""
    headers = {"X-API-Key": next(iter(site.tenants.keys.values()))}

    async def ask() -> None:
        async with aiohttp.ClientSession(site.product.address, headers=headers) as http:
            while True:
                for path in ("/livez", "/api/contacts?limit=1"):
                    began = time.monotonic()
                    async with http.get(path) as answer:
                        await answer.read()
                        assert answer.status == 200, (path, answer.status)
                    times.append((time.monotonic() - began) * 1000)
                await asyncio.sleep(0.02)

    asking = asyncio.create_task(ask())
    try:
        yield
    finally:
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)


NOTES = 10_000
"""Characters of notes that do not fit into any free page."""
FULL_SECONDS = 3.0
REFUSAL_SECONDS = 1.0
RECOVERY_SECONDS = 5.0


async def test_a_full_disk_refuses_writes_and_loses_nothing() -> None:
    """Database and log are on it, it fills under load, and is freed again."""
    with (
        tempfile.TemporaryDirectory(prefix="carteiro-full-") as home,
        tmpfs(Path(home), 24) as disk,
    ):
        async with deployed("sqlite", SEED, folder=disk) as site:
            load = site.load
            async with site.writing():
                await site.more(40)
                ballast = await asyncio.to_thread(fill, disk)
                while len(load.refused) < 3:
                    await site.more(1)
                answers = await _ask_while_full(site)
                ballast.unlink()
                back = await site.acked_after(time.monotonic())
                await site.more(20)
            verdict = await site.verdict("disk full")
    slowest = max(refused.seconds for refused in load.refused.values())
    verdict.find(len(load.wrong), f"refusals other than a good 503: {load.wrong[:3]}")
    verdict.find(slowest > REFUSAL_SECONDS, f"a refusal took longer than 1 s ({slowest:.2f} s)")
    verdict.find(len(answers), f"reads and probes that failed while it was full: {answers[:3]}")
    verdict.find(back > RECOVERY_SECONDS, f"back only {back:.1f} s after space was freed")
    verdict.find(len(load.broken), "writes without an answer")
    verdict.figures |= {"slowest_refusal_s": round(slowest, 3), "back_s": round(back, 2)}
    verdict.must_hold()


async def _ask_while_full(site: Deployed) -> list[tuple[str, int]]:
    """Read records, health and metrics over and over; return what failed.

    A readiness that does not name the full disk counts as a failure.
    """
    key = next(iter(site.tenants.keys.values()))
    end, failed = time.monotonic() + FULL_SECONDS, list[tuple[str, int]]()
    while time.monotonic() < end:
        for path in ("/api/contacts", "/livez", "/metrics", "/console/sign-in"):
            status, _ = await site.product.get(path, key)
            failed += [(path, status)] if status != 200 else []
        status, said = await site.product.get("/readyz")
        failed += [("/readyz", status)] if status != 503 or "disk full" not in said else []
        await asyncio.sleep(0.1)
    return failed


async def test_a_full_disk_of_the_server_is_not_ready() -> None:
    """The disk of PostgreSQL's tables fills under load, and is freed when nobody writes."""
    async with own_server() as cluster:
        with tmpfs(cluster.data.parent, 48) as disk:
            url = await on_small_disk(cluster, disk)
            async with deployed("postgres", SEED, url=url) as site:
                load, probes = site.load, list[tuple[int, str]]()
                async with site.writing(notes=NOTES):
                    await site.more(40)
                    ballast = await asyncio.to_thread(fill, disk)
                    while len(load.refused) < 10:
                        await site.more(1)
                    for _ in range(round(FULL_SECONDS / 0.2)):
                        probes.append(await site.product.get("/readyz"))
                        await asyncio.sleep(0.2)
                ballast.unlink()
                freed = time.monotonic()
                while (await site.product.get("/readyz"))[0] != 200:
                    assert time.monotonic() - freed < 2 * RECOVERY_SECONDS
                idle = time.monotonic() - freed
                async with site.writing():
                    await site.more(20)
                verdict = await site.verdict("disk full")
            # The tables are on the disk.
            await cluster.close()
    ready = sum(status == 200 for status, _ in probes)
    named = sum("disk full" in said for status, said in probes if status == 503)
    verdict.find(len(load.wrong), f"refusals other than a good 503: {load.wrong[:3]}")
    verdict.find(ready > 5, f"{ready} of {len(probes)} probes said ready")
    verdict.find(named < len(probes) - ready, "refused probes that do not name the disk")
    verdict.find(idle > RECOVERY_SECONDS, f"ready only {idle:.1f} s after space was freed")
    verdict.find(len(load.broken), "writes without an answer")
    verdict.figures |= {"ready_while_full": ready, "ready_again_s": round(idle, 2)}
    verdict.must_hold()
