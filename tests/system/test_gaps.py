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
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
from aiohttp import web

from tests.architecture.tree import ROOT
from tests.support.deployed import Deployed, deployed
from tests.support.drain import inbox
from tests.support.engines import Engine
from tests.support.faults import ENGINES
from tests.support.ledger import holes, query, until_drained

CLIENT = ROOT / "docs" / "examples" / "python" / "complete.py"
SEED = 27
WEBHOOKS = 4
BATCHES, AT_ONCE = 50, 100
"""Requests, and the contacts of each."""
KILLS = 4
SHARE = 0.1
"""The part of the deliveries that the proxy drops; the same for doubled and for late ones."""
BEHIND = 50
"""A late delivery comes behind this many others at most."""
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
        self.table.execute(
            "insert or ignore into deliveries values (?, ?, 'received')", (number, body)
        )

    def release(self) -> None:
        """Take what was late, the last one first."""
        while self.late:
            self.take(*self.late.pop())

    def rows(self) -> dict[int, str | None]:
        return dict(self.table.execute("select sequence, body from deliveries"))


@dataclass
class Proxy:
    """Takes each delivery for its receiver, and passes on what its dice choose."""

    folder: Path
    dice: random.Random
    copies: dict[str, Copy] = field(default_factory=dict)
    """By the path of the webhook."""
    count: Counter[str] = field(default_factory=Counter)

    async def answer(self, request: web.Request) -> web.StreamResponse:
        copy, dice = self.copies[request.path], self.dice.random()
        number, body = int(request.headers["X-Webhook-Sequence"]), (await request.read()).decode()
        what = ["dropped", "doubled", "delayed", "passed"][min(int(dice / SHARE), 3)]
        self.count[what] += 1
        if what == "delayed":
            copy.late.append((number, body))
        elif what != "dropped":
            for _ in range(2 if what == "doubled" else 1):
                copy.take(number, body)
        if len(copy.late) > self.dice.randint(1, BEHIND):
            copy.release()
        return web.Response()


async def _write(site: Deployed, done: asyncio.Queue[int]) -> None:
    """Write contacts, whatever happens to the product, and each of them once."""
    [key] = site.tenants.keys.values()
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(30)) as http:
        for batch in range(BATCHES):
            body = {"items": [{"name": f"ação {batch} {number}"} for number in range(AT_ONCE)]}
            headers = {"X-API-Key": key, "Idempotency-Key": f"batch-{batch}"}
            while True:
                try:
                    async with http.post(
                        f"{site.product.address}/api/contacts/batch", json=body, headers=headers
                    ) as answer:
                        text = await answer.text()
                    if answer.status == 207:
                        break
                    assert answer.status in (409, 503), text
                except (aiohttp.ClientError, TimeoutError, ConnectionError):
                    pass
                await asyncio.sleep(0.1)
            done.put_nowait(batch)


async def compared(url: str, copies: Mapping[str, Copy]) -> tuple[int, int]:
    """Compare the copies with the rows, byte for byte; return how many miss and are wrong."""
    made: dict[str, dict[int, str]] = {}
    for webhook_id, number, body in await query(url, MADE):
        assert number not in made.setdefault(webhook_id, {})
        made[webhook_id][number] = bytes(body).decode()
    missing = wrong = 0
    for webhook_id, copy in copies.items():
        got, wanted = copy.rows(), made[webhook_id]
        missing += len(wanted.keys() - got.keys())
        wrong += sum(body != wanted.get(number) for number, body in got.items())
        wrong += sorted(wanted) != [*range(1, len(wanted) + 1)]
    return missing, wrong


async def complete(site: Deployed, webhook_id: str, path: Path) -> None:
    """Run the example on a copy."""
    [key] = site.tenants.keys.values()
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(CLIENT), stdout=asyncio.subprocess.PIPE,
        env=os.environ | {
            "CARTEIRO_URL": site.product.address, "CARTEIRO_KEY": key, "WEBHOOK_ID": webhook_id,
            "COPY": str(path),
        },
    )  # fmt: skip
    output, _ = await process.communicate()
    assert process.returncode == 0, output


@ENGINES
async def test_a_copy_is_completed_by_number_and_feed(engine: Engine) -> None:
    with tempfile.TemporaryDirectory(prefix="carteiro-gaps-") as home:
        proxy = Proxy(Path(home), random.Random(SEED))
        async with inbox() as box:
            box.answer = proxy.answer
            port = int(box.url.rpartition(":")[2])
            async with deployed(
                engine, SEED, ports=[port], owners=1, webhooks=WEBHOOKS, sequenced=True
            ) as site:
                hooks = site.tenants.paths
                proxy.copies |= {path: Copy(Path(home, f"{hooks[path]}.db")) for path in hooks}
                done: asyncio.Queue[int] = asyncio.Queue()
                async with asyncio.TaskGroup() as group:
                    group.create_task(_write(site, done))
                    for _ in range(KILLS):
                        for _ in range(BATCHES // (KILLS + 1)):
                            await done.get()
                        await asyncio.sleep(site.dice.uniform(0.0, 0.3))
                        site.product.kill()
                        await site.product.ended()
                        await site.product.start()
                assert not await until_drained(site.url, 300)
                for copy in proxy.copies.values():
                    copy.release()
                copies = {hooks[path]: copy for path, copy in proxy.copies.items()}
                missing, _ = await compared(site.url, copies)
                print(dict(proxy.count), "missing:", missing)
                for webhook_id, copy in copies.items():
                    await complete(site, webhook_id, copy.path)
                assert await compared(site.url, copies) == (0, 0)
                assert await holes(site.url) == 0
    deliveries = BATCHES * AT_ONCE * WEBHOOKS
    assert sum(len(copy.rows()) for copy in copies.values()) == deliveries
    least = deliveries * SHARE / 2
    assert min(missing, *(proxy.count[what] for what in ("dropped", "doubled", "delayed"))) > least


def test_the_client_is_short() -> None:
    assert len(CLIENT.read_text().splitlines()) <= 60
