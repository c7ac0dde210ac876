"""Freeze a node past its lease during an attempt, and thaw it (R13): late results change nothing.

PostgreSQL and two nodes; it takes the lease's half minute.
"""

from __future__ import annotations

import asyncio
import re
import signal
import tempfile
import time
from pathlib import Path
from typing import Any

import aiohttp

from tests.support.engines import empty_database
from tests.support.ledger import Held, held, judge, query, read_rows, until_drained
from tests.support.load import Load
from tests.support.product import Product
from tests.support.recipients import recipients
from tests.support.tenants import settle_in

RATE = 50.0
WRITES = 60
LEASE_SECONDS = 30.0
TAKEOVER_SECONDS = LEASE_SECONDS + 5.0
PATIENCE = 60.0


async def run_freeze(seed: int) -> dict[str, Any]:
    """SIGSTOP with sends in flight, SIGCONT after another node has sent them; return the record."""
    with tempfile.TemporaryDirectory(prefix="carteiro-freeze-") as home:
        folder = Path(home)
        async with empty_database("postgres", folder) as url:
            async with recipients(10, seed=seed, latency=(0.05, 0.3)) as there:
                tenants = await settle_in(url, folder, there.ports, owners=10)
                frozen = Product(folder, url, tenants.key_file, name="frozen")
                other = Product(folder, url, tenants.key_file, name="other")
                load = Load(tenants, seed)
                try:
                    await frozen.start()
                    # Its own clients, so that none waits for a response from a frozen node.
                    async with load.writing(frozen.address, rate=RATE):
                        await load.until_sent(WRITES)
                    await there.until(lambda got: any(r.open_at(time.monotonic()) for r in got))
                    frozen.send(signal.SIGSTOP)
                    at = time.monotonic()
                    met = await held(url)
                    await other.start()
                    await _until_taken_over(url, met)
                    taken_over = time.monotonic() - at
                    frozen.send(signal.SIGCONT)
                    fenced = await _until_back(frozen)
                    late = await _late(url, met)
                    async with load.writing(frozen.address, rate=RATE):
                        await load.until_sent(load.count + 20)
                    left = await until_drained(url, PATIENCE)
                    rows = await read_rows(url)
                    verdict = judge(
                        "freeze past the lease, postgres",
                        load,
                        rows,
                        there.got,
                        in_flight=[met],
                        rss=other.rss(),
                    )
                finally:
                    await frozen.close()
                    await other.close()
    verdict.find(not met, "nothing was under way when it was frozen")
    verdict.find(left, "events and deliveries unfinished")
    verdict.find(late, "late settlings that changed something")
    verdict.find(not fenced, "no late settling was fenced")
    verdict.find(taken_over > TAKEOVER_SECONDS, f"taken over only after {taken_over:.1f} s")
    verdict.figures |= {
        "in_flight": len(met),
        "fenced": fenced,
        "taken_over_s": round(taken_over, 1),
    }
    return verdict.told()


async def _until_taken_over(url: str, met: Held) -> None:
    """Wait until nothing is claimed by the frozen node."""
    claims = set(met.values())
    async with asyncio.timeout(PATIENCE):
        while claims & set((await held(url)).values()):
            await asyncio.sleep(0.1)


async def _until_back(frozen: Product) -> int:
    """Wait until the node notices its loss; return how many of its results were refused."""
    fenced = 0
    async with asyncio.timeout(PATIENCE), aiohttp.ClientSession(frozen.address) as http:
        while not fenced:
            async with http.get("/metrics") as answer:
                found = re.search(r"^outbox_fenced_acks_total (\S+)", await answer.text(), re.M)
            fenced = int(float(found[1])) if found else 0
            await asyncio.sleep(0.1)
    return fenced


async def _late(url: str, met: Held) -> int:
    """Return attempts that the frozen node recorded after the loss of their claims."""
    nodes = {claim.partition("-")[0] for claim in met.values()}
    attempts = await query(url, "select event_id, webhook_id, node_id from attempts")
    return sum((event, hook) in met and node in nodes for event, hook, node in attempts)
