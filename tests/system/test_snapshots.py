"""A snapshot under writes and kills: the receiver's copy equals the source at its end."""

from __future__ import annotations

import asyncio
import json
import random
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from statistics import quantiles
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from outbox import database
from outbox.clock import SystemClock
from outbox.database.transaction import Tx
from outbox.ids import Ids
from tests.support.console import Forms
from tests.support.crm_rows import add_contacts
from tests.support.engines import Engine, empty_database, state_after_kill
from tests.support.faults import LARGE, shows
from tests.support.ledger import query, until_drained
from tests.support.product import Product
from tests.support.site import HASHED
from tests.support.tenants import Tenants, settle_in

RATE = 1_000
"""The fastest that a job may be."""
WRITES = 100.0
"""Writes per second meanwhile: half of the owner of the snapshot, half of another one."""
ALONE_SECONDS = 20.0
"""How long others are measured without a snapshot."""
SETTLING_SECONDS: dict[Engine, float] = {"sqlite": 4.0, "postgres": 35.0}
"""After a start, what waited while nothing served says nothing about the snapshot: on PostgreSQL
the deliveries of the process that was killed wait for the end of its lease."""
EVENTS = ("contact.created", "contact.updated", "contact.deleted")
JOB = "select state, made from jobs"
CONTACTS = "select id, version, name from contacts where owner_id = "
CONNECTION = (aiohttp.ClientError, TimeoutError, OSError)


@dataclass
class Copies:
    """Receivers: the copy that a receiver keeps by versions, and when others got their events."""

    newest: dict[str, tuple[int, str | None]] = field(default_factory=dict)
    """Of each record the highest version, with its name; None for a deleted one."""
    snapshots: Counter[str] = field(default_factory=Counter)
    """How often each record came by the snapshot."""
    others: dict[str, float] = field(default_factory=dict)
    """When the other owner's writes arrived, by their names."""
    ports: list[int] = field(default_factory=list)

    async def take(self, request: web.BaseRequest) -> web.Response:
        body = json.loads(await request.read())
        data, headers = body["data"], request.headers
        if request.path.startswith("/owner1/"):
            self.others.setdefault(data.get("name", ""), time.monotonic())
            return web.Response()
        version = int(headers["X-Webhook-Record-Version"])
        name = None if body["event"] == "contact.deleted" else data["name"]
        if "X-Webhook-Snapshot" in headers:
            self.snapshots[data["id"]] += 1
        if version > self.newest.get(data["id"], (0, None))[0]:
            self.newest[data["id"]] = version, name
        return web.Response()

    def kept(self) -> dict[str, tuple[int, str]]:
        return {
            one: (version, name) for one, (version, name) in self.newest.items() if name is not None
        }


@asynccontextmanager
async def copying() -> AsyncIterator[Copies]:
    copies = Copies()
    runner = web.ServerRunner(web.Server(copies.take))
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        copies.ports.append(runner.addresses[0][1])
        yield copies
    finally:
        await runner.cleanup()


@dataclass
class Writers:
    """Creates, changes and deletes of the first owner, creates of the second one."""

    tenants: Tenants
    known: list[str]
    dice: random.Random
    sent: dict[str, float] = field(default_factory=dict)
    """When the second owner's writes were sent, by their names."""
    count: int = 0

    @asynccontextmanager
    async def writing(self, address: str) -> AsyncIterator[None]:
        task = asyncio.create_task(self._run(address))
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _run(self, address: str) -> None:
        began, first = time.monotonic(), self.count
        writes: set[asyncio.Task[None]] = set()
        async with aiohttp.ClientSession(address) as http:
            try:
                while True:
                    due = began + (self.count - first) / WRITES
                    await asyncio.sleep(max(due - time.monotonic(), 0.0))
                    task = asyncio.create_task(self._write(http))
                    writes.add(task)
                    task.add_done_callback(writes.discard)
            finally:
                await asyncio.gather(*writes)

    async def _write(self, http: aiohttp.ClientSession) -> None:
        self.count += 1
        name = f"w{self.count}"
        first, second = self.tenants.keys.values()
        with suppress(*CONNECTION):
            if self.count % 2:
                self.sent[name] = time.monotonic()
                await self._send(http, second, "POST", "/api/contacts", {"name": name})
                return
            act = self.dice.random()
            path = f"/api/contacts/{self.dice.choice(self.known)}"
            if act < 0.3:
                made = await self._send(http, first, "POST", "/api/contacts", {"name": name})
                if made is not None:
                    self.known.append(made["id"])
            elif act < 0.8:
                await self._send(http, first, "PUT", path, {"name": name})
            else:
                await self._send(http, first, "DELETE", path, None)

    async def _send(
        self, http: aiohttp.ClientSession, key: str, method: str, path: str, body: Any
    ) -> Any:
        timeout = aiohttp.ClientTimeout(30)
        async with http.request(
            method, path, json=body, headers={"X-API-Key": key}, timeout=timeout
        ) as answer:
            return await answer.json() if answer.status == 201 else None


async def run_snapshot(
    count: int, engine: Engine, seed: int, *, kills: int = 5, module: str = "gateway"
) -> dict[str, Any]:
    """Send `count` records under writes and kills; return what was found."""
    with tempfile.TemporaryDirectory(prefix="carteiro-snapshot-") as home:
        folder = Path(home)
        async with empty_database(engine, folder) as url, copying() as copies:
            tenants = await settle_in(
                url, folder, copies.ports, owners=2, webhooks=1, events=EVENTS
            )
            owner_id = next(iter(tenants.keys))
            known = await _stage(url, owner_id, count)
            product = Product(folder, url, tenants.key_file, module=module)
            writers = Writers(tenants, known, random.Random(seed))
            try:
                return await _snapshot(url, tenants, copies, product, writers, count, engine, kills)
            finally:
                await product.close()


async def _stage(url: str, owner_id: str, count: int) -> list[str]:
    """Store the records that are there before the webhook; return some of their ids."""
    db = await database.open(url, clock=SystemClock(), ids=Ids())

    async def let_in(tx: Tx) -> None:
        await tx.run("update users set password_hash = $1", HASHED)

    try:
        for _ in range(10):
            await db.write(add_contacts, owner_id, count // 10, "0" * 24)
        await db.write(let_in)
    finally:
        await db.close()
    rows = await query(url, f"{CONTACTS}'{owner_id}' order by id")
    return [row[0] for row in rows[:: max(1, count // 20_000)]]


async def _snapshot(
    url: str, tenants: Tenants, copies: Copies, product: Product, writers: Writers, count: int,
    engine: Engine, kills: int,
) -> dict[str, Any]:  # fmt: skip
    owner_id, [webhook_id] = next(iter(tenants.webhooks.items()))
    await product.start()
    async with writers.writing(product.address):
        await asyncio.sleep(SETTLING_SECONDS[engine])
        began = time.monotonic()
        await asyncio.sleep(ALONE_SECONDS)
        alone = (began, time.monotonic())
    await _start(product, webhook_id)
    beside: list[tuple[float, float]] = []
    made_at: list[int] = []
    started = time.monotonic()
    for number in range(kills + 1):
        async with writers.writing(product.address):
            settled = time.monotonic() + SETTLING_SECONDS[engine]
            made_at.append(await _until(url, count * (number + 1) // (kills + 1)))
            beside.append((settled, time.monotonic()))
            if number < kills:
                product.kill()
        if number < kills:
            await product.ended()
            _, integrity = await state_after_kill(url)
            assert integrity == "ok", integrity
            await product.start()
    await _until(url, NEVER)
    seconds = time.monotonic() - started
    left = await until_drained(url, 180.0)
    [(state, made)] = await query(url, JOB)
    rows = await query(url, f"{CONTACTS}'{owner_id}'")
    source = {one: (version, name) for one, version, name in rows}
    kept = copies.kept()
    quiet = _p99(writers, copies, [alone])
    busy = _p99(writers, copies, beside)
    return {
        "engine": engine, "count": count, "state": state, "made": made, "unfinished": left,
        "kills": kills, "made_at": made_at, "writes": writers.count, "seconds": round(seconds),
        "missing": len(source.keys() - kept.keys()), "extra": len(kept.keys() - source.keys()),
        "old": sum(kept[one] != source[one] for one in source.keys() & kept.keys()),
        "repeated": sum(n - 1 for n in copies.snapshots.values()),
        "others_p99_ms": quiet, "beside_p99_ms": busy,
        "ratio": round(busy / quiet, 2) if busy and quiet else None,
    }  # fmt: skip


def _p99(writers: Writers, copies: Copies, spans: list[tuple[float, float]]) -> float | None:
    """Return the milliseconds from the other owner's writes to their arrival.

    A short run has no span behind the time that a started server takes to settle.
    """
    times = [
        copies.others[name] - sent
        for name, sent in writers.sent.items()
        if name in copies.others and any(start <= sent < end for start, end in spans)
    ]
    return round(quantiles(times, n=100)[-1] * 1000, 1) if len(times) >= 100 else None


async def _start(product: Product, webhook_id: str) -> None:
    jar = aiohttp.CookieJar(unsafe=True)
    async with aiohttp.ClientSession(product.address, cookie_jar=jar) as http:
        somebody = Forms(http)
        await somebody.sign_in("owner0@example.com")
        path = f"/console/webhooks/{webhook_id}/snapshot"
        started = await somebody.submit(path, names="contact.created", rate=str(RATE))
        assert started.path.startswith("/console/jobs/"), started


async def _until(url: str, mark: int) -> int:
    """Wait until the job has made so many deliveries, or has ended; return how many."""
    while True:
        [(state, made)] = await query(url, JOB)
        if made >= mark or state != "running":
            return int(made)
        await asyncio.sleep(0.1)


SEED = 20270
NEVER = 2**60
HASTY = "tests.system.hasty_snapshots_serve"


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
@pytest.mark.parametrize(
    "count",
    [
        pytest.param(
            20_000, id="small", marks=(pytest.mark.proof, pytest.mark.timeout(600))
        ),
        pytest.param(1_000_000, id="large", marks=LARGE),
    ],
)  # fmt: skip
async def test_the_copy_equals_the_source_at_the_end(engine: Engine, count: int) -> None:
    told = await run_snapshot(count, engine, SEED)
    print(told)
    wrong = ("missing", "extra", "old", "unfinished")
    assert (told["state"], [told[name] for name in wrong]) == ("done", [0, 0, 0, 0]), told
    # A kill proves something only on the way.
    assert all(0 < made < count for made in told["made_at"][:-1]), told


@pytest.mark.proof
@pytest.mark.timeout(600)
async def test_a_place_that_moves_before_its_events_is_seen() -> None:
    assert await shows(
        lambda seed: run_snapshot(2_000, "sqlite", seed, kills=3, module=HASTY), SEED, "missing"
    )
