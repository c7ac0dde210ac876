"""Too few descriptors, or too little memory: bounded refusals, and nothing is lost (R27).

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

import aiohttp

from tests.support.deployed import Deployed, deployed
from tests.support.engines import Engine
from tests.support.faults import ENGINES, shows
from tests.support.ledger import Verdict, query
from tests.support.requirements import need
from tests.support.waiting import in_time

SEED = 27_250
DESCRIPTORS = 256
MANY = 300
"""Receivers, and clients that write at the same time."""
ROUNDS = 5
BACK_SECONDS = 5.0
# All clients of a test have one address.
SETTINGS = {"CARTEIRO_LIMITS__CONNECTIONS_PER_ADDRESS": "1000"}
OUTCOMES = "select outcome, count(*) from attempts group by outcome"


async def run_few_descriptors(engine: Engine, seed: int, *, broken: str = "") -> Verdict:
    """Let more clients write to more receivers than the process may have descriptors for."""
    prefix = (need("prlimit"), f"--nofile={DESCRIPTORS}")
    async with deployed(
        engine, seed, owners=MANY, webhooks=1, latency=(0.05, 0.2), broken=broken, prefix=prefix,
        settings=SETTINGS,
    ) as site:  # fmt: skip
        load = site.load
        most, probes = await _flood(site)
        refused, acked, began = len(load.refused), len(load.acked), time.monotonic()
        async with site.writing(rate=20.0):
            back = await site.acked_after(began)
        late = len(load.refused) - refused
        reached = len(site.there.got)
        async with site.writing():
            await site.more(500)
        again = {receipt.port for receipt in site.there.got[reached:]}
        verdict = await site.verdict(f"{DESCRIPTORS} descriptors")
        outcomes = dict(await query(site.url, OUTCOMES))
        running = site.product.running
    wrong = [r for r in load.refused.values() if r.status != 503 or r.retry_after is None]
    verdict.find(len(wrong), f"refusals other than a 503 with Retry-After: {wrong[:3]}")
    verdict.find(not refused or not acked, "nobody was refused, or nobody served meanwhile")
    verdict.find(len(load.broken), f"writes without an answer: {Counter(load.broken.values())}")
    verdict.find(probes, "probes without a 200 meanwhile")
    verdict.find(back > BACK_SECONDS, f"served again only after {back:.1f} s")
    verdict.find(len(load.refused) - refused - late, "writes refused although clients had gone")
    verdict.find(len(again) < MANY * 0.75, f"only {len(again)} receivers were reached afterwards")
    verdict.find(not set(outcomes) <= {"success", "connect_error"}, f"outcomes: {outcomes}")
    verdict.find(not running, "the process ended")
    verdict.figures |= {
        "acked_meanwhile": acked, "refused": refused, "back_s": round(back, 2),
        "most_descriptors": most, "connect_errors": outcomes.get("connect_error", 0),
    }  # fmt: skip
    return verdict


async def _flood(site: Deployed) -> tuple[int, int]:
    """Let many clients write at once, over and over, and keep their connections meanwhile.

    Return the most descriptors that were seen, and how many probes failed.
    """
    most, probes, product = 0, list[int](), site.product

    async def probe() -> None:
        for path in ("/livez", "/readyz"):
            probes.append((await product.get(path, seconds=10.0))[0])

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as clients:
        for _ in range(ROUNDS):
            writes = (site.load.write(clients, product.address) for _ in range(MANY))
            await asyncio.gather(*writes, probe())
            most = max(most, len(os.listdir(f"/proc/{product.pid}/fd")))
    return most, sum(status != 200 for status in probes)


@ENGINES
async def test_with_few_descriptors_clients_are_refused_and_served_later(engine: Engine) -> None:
    (await run_few_descriptors(engine, SEED)).must_hold()


async def test_taking_all_descriptors_is_seen() -> None:
    thirsty = partial(run_few_descriptors, "sqlite", broken="takes_all_descriptors")
    assert await shows(thirsty, SEED)


ENDS = 6
CLIENTS = 100
NOTES = 10_000
SPACE_MIB = (0.5, 6.0)
"""Address space that is left to the process when the load begins, beside 600 MiB that it has."""
GROWTH_MIB = (4.0, 12.0)
"""How much its memory grows before it is killed."""
PATIENCE = 10.0
"""It does not grow for ever, and is killed then."""
FIRST_ATTEMPT_SECONDS = 5.0
DRAIN_SECONDS = {"sqlite": 30.0, "postgres": 75.0}


@dataclass
class _End:
    """How the process ended, what was under way, and how the next start went on."""

    status: int
    writes: int
    first_attempt_s: float = inf


@ENGINES
async def test_an_end_for_memory_loses_nothing(engine: Engine) -> None:
    need("linux")
    async with deployed(engine, SEED, owners=20, latency=(0.0, 0.08)) as site:
        ends: list[_End] = []
        for number in range(ENDS):
            ends.append(await _end(site, limit=number % 2 == 0))
            await _restart(site, ends[-1])
        async with site.writing(rate=100.0):
            await site.more(50)
        verdict = await site.verdict("ended for its memory", seconds=DRAIN_SECONDS[engine])
    slots, writes = sum(map(len, site.deaths)), sum(end.writes for end in ends)
    wrong = [r for r in site.load.refused.values() if r.status < 500]
    killed = sum(end.status == -9 for end in ends)
    verdict.find(len(wrong), f"refusals other than a 5xx: {wrong[:3]}")
    verdict.find(killed == len(ends), "no limit ended the process")
    verdict.find(not slots or not writes, "no end met a send and a write")
    verdict.find(verdict.duplicated > slots, "more duplicates than deliveries in flight")
    verdict.find(max(verdict.recovered - writes, 0), "more writes recovered than were under way")
    first = max(end.first_attempt_s for end in ends)
    verdict.find(first > FIRST_ATTEMPT_SECONDS, "first attempts later than 5 s")
    verdict.figures |= {
        "ends": [end.status for end in ends], "writes_cut": writes,
        "refused": len(site.load.refused), "first_attempt_s": round(first, 2),
    }  # fmt: skip
    verdict.must_hold()


async def _end(site: Deployed, *, limit: bool) -> _End:
    """Let many clients send large writes until the process has ended."""
    before, over, product = len(site.load.broken), asyncio.Event(), site.product
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as http:
        mark = inf
        if limit:
            _leave(product.pid, site.dice.uniform(*SPACE_MIB))
        clients = [asyncio.create_task(_write(site, http, over)) for _ in range(CLIENTS)]
        await site.more(CLIENTS)
        if not limit:
            mark = product.rss() + site.dice.uniform(*GROWTH_MIB)
        await asyncio.to_thread(_until_ended, site, mark)
        over.set()
        await asyncio.gather(*clients)
    status = await product.ended()
    await site.died()
    return _End(status, len(site.load.broken) - before)


async def _restart(site: Deployed, end: _End) -> None:
    """Start it again, and wait until it sends: what was under way is rescued."""
    began = time.monotonic()
    await site.product.start()
    ready = time.monotonic()
    # Nothing may have been under way.
    async with aiohttp.ClientSession() as http:
        await site.load.write(http, site.product.address)
    got = site.there.got
    if await in_time(lambda: bool(got) and got[-1].at > began, PATIENCE):
        end.first_attempt_s = next(r.at for r in got if r.at > began) - ready


async def _write(site: Deployed, http: aiohttp.ClientSession, over: asyncio.Event) -> None:
    """Write until the process ends: the first write without an answer was cut by that."""
    while not over.is_set():
        if await site.load.write(http, site.product.address, NOTES) in site.load.broken:
            return


def _leave(pid: int, mib: float) -> None:
    """Let the process have so much more address space."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + round(mib * 2**20)
    resource.prlimit(pid, resource.RLIMIT_AS, (most, most))


def _until_ended(site: Deployed, mark: float) -> None:
    """Wait in a thread until the process ends by itself, or kill it beyond the mark."""
    end = time.monotonic() + PATIENCE
    while (mib := site.product.rss()) and mib <= mark and time.monotonic() < end:
        time.sleep(0.002)
    site.product.kill()
