"""Copies behind a proxy that drops, doubles and reorders, while the product is killed.

Each copy knows only the numbers of what arrived and the events feed. At the end it has, byte for
byte, what was delivered.
"""

from __future__ import annotations

import asyncio
import os
import random
import sqlite3
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import web

from tests.architecture.tree import ROOT
from tests.support.engines import Engine, empty_database
from tests.support.faults import ENGINES, sizes
from tests.support.ledger import holes, query, until_drained
from tests.support.product import Product
from tests.support.tenants import Tenants, settle_in

CLIENT = ROOT / "docs" / "examples" / "python" / "complete.py"
WEBHOOKS = 4
AT_ONCE = 100
"""Contacts of one request."""
SHARE = 0.1
"""The part of the deliveries that the proxy drops; the same for doubled and for late ones."""
BEHIND = 50
"""A late delivery comes behind this many others at most."""
TRIES = 3_000
"""A batch is tried again every tenth of a second, while the product starts."""
PATIENCE = 600.0
STORE = "insert or ignore into deliveries values (?, ?, 'received')"
MADE = """
select d.webhook_id, d.sequence, e.body from deliveries d join events e on e.id = d.event_id
where d.sequence is not null
"""


@dataclass
class Copy:
    """What one receiver has: its table of deliveries."""

    path: Path
    late: list[tuple[int, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.table = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False)
        self.table.execute("pragma synchronous = off")
        self.table.execute(
            "create table deliveries (sequence integer primary key, body text, state text)"
        )

    def take(self, number: int, body: str) -> None:
        self.table.execute(STORE, (number, body))

    def rows(self) -> dict[int, str | None]:
        return dict(self.table.execute("select sequence, body from deliveries"))


@dataclass
class Proxy:
    """Takes each delivery for its receiver, and passes on what its dice choose."""

    tenants: Tenants
    folder: Path
    dice: random.Random
    copies: dict[str, Copy] = field(default_factory=dict)
    dropped: int = 0
    doubled: int = 0
    delayed: int = 0

    def __post_init__(self) -> None:
        for webhook_id in self.tenants.paths.values():
            self.copies[webhook_id] = Copy(self.folder / f"{webhook_id}.db")

    async def handle(self, request: web.Request) -> web.Response:
        copy = self.copies[self.tenants.paths[request.path]]
        number, body = int(request.headers["X-Webhook-Sequence"]), (await request.read()).decode()
        dice = self.dice.random()
        if dice < SHARE:
            self.dropped += 1
        elif dice < 2 * SHARE:
            self.doubled += 1
            copy.take(number, body)
            copy.take(number, body)
        elif dice < 3 * SHARE:
            self.delayed += 1
            copy.late.append((number, body))
        else:
            copy.take(number, body)
        if len(copy.late) > self.dice.randint(1, BEHIND):
            self.release(copy)
        return web.Response()

    def release(self, copy: Copy) -> None:
        """Pass on what was late, the last one first."""
        while copy.late:
            copy.take(*copy.late.pop())


@dataclass
class Writer:
    """Writes contacts, whatever happens to the product, and each of them once."""

    product: Product
    key: str
    done: int = 0
    over: bool = False
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    async def write(self, batches: int) -> None:
        timeout = aiohttp.ClientTimeout(30)
        async with aiohttp.ClientSession(self.product.address, timeout=timeout) as http:
            try:
                for batch in range(batches):
                    await self._one(http, batch)
                    self.done += 1
                    self.changed.set()
            finally:
                self.over = True
                self.changed.set()

    async def until(self, count: int) -> None:
        """Wait for so many batches, or until no more can come."""
        while self.done < count and not self.over:
            self.changed.clear()
            await self.changed.wait()

    async def _one(self, http: aiohttp.ClientSession, batch: int) -> None:
        body = {"items": [{"name": f"ação {batch} {number}"} for number in range(AT_ONCE)]}
        headers = {"X-API-Key": self.key, "Idempotency-Key": f"batch-{batch}"}
        for _ in range(TRIES):
            try:
                async with http.post("/api/contacts/batch", json=body, headers=headers) as answer:
                    text = await answer.text()
                if answer.status == 207:
                    return
                assert answer.status in (409, 503), text
            except (aiohttp.ClientError, TimeoutError, ConnectionError):
                pass
            await asyncio.sleep(0.1)
        raise AssertionError(f"batch {batch} was never accepted")


@asynccontextmanager
async def proxy_for(folder: Path, url: str, seed: int) -> AsyncIterator[Proxy]:
    runner: web.AppRunner | None = None
    app = web.Application()
    passing: list[Proxy] = []

    async def handle(request: web.Request) -> web.Response:
        return await passing[0].handle(request)

    app.router.add_post("/{path:.*}", handle)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        port = runner.addresses[0][1]
        tenants = await settle_in(url, folder, [port], owners=1, webhooks=WEBHOOKS, sequenced=True)
        passing.append(Proxy(tenants, folder, random.Random(seed)))
        yield passing[0]
    finally:
        await runner.cleanup()


async def run_gaps(deliveries: int, kills: int, engine: Engine, seed: int) -> dict[str, Any]:
    """Make these deliveries through the proxy while the product is killed; complete the copies."""
    batches = max(deliveries // AT_ONCE // WEBHOOKS, kills + 1)
    with tempfile.TemporaryDirectory(prefix="carteiro-gaps-") as home:
        folder = Path(home)
        async with empty_database(engine, folder) as url, proxy_for(folder, url, seed) as proxy:
            [key] = proxy.tenants.keys.values()
            product = Product(folder, url, proxy.tenants.key_file)
            writer = Writer(product, key)
            writing = asyncio.create_task(writer.write(batches))
            try:
                await product.start()
                for number in range(kills):
                    await writer.until((number + 1) * batches // (kills + 1))
                    await asyncio.sleep(proxy.dice.uniform(0.0, 0.3))
                    product.kill()
                    await product.ended()
                    await product.start()
                await writing
                assert not await until_drained(url, PATIENCE)
                for copy in proxy.copies.values():
                    proxy.release(copy)
                before = await compared(url, proxy.copies)
                said = [
                    await complete(product.address, key, webhook_id, copy.path)
                    for webhook_id, copy in proxy.copies.items()
                ]
                return {
                    "deliveries": batches * AT_ONCE * WEBHOOKS,
                    "dropped": proxy.dropped, "doubled": proxy.doubled, "delayed": proxy.delayed,
                    "missing_before": before["missing"], "holes": await holes(url),
                    "requests": sum(int(line.split()[-2]) for line in said),
                    **await compared(url, proxy.copies),
                }  # fmt: skip
            finally:
                writing.cancel()
                await asyncio.gather(writing, return_exceptions=True)
                await product.close()


async def compared(url: str, copies: Mapping[str, Copy]) -> dict[str, int]:
    """Compare the copies with the rows, byte for byte."""
    made: dict[str, dict[int, str]] = {}
    for webhook_id, number, body in await query(url, MADE):
        assert number not in made.setdefault(webhook_id, {})
        made[webhook_id][number] = bytes(body).decode()
    missing = wrong = rows = 0
    for webhook_id, copy in copies.items():
        got = copy.rows()
        missing += len(made[webhook_id].keys() - got.keys())
        wrong += sum(body != made[webhook_id].get(number) for number, body in got.items())
        wrong += sorted(made[webhook_id]) != [*range(1, len(made[webhook_id]) + 1)]
        rows += len(got)
    return {"rows": rows, "missing": missing, "wrong": wrong}


async def complete(address: str, key: str, webhook_id: str, path: Path) -> str:
    """Run the example on a copy; return what it says."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(CLIENT), stdout=asyncio.subprocess.PIPE,
        env=os.environ | {
            "CARTEIRO_URL": address, "CARTEIRO_KEY": key, "WEBHOOK_ID": webhook_id,
            "COPY": str(path),
        },
    )  # fmt: skip
    output, _ = await process.communicate()
    assert process.returncode == 0, output
    return output.decode().strip()


def test_the_client_is_short() -> None:
    assert len(CLIENT.read_text().splitlines()) <= 60


@sizes("deliveries, kills", small=(2_000, 2), large=(100_000, 10))
@ENGINES
async def test_a_copy_is_completed_by_number_and_feed(
    engine: Engine, deliveries: int, kills: int
) -> None:
    told = await run_gaps(deliveries, kills, engine, 27)
    print(told)
    assert told["rows"] == told["deliveries"] >= deliveries, told
    assert told["missing"] == told["wrong"] == told["holes"] == 0, told
    least = deliveries * SHARE / 2
    assert min(told[name] for name in ("dropped", "doubled", "delayed")) > least, told
    assert told["missing_before"] > least, told
