"""A process that ends because of its memory, under load (R27): then the rules of a kill hold.

In one round the process gets no more address space, and ends when an allocation fails: the load
decides where. In the next it is killed when its memory has passed a mark. That is what the kernel
does to a process over the limit of its memory cgroup: SIGKILL, without a word, in the middle of
much work. A cgroup of the test's own would need the machine's leave, so the test sends the signal.
"""

from __future__ import annotations

import asyncio
import resource
import time
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Any

import aiohttp

from tests.support.deployed import Deployed, deployed, until_true
from tests.support.engines import Engine, state_after_kill
from tests.support.ledger import Held, Verdict, newly
from tests.support.requirements import need

CLIENTS = 100
NOTES = 10_000
RATE = 100.0
WRITES = 50
LATENCY = (0.0, 0.08)
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
    async with deployed(engine, seed, owners=20, latency=LATENCY) as site:
        ends: list[_End] = []
        for number in range(2 * rounds):
            ends.append(await _end(site, [end.in_flight for end in ends], limit=number % 2 == 0))
            await _restart(site, ends[-1])
        async with site.load.writing(site.product.address, rate=RATE):
            await site.more(WRITES)
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
    if await until_true(lambda: bool(got) and got[-1].at > began, PATIENCE):
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
