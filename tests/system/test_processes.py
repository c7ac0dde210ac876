"""Kill -9 of one of several processes: nothing is lost, and another takes over at once."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import aiohttp
import pytest

from tests.support.faults import shows, sizes
from tests.support.fleet import Fleet, Spell, fleet
from tests.support.ledger import Held, Verdict, newly, query
from tests.support.waiting import in_time
from tests.system.nodes import taken_over_after
from tests.system.nodes_judged import judged

PROCESSES = 2
RATE = 50.0
WRITES = (20, 80)
TAKEOVER_SECONDS = 10.0
"""Well below the 30 s of a lease: the supervisor knows that the process has ended."""
BACK_SECONDS = 40.0
STILL_SECONDS = 0.2
LIVE = "select id from nodes where alive_until >= due_now()"
HELD = """
select event_id, webhook_id, claim from deliveries where state = 'in_flight' and node_id = '{}'
"""
MOST_TIMES = 4
COUNTED = re.compile(
    r'^(?:webhook_attempts_total\{.*outcome="success"\}|outbox_events_total\{.*\}) (\S+)$',
    re.MULTILINE,
)


@dataclass
class Kill:
    """One kill: whether it met the process that delivers, and what happened."""

    works: bool
    met: Held
    writes: int
    seconds: float
    counted: float


async def run_process_kills(rounds: int, seed: int, *, module: str = "gateway") -> dict[str, Any]:
    """SIGKILL one of two processes under load, `rounds` times: by turns the one that delivers."""
    kills: list[Kill] = []
    environment = {"CARTEIRO_SERVER__PROCESSES": str(PROCESSES)}
    async with fleet(seed, 1, module=module, environment=environment) as site:
        # A few kills may all come between two writes; then more follow, up to a bound.
        while len(kills) < rounds or (len(kills) < MOST_TIMES * rounds and not _met(kills)):
            kills.append(await _kill(site, works=len(kills) % 2 == 0))
        async with site.load.writing_to([site.nodes[0].product.address], rate=RATE):
            await site.writes(*WRITES)
        counted = await _counted(site)

        def more(verdict: Verdict) -> None:
            slots = sum(map(len, site.in_flight))
            verdict.find(verdict.duplicated > slots, "more duplicates than were in flight")
            verdict.find(not slots, "no kill met a send")
            verdict.find(not any(kill.writes for kill in kills), "no kill met a write")
            slowest = max(kill.seconds for kill in kills)
            verdict.find(slowest > TAKEOVER_SECONDS, f"taken over only after {slowest:.1f} s")
            counts = [*(kill.counted for kill in kills), counted]
            verdict.find(counts != sorted(counts), f"counts fell: {counts}")
            verdict.figures |= {
                "taken_over_s": round(slowest, 2),
                "writes_cut": sum(kill.writes for kill in kills),
            }

        fault = f"{rounds} kills of one of {PROCESSES} processes"
        return await judged(fault, site, broken_allowed=True, more=more)


def _met(kills: Sequence[Kill]) -> bool:
    """Return whether kills met a write and a send."""
    return any(kill.writes for kill in kills) and any(kill.met for kill in kills)


async def _kill(site: Fleet, *, works: bool) -> Kill:
    product, load = site.nodes[0].product, site.load
    counted = await _counted(site)
    before = len(load.broken)
    async with load.writing_to([product.address], rate=RATE):
        await site.writes(*WRITES)
        pid, node = await _process(site, works=works)
        if works:
            await in_time(lambda: _sends(site), BACK_SECONDS)
        # Stopped first, so that what it holds can be read before the others take it over.
        os.kill(pid, signal.SIGSTOP)
        met = newly(await _still(site, node) if works else {}, site.in_flight)
        at = time.monotonic()
        os.kill(pid, signal.SIGKILL)
        seconds = await taken_over_after(site, met, at)
        await site.writes(*WRITES)
    site.in_flight.append(met)
    webhooks = frozenset(webhook for _, webhook in met)
    assert await in_time(lambda: _whole(site), BACK_SECONDS), product.last_words()
    site.spells.append(Spell(at - 1.0, time.monotonic(), webhooks, product.address))
    return Kill(works, met, len(load.broken) - before, seconds, counted)


async def _process(site: Fleet, *, works: bool) -> tuple[int, str]:
    """Return a process that does the background work, or one that does not, and who delivers."""
    lines = [json.loads(line) for line in site.nodes[0].product.log.read_text().splitlines()]
    there = {line["place"]: line["pid"] for line in lines if line["event"] == "process_started"}
    working = [line["pid"] for line in lines if line["event"] == "process_works"][-1]
    [node] = [id_ for (id_,) in await query(site.url, LIVE)]
    return next(pid for pid in there.values() if (pid == working) == works), node


async def _still(site: Fleet, node: str) -> Held:
    """Return what a stopped process holds, once its last COMMIT is over."""
    last: Held | None = None
    while True:
        rows = await query(site.url, HELD.format(node))
        found = {(event, webhook): claim for event, webhook, claim in rows}
        if found == last:
            return found
        last = found
        await asyncio.sleep(STILL_SECONDS)


async def _sends(site: Fleet) -> bool:
    return site.busy(site.nodes[0])


async def _whole(site: Fleet) -> bool:
    """Return whether all processes run; the node is ready before."""
    async with aiohttp.ClientSession() as http:
        async with http.get(f"{site.nodes[0].product.address}/metrics") as answer:
            return 'server_processes{state="missing"} 0.0' in await answer.text()


async def _counted(site: Fleet) -> float:
    """Return the sum of two counters of the node."""
    async with aiohttp.ClientSession() as http:
        async with http.get(f"{site.nodes[0].product.address}/metrics") as answer:
            return sum(map(float, COUNTED.findall(await answer.text())))


SEED = 90260
BROKEN = "tests.system.broken_serve"


@sizes("kills", small=2, large=10)
async def test_kills_lose_nothing(kills: int) -> None:
    told = await run_process_kills(kills, SEED)
    assert told["pass"], told


@pytest.mark.proof
@pytest.mark.timeout(600)
async def test_settling_before_sending_is_seen() -> None:
    """The processes run the entry point of their supervisor, so this breaks all of them."""
    assert await shows(partial(run_process_kills, 3, module=BROKEN), SEED)
