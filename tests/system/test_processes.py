"""One of several processes of a node is killed or stands still: another takes over (R1, R41).

PostgreSQL and two processes. The faults of R41 are behind the HAProxy configuration of docs/deploy,
where it is installed.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import signal
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.deploy.proxies import running
from tests.support.fleet import Fleet, fleet
from tests.support.ledger import Held, Verdict, newly, read_rows, until_drained
from tests.support.waiting import in_time
from tests.system.test_nodes import LEASE_SECONDS, judged, taken_over_after

SEED = 90260
PROCESSES = {"CARTEIRO_SERVER__PROCESSES": "2"}
WRITES = (20, 80)
KILLS = 6
TAKEOVER_SECONDS = 10.0
"""Well below the 30 s of a lease: the supervisor knows that the process has ended."""
BACK_SECONDS = 40.0
FROZEN_SECONDS = 8.0
AT_ONCE = 0.3
"""A request that began so long after a kill may have been sent on a connection that it ended."""
DELIVERS_SECONDS = 5.0
REDIRECT = "    http-request redirect scheme https code 308 unless { ssl_fc }"
LIVE = "select id from nodes where alive_until >= due_now()"
HELD = """
select event_id, webhook_id, claim from deliveries where state = 'in_flight' and node_id = '{}'
"""
COUNTED = re.compile(
    r'^(?:webhook_attempts_total\{.*outcome="success"\}|outbox_events_total\{.*\}) (\S+)$',
    re.MULTILINE,
)


@dataclass
class Site:
    """The node, and its address before the load."""

    fleet: Fleet
    address: str
    counts: list[float] = field(default_factory=list)
    """Two counters of the node, summed, each time that somebody looked."""
    takeovers: list[float] = field(default_factory=list)

    @property
    def pids(self) -> dict[int, int]:
        """The processes that have started last, by place."""
        return {line["place"]: line["pid"] for line in self._lines("process_started")}

    @property
    def worker(self) -> int:
        """The process that delivers."""
        return int(self._lines("process_works")[-1]["pid"])

    @property
    def supervisor(self) -> int:
        return self.fleet.nodes[0].product.pid

    def _lines(self, event: str) -> list[dict[str, Any]]:
        text = self.fleet.nodes[0].product.log.read_text().rpartition("\n")[0]
        return [line for line in map(json.loads, text.splitlines()) if line["event"] == event]

    async def until_whole(self) -> None:
        """Wait until both processes answer and one alone delivers."""
        product = self.fleet.nodes[0].product

        async def whole() -> bool:
            _, text = await product.get("/metrics")
            live = await self.fleet.query(LIVE)
            return 'server_processes{state="answering"} 2.0' in text and len(live) == 1

        assert await in_time(whole, BACK_SECONDS), product.last_words()

    async def count(self) -> None:
        _, text = await self.fleet.nodes[0].product.get("/metrics")
        self.counts.append(sum(map(float, COUNTED.findall(text))))

    async def kill_one(self, *, works: bool) -> None:
        """SIGKILL under load the process that delivers, or the other one."""
        there, load = self.fleet, self.fleet.load
        await self.count()
        async with load.writing(self.address):
            await there.writes(*WRITES)
            pid = next(pid for pid in self.pids.values() if (pid == self.worker) == works)
            if works:
                await in_time(lambda: there.busy_with(there.nodes[0]), BACK_SECONDS)
            # Stopped first, so that what it holds can be read before the others take it over.
            os.kill(pid, signal.SIGSTOP)
            met = newly(await self._still() if works else {}, there.in_flight)
            at = time.monotonic()
            os.kill(pid, signal.SIGKILL)
            self.takeovers.append(await taken_over_after(there, met, at))
            await there.writes(*WRITES)
        there.in_flight.append(met)
        await self.until_whole()
        there.note(at - 1.0, met, self.address)

    async def _still(self) -> Held:
        """Return what the stopped process holds, once its last COMMIT is over."""
        last: Held | None = None
        [(node,)] = await self.fleet.query(LIVE)
        while True:
            rows = await self.fleet.query(HELD.format(node))
            found = {(event, webhook): claim for event, webhook, claim in rows}
            if found == last:
                return found
            last = found
            await asyncio.sleep(0.2)


async def test_kills_lose_nothing() -> None:
    """SIGKILL one of two processes under load, by turns the one that delivers."""
    async with fleet(SEED, 1, environment=PROCESSES) as there:
        site, load = Site(there, there.nodes[0].product.address), there.load
        for number in range(3 * KILLS):
            # A few kills may all come between two writes; then more follow, up to a bound.
            if number >= KILLS and load.broken and any(there.in_flight):
                break
            await site.kill_one(works=number % 2 == 0)
        async with load.writing(site.address):
            await there.writes(*WRITES)
        await site.count()
        verdict = await judged("kills of one of two processes", there, broken_allowed=True)
    slots, slowest = sum(map(len, there.in_flight)), max(site.takeovers)
    verdict.find(verdict.duplicated > slots, "more duplicates than were in flight")
    verdict.find(not slots or not load.broken, "no kill met a send, or a write")
    verdict.find(slowest > TAKEOVER_SECONDS, f"taken over only after {slowest:.1f} s")
    verdict.find(site.counts != sorted(site.counts), f"counts fell: {site.counts}")
    verdict.figures["taken_over_s"] = round(slowest, 2)
    verdict.must_hold()


async def _kill(site: Site) -> None:
    os.kill(site.worker, signal.SIGKILL)


async def _kill_all(site: Site) -> None:
    for pid in site.pids.values():
        os.kill(pid, signal.SIGKILL)


async def _freeze(site: Site) -> None:
    await _still(site.worker)


async def _freeze_supervisor(site: Site) -> None:
    await _still(site.supervisor)


async def _still(pid: int) -> None:
    os.kill(pid, signal.SIGSTOP)
    try:
        # The load goes on meanwhile.
        await asyncio.sleep(FROZEN_SECONDS)
    finally:
        os.kill(pid, signal.SIGCONT)


async def _kill_supervisor(site: Site) -> None:
    product, pids = site.fleet.nodes[0].product, site.pids.values()
    site.fleet.load.resting.add(site.address)
    os.kill(site.supervisor, signal.SIGKILL)
    await product.ended()
    ended = await in_time(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids), 30.0)
    assert ended, "the processes go on without their supervisor"
    await product.start()
    site.fleet.load.resting.discard(site.address)


CASES: dict[str, Callable[[Site], Awaitable[None]]] = {
    "kill": _kill,
    "freeze": _freeze,
    "all killed": _kill_all,
    "supervisor killed": _kill_supervisor,
    "supervisor frozen": _freeze_supervisor,
}


@pytest.mark.parametrize("case", CASES)
async def test_a_node_survives_the_faults_of_its_processes(case: str) -> None:
    """At 100 writes a second with their deliveries."""
    async with AsyncExitStack() as stack:
        there = await stack.enter_async_context(fleet(SEED, 1, environment=PROCESSES))
        product, load = there.nodes[0].product, there.load
        site = Site(there, product.address)
        if proxied := shutil.which("haproxy") is not None:
            home = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="carteiro-proxy-")))
            proxy = running("haproxy", home / "proxy", [product.port], [REDIRECT])
            site.address = f"http://127.0.0.1:{stack.enter_context(proxy).http}"
            assert await in_time(lambda: _ready(site.address), BACK_SECONDS)
        # The node is ready with the first process.
        await site.until_whole()
        async with load.writing(site.address, rate=100.0):
            await load.until_sent(300)
            at = time.monotonic()
            await CASES[case](site)
            over = time.monotonic()
            await load.until_sent(load.count + 300)
        await site.until_whole()
        left = await until_drained(there.url, BACK_SECONDS)
        rows, got = await read_rows(there.url), there.there.got
    began = {answer.request_id: answer.began for answer in load.answers}
    failed = load.broken.keys() | load.refused.keys()
    later = sum(began[id_] > at + AT_ONCE for id_ in failed)
    moments = sorted({at, *(receipt.at for receipt in got if receipt.at >= at)})
    gap = max((b - a for a, b in pairwise(moments)), default=1e9)
    arrived = [(receipt.event_id, receipt.path) for receipt in got if receipt.answered is not None]
    verdict = Verdict(f"R41, {case}", SEED, acks=len(load.acked), rows=len(rows.events))
    verdict.duplicated = len(arrived) - len(set(arrived))
    verdict.find(left, "events and deliveries unfinished")
    verdict.lost = verdict.find(
        len({event[0] for event in rows.events} - {event for event, _ in arrived}),
        "events that no receiver has",
    )
    # With all processes dead a proxy may take the node out until the next one has started.
    serves = case != "all killed"
    verdict.find(later if serves else 0, "requests failed that were not in flight at the fault")
    bound = DELIVERS_SECONDS if serves else LEASE_SECONDS
    late = gap > bound and case != "supervisor killed"
    verdict.find(late, f"no delivery for {gap:.1f} s")
    verdict.figures |= {
        "proxied": proxied, "failed": len(failed), "failed_later": later,
        "fault_s": round(over - at, 2), "no_delivery_s": round(gap, 2),
        "slowest_s": round(max(answer.seconds for answer in load.answers), 2),
    }  # fmt: skip
    verdict.must_hold()


async def _ready(address: str) -> bool:
    async with aiohttp.ClientSession() as http, http.get(f"{address}/readyz") as answer:
        return answer.status == 200
