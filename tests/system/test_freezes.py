"""A node whose lease expires during an attempt: its late results change nothing.

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
import pytest
from aiohttp import web

from outbox import database
from outbox.clock import SystemClock
from outbox.database.transaction import Tx
from outbox.ids import Ids
from tests.support.databases import PostgresServer
from tests.support.drain import add_webhook, drain, inbox, make, ring, rows
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


async def end_leases(tx: Tx) -> None:
    """Make every node look silent for longer than its lease."""
    await tx.run("update nodes set alive_until = due_now() - 1")


@pytest.mark.slow
async def test_another_node_takes_over_when_a_lease_has_ended(
    postgres_server: PostgresServer,
) -> None:
    url = await postgres_server.fresh()
    db = await database.open(url, clock=SystemClock(), ids=Ids())
    key = ring()
    thaw = asyncio.Event()
    async with inbox() as box:

        async def answer(_: web.Request) -> web.Response:
            if len(box.got) == 1:
                await thaw.wait()
            return web.Response()

        box.answer = answer
        await add_webhook(db, key, box.url)
        async with drain(db, key) as frozen:
            await db.write(make, "r1")
            await box.until(1)
            await db.write(end_leases)
            # A frozen process would not take it back itself.
            frozen.worker._claimer.stop()
            async with drain(db, key) as other:
                await other.watch.until("rescued")
                await other.watch.until("delivery_finished")
                before = await db.read(rows, "select * from deliveries")
                thaw.set()
                await frozen.watch.until("fenced")
                assert await db.read(rows, "select * from deliveries") == before
        attempts = await db.read(rows, "select number, node_id from attempts")
        assert [(a["number"], a["node_id"]) for a in attempts] == [(2, other.worker.node_id)]
        first, second = box.got
        assert first.body == second.body
    await db.close()
    await postgres_server.drop(url)


@pytest.mark.proof
async def test_a_node_frozen_past_its_lease_changes_nothing() -> None:
    told = await run_freeze(70260)
    assert told["pass"], told
