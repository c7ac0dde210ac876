"""A node of several processes serves and delivers on when one of them dies or stands still.

PostgreSQL and two processes, behind the HAProxy configuration of docs/deploy where it is installed.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.deploy.proxies import running
from tests.support.faults import LARGE
from tests.support.fleet import Fleet, fleet
from tests.support.ledger import query, read_rows, until_drained
from tests.support.waiting import in_time

RATE = 100.0
PROCESSES = 2
WRITES = 300
FROZEN_SECONDS = 8.0
AT_ONCE = 0.3
"""A request that began so long after a kill may have been sent on a connection that it ended."""
DELIVERS_SECONDS = 5.0
LEASE_SECONDS = 30.0
ENDS_SECONDS = 30.0
LATE_SECONDS = 2.0
BACK_SECONDS = 40.0
REDIRECT = "    http-request redirect scheme https code 308 unless { ssl_fc }"
NODES = "select count(*) from nodes where alive_until >= due_now()"


@dataclass
class Site:
    """The node, its place before the load, and what a fault leaves behind."""

    fleet: Fleet
    address: str

    @property
    def pids(self) -> dict[int, int]:
        """The processes that have started last, by place."""
        return {line["place"]: line["pid"] for line in self._lines("process_started")}

    @property
    def worker(self) -> int:
        return int(self._lines("process_works")[-1]["pid"])

    @property
    def supervisor(self) -> int:
        return self.fleet.nodes[0].product.pid

    def _lines(self, event: str) -> list[dict[str, Any]]:
        text = self.fleet.nodes[0].product.log.read_text().rpartition("\n")[0]
        return [line for line in map(json.loads, text.splitlines()) if line["event"] == event]


async def _kill(site: Site) -> None:
    os.kill(site.worker, signal.SIGKILL)


async def _kill_all(site: Site) -> None:
    for pid in site.pids.values():
        os.kill(pid, signal.SIGKILL)


async def _freeze(site: Site) -> None:
    await _still(site, site.worker)


async def _freeze_supervisor(site: Site) -> None:
    await _still(site, site.supervisor)


async def _still(site: Site, pid: int) -> None:
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

    async def ended() -> bool:
        return not any(Path(f"/proc/{pid}").exists() for pid in pids)

    assert await in_time(ended, ENDS_SECONDS), "the processes go on without their supervisor"
    await product.start()
    site.fleet.load.resting.discard(site.address)


CASES: dict[str, Callable[[Site], Awaitable[None]]] = {
    "kill": _kill,
    "freeze": _freeze,
    "all killed": _kill_all,
    "supervisor killed": _kill_supervisor,
    "supervisor frozen": _freeze_supervisor,
}


async def run_process_fault(case: str, seed: int, writes: int = WRITES) -> dict[str, Any]:
    """Let one fault happen at 100 writes a second with deliveries; return the record."""
    environment = {"CARTEIRO_SERVER__PROCESSES": str(PROCESSES)}
    async with AsyncExitStack() as stack:
        there = await stack.enter_async_context(fleet(seed, 1, environment=environment))
        product, load = there.nodes[0].product, there.load
        site = Site(there, product.address)
        if proxied := shutil.which("haproxy") is not None:
            home = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="carteiro-proxy-")))
            proxy = running("haproxy", home / "proxy", [product.port], [REDIRECT])
            site.address = f"http://127.0.0.1:{stack.enter_context(proxy).http}"
            assert await in_time(lambda: _ready(site), BACK_SECONDS)
        # The node is ready with the first process.
        assert await in_time(lambda: _whole(site), BACK_SECONDS), product.last_words()
        async with load.writing_to([site.address], rate=RATE):
            await load.until_sent(writes)
            at = time.monotonic()
            await CASES[case](site)
            over = time.monotonic()
            await load.until_sent(load.count + writes)
        assert await in_time(lambda: _whole(site), BACK_SECONDS), product.last_words()
        left = await until_drained(there.url, BACK_SECONDS)
        rows = await read_rows(there.url)
        began = {answer.request_id: answer.began for answer in load.answers}
        failed = load.broken.keys() | load.refused.keys()
        later = sorted(id_ for id_ in failed if began[id_] > at + AT_ONCE)
        moments = sorted({at, *(got.at for got in there.there.got if got.at >= at)})
        gap = max((b - a for a, b in pairwise(moments)), default=1e9)
        arrived = {got.event_id for got in there.there.got if got.answered is not None}
        told = {
            "fault": case, "proxy": "haproxy" if proxied else "none", "writes": load.count,
            "failed": len(failed), "failed_later": len(later), "left": left,
            "late": sum(a.seconds > LATE_SECONDS for a in load.answers),
            "slowest_s": round(max(answer.seconds for answer in load.answers), 2),
            "fault_s": round(over - at, 2), "no_delivery_s": round(gap, 2),
            "repeats": sum(got.answered is not None for got in there.there.got)
            - len({(g.event_id, g.path) for g in there.there.got if g.answered is not None}),
            "nodes": (await query(there.url, NODES))[0][0],
            "undelivered": len({event[0] for event in rows.events} - arrived),
        }  # fmt: skip
        print(json.dumps(told))
        return told


async def _ready(site: Site) -> bool:
    async with aiohttp.ClientSession() as http, http.get(f"{site.address}/readyz") as answer:
        return answer.status == 200


async def _whole(site: Site) -> bool:
    """Return whether all processes answer and one alone delivers."""
    address = site.fleet.nodes[0].product.address
    async with aiohttp.ClientSession() as http, http.get(f"{address}/metrics") as answer:
        text = await answer.text()
    [(nodes,)] = await query(site.fleet.url, NODES)
    return f'server_processes{{state="answering"}} {PROCESSES}.0' in text and nodes == 1


def faults_of(told: dict[str, Any]) -> list[str]:
    """Return what the record shows that must not be."""
    found = []
    # With all processes dead a proxy may take the node out until the next one has started.
    serves = told["fault"] != "all killed"
    if told["failed_later"] and serves:
        found.append("requests failed that were not in flight at the fault")
    if told["left"] or told["undelivered"]:
        found.append("deliveries are missing")
    bound = DELIVERS_SECONDS if serves else LEASE_SECONDS
    if told["no_delivery_s"] > bound and told["fault"] != "supervisor killed":
        found.append(f"no delivery for {told['no_delivery_s']} s")
    if told["nodes"] != 1:
        found.append(f"{told['nodes']} processes deliver")
    return found


SEED = 90410
DAILY = (pytest.mark.slow, pytest.mark.timeout(200))


@pytest.mark.parametrize(
    ("case", "writes"),
    [
        *(pytest.param(case, 100, id=f"{case}-small", marks=DAILY) for case in ("kill", "freeze")),
        *(pytest.param(case, WRITES, id=f"{case}-large", marks=LARGE) for case in CASES),
    ],
)
async def test_a_node_survives_the_faults_of_its_processes(case: str, writes: int) -> None:
    told = await run_process_fault(case, SEED, writes=writes)
    assert not faults_of(told), told
