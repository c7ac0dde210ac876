"""Too few descriptors, or too little memory: bounded refusals, and nothing is lost.

In one round the process gets no more address space, and ends when an allocation fails: the load
decides where. In the next it is killed when its memory has passed a mark. That is what the kernel
does to a process over the limit of its memory cgroup: SIGKILL, without a word, in the middle of
much work. A cgroup of the test's own would need the machine's leave, so the test sends the signal.

Refusals are bounded and say so, probes are answered, and when the clients have gone, all is served.
"""

from __future__ import annotations

import asyncio
import os
import resource
import time
from collections import Counter
from dataclasses import dataclass
from functools import partial
from math import inf
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.support.deployed import Deployed, deployed
from tests.support.engines import Engine, state_after_kill
from tests.support.faults import ENGINES, shows
from tests.support.ledger import Held, Verdict, newly, query
from tests.support.requirements import need
from tests.support.waiting import in_time

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


CLIENTS = 100
NOTES = 10_000
MEMORY_RATE = 100.0
MEMORY_WRITES = 50
MEMORY_LATENCY = (0.0, 0.08)
SPACE_MIB = (0.5, 6.0)
"""Address space that is left to the process when the load begins, beside 600 MiB that it has."""
GROWTH_MIB = (4.0, 12.0)
"""How much its memory grows before it is killed."""
PATIENCE = 10.0
"""It does not grow for ever, and is killed then."""
FIRST_ATTEMPT_SECONDS = 5.0
DRAIN_SECONDS = {"sqlite": 30.0, "postgres": 75.0}
MIB = 2**20
PAGE = resource.getpagesize()


@dataclass
class _End:
    """How the process ended, what was under way, and how the next start went on."""

    mib: float
    status: int
    writes: int
    in_flight: Held
    integrity: str
    started_s: float = 0.0
    first_attempt_s: float = inf


async def run_memory_ends(rounds: int, engine: Engine, seed: int) -> dict[str, Any]:
    """End the process twice for each of `rounds`; return the record."""
    need("linux")
    async with deployed(engine, seed, owners=20, latency=MEMORY_LATENCY) as site:
        ends: list[_End] = []
        for number in range(2 * rounds):
            ends.append(await _end(site, [end.in_flight for end in ends], limit=number % 2 == 0))
            await _restart(site, ends[-1])
        async with site.load.writing(site.product.address, rate=MEMORY_RATE):
            await site.more(MEMORY_WRITES)
        verdict = await site.verdict(
            "ended for its memory", in_flight=[end.in_flight for end in ends],
            seconds=DRAIN_SECONDS[engine],
        )  # fmt: skip
    _judge(verdict, site, ends)
    return verdict.told()


async def _end(site: Deployed, earlier: list[Held], *, limit: bool) -> _End:
    """Let many clients send large writes until the process has ended."""
    before = len(site.load.broken)
    over = asyncio.Event()
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(site.product.address, connector=connector) as http:
        mark = inf
        if limit:
            _leave(site.product.pid, site.dice.uniform(*SPACE_MIB))
        clients = [asyncio.create_task(_write(site, http, over)) for _ in range(CLIENTS)]
        await site.more(CLIENTS)
        if not limit:
            mark = site.product.rss() + site.dice.uniform(*GROWTH_MIB)
        mib = await asyncio.to_thread(_until_ended, site, mark)
        over.set()
        await asyncio.gather(*clients)
    status = await site.product.ended()
    met, integrity = await state_after_kill(site.url)
    return _End(mib, status, len(site.load.broken) - before, newly(met, earlier), integrity)


async def _restart(site: Deployed, end: _End) -> None:
    """Start it again, and wait until it sends: what was under way is rescued."""
    began = time.monotonic()
    end.started_s = await site.product.start()
    # Nothing may have been under way.
    async with aiohttp.ClientSession(site.product.address) as http:
        await site.load.write(http)
    got = site.there.got
    if await in_time(lambda: bool(got) and got[-1].at > began, PATIENCE):
        end.first_attempt_s = next(r.at for r in got if r.at > began) - began


async def _write(site: Deployed, http: aiohttp.ClientSession, over: asyncio.Event) -> None:
    """Write until the process ends: the first write without an answer was cut by that."""
    while not over.is_set():
        if await site.load.write(http, NOTES) in site.load.broken:
            return


def _leave(pid: int, mib: float) -> None:
    """Let the process have so much more address space."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[0])
    most = pages * PAGE + round(mib * MIB)
    resource.prlimit(pid, resource.RLIMIT_AS, (most, most))


def _until_ended(site: Deployed, mark: float) -> float:
    """Wait in a thread until the process ends by itself, or kill it beyond the mark."""
    end = time.monotonic() + PATIENCE
    most = 0.0
    while (mib := site.product.rss()) and mib <= mark and time.monotonic() < end:
        most = max(most, mib)
        time.sleep(0.002)
    site.product.kill()
    return max(most, mib)


def _judge(verdict: Verdict, site: Deployed, ends: list[_End]) -> None:
    """Check what R1 asks after a kill."""
    slots = sum(len(end.in_flight) for end in ends)
    writes = sum(end.writes for end in ends)
    wrong = [r for r in site.load.refused.values() if r.status < 500]
    killed = sum(end.status == -9 for end in ends)
    verdict.find(len(wrong), f"refusals other than a 5xx: {wrong[:3]}")
    verdict.find(killed == len(ends), "no limit ended the process")
    verdict.find(not slots or not writes, "no end met a send and a write")
    verdict.find(verdict.duplicated > slots, "more duplicates than deliveries in flight")
    verdict.find(max(verdict.recovered - writes, 0), "more writes recovered than were under way")
    verdict.find(sum(end.integrity != "ok" for end in ends), "files damaged")
    first = max(end.first_attempt_s for end in ends)
    late = sum(end.first_attempt_s > FIRST_ATTEMPT_SECONDS for end in ends)
    verdict.find(late, "first attempts later than 5 s")
    verdict.figures |= {
        "ends": [end.status for end in ends], "mib": [round(end.mib, 1) for end in ends],
        "in_flight": slots, "writes_cut": writes, "refused": len(site.load.refused),
        "slowest_start_s": round(max(end.started_s for end in ends), 2),
        "first_attempt_s": round(first, 2),
    }  # fmt: skip


SEED = 27_250
THIRSTY = "tests.system.thirsty_serve"
ENDS = 5

pytestmark = [pytest.mark.proof, pytest.mark.timeout(600)]


@ENGINES
async def test_with_few_descriptors_clients_are_refused_and_served_later(engine: Engine) -> None:
    told = await run_few_descriptors(engine, SEED)
    assert told["pass"], told


async def test_taking_all_descriptors_is_seen() -> None:
    assert await shows(partial(run_few_descriptors, "sqlite", module=THIRSTY), SEED)


@pytest.mark.timed
@ENGINES
async def test_an_end_for_memory_loses_nothing(engine: Engine) -> None:
    told = await run_memory_ends(ENDS, engine, SEED)
    assert told["pass"], told
