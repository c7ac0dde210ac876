"""The cost of a write and of a delivery, and the capacity of one node: figures for sizing.

One node, twenty owners with one webhook each, a receiver that responds at once. The cost of a write
is measured with twenty owners without webhooks; the cost of a delivery is the extra cost of the
others. The node's cost without requests in the same time is subtracted. Figures, no bars: disks and
cores differ, and load, node, database and receiver share them here.
"""

from __future__ import annotations

import asyncio
import json
import os
import tempfile
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.request import urlopen

from outbox.database.transaction import Tx
from tests.benchmarks.children import answer_of, child
from tests.benchmarks.counted_serve import FILE
from tests.benchmarks.figures import Verdict, rounded
from tests.benchmarks.load import request
from tests.benchmarks.product import Product, product
from tests.benchmarks.sizes import Size
from tests.benchmarks.spent import Books, PostgresBooks, Spent, SqliteBooks
from tests.benchmarks.staging import Person, Stage
from tests.benchmarks.usage import Used, used
from tests.benchmarks.write_path import CONTACT
from tests.support.cluster import Cluster

OWNERS = 20
PACE = 50.0
"""Writes per second while costs are measured."""
DAILY = 100.0
"""Writes per second of the day for the disk figure; each makes one delivery."""
SHARES = (0.9, 0.8, 0.7, 0.6, 0.5)
"""Shares of the unpaced rate to try as a steady rate."""
KEPT_UP_SECONDS = 1.0
"""A pace is steady when the last delivery arrives this soon after the last write."""
PATIENCE = 60.0
DAY = 86_400
# As an installed server, but on its own port and folder.
SETTINGS = {"fsync": "on", "listen_addresses": "127.0.0.1"}


@dataclass
class _Site:
    """A staged database, its statistics, and the receiver of its webhooks."""

    stage: Stage
    books: Books
    people: Sequence[Person]
    unheard: Sequence[Person]
    """Owners without webhooks."""
    receiver: int
    size: Size

    def environment(self) -> dict[str, str]:
        return self.stage.environment(self.receiver)

    def load(self, running: Product, people: Sequence[Person], per_second: float | None) -> Any:
        """Create contacts for these people in turn; without a pace as fast as responses come."""
        spec = {
            "port": running.port,
            "connections": self.size.connections,
            "seconds": self.size.steady_seconds,
            "expect": 201,
            "requests": [
                request("POST", "/api/contacts", CONTACT, X_API_Key=person.key) for person in people
            ],
        }
        if per_second is not None:
            spec["per_second"] = per_second
        return answer_of("tests.benchmarks.load", self.stage.folder / "children.log", spec)

    async def count(self) -> int:
        """Count the contacts."""
        async with self.stage.opened() as db:
            return await db.read(_count)

    async def until_arrived(self, count: int) -> None:
        """Wait until the receiver has answered `count` requests in total."""
        async with asyncio.timeout(PATIENCE):
            while await asyncio.to_thread(_answered, self.receiver) < count:
                await asyncio.sleep(0.01)


async def ceilings(size: Size) -> Verdict:
    """Measure the costs of a write and of a delivery, disk per day, and the highest steady rate."""
    verdict = Verdict("ceilings")
    verdict.figures |= {"webhooks": OWNERS, "pace_per_s": PACE, "cores": os.cpu_count()}
    for engine in size.engines:
        with tempfile.TemporaryDirectory(prefix="carteiro-bench-") as name:
            # The server runs as its own user, who must have access to its folder.
            Path(name).chmod(0o755)
            async with _staged(engine, Path(name), size) as site:
                empty = await site.books.sizes()
                await _costs(verdict, site)
                await _highest(verdict, site)
                await _disk(verdict, site, empty)
    return verdict


@asynccontextmanager
async def _staged(engine: str, folder: Path, size: Size) -> AsyncIterator[_Site]:
    cluster = None
    stage = Stage(f"sqlite:///{folder / 'carteiro.db'}", folder)
    books: Books = SqliteBooks(folder / "carteiro.db")
    if engine == "postgres":
        cluster = Cluster(folder / "data", SETTINGS)
        await cluster.create()
        await cluster.start()
        stage, books = Stage(cluster.url, folder), PostgresBooks(cluster)
    try:
        with child("tests.benchmarks.receiver", log=folder / "children.log") as receiver:
            port = receiver.json()["port"]
            await stage.prepare()
            people = await stage.people([[f"http://127.0.0.1:{port}/hook"]] * OWNERS)
            unheard = await stage.people([[]] * OWNERS, first=OWNERS)
            yield _Site(stage, books, people, unheard, port, size)
    finally:
        if cluster is not None:
            await cluster.close()


async def _costs(verdict: Verdict, site: _Site) -> None:
    engine, seconds = site.books.engine, site.size.steady_seconds
    # The first start does one-time work, which is not measured.
    await _run(verdict, site, (), 0.0)
    started, _ = await _run(verdict, site, (), 0.0)
    idle, _ = await _run(verdict, site, (), seconds)
    unheard, written = await _run(verdict, site, site.unheard, seconds)
    heard, delivered = await _run(verdict, site, site.people, seconds)
    if not written or not delivered:
        verdict.broken.append(f"{engine}: nothing was written")
        return
    write = unheard.less(idle).each(written)
    delivery = heard.less(idle).each(delivered).less(write)
    verdict.figures[f"{engine}_idle_a_second"] = idle.less(started).each(seconds).told()
    for what, spent in (("write", write), ("delivery", delivery)):
        verdict.figures[f"{engine}_a_{what}"] = spent.told()
        if not spent.plausible:
            verdict.broken.append(f"{engine}: a {what} that costs nothing: {spent.told()}")


async def _run(
    verdict: Verdict, site: _Site, people: Sequence[Person], seconds: float
) -> tuple[Spent, int]:
    """Return the cost of a node from start to end, and the number of contacts made meanwhile.

    These `people` write at PACE; with nobody the node is idle for `seconds`.
    """
    folder = site.stage.folder
    had = await site.count()
    answered = await asyncio.to_thread(_answered, site.receiver)
    before = await site.books.read()
    file = folder / "statements"
    environment = site.environment() | {FILE: str(file)}
    with product(environment, folder, module="tests.benchmarks.counted_serve") as running:
        if people:
            done = await asyncio.to_thread(site.load, running, people, PACE)
            _judge(verdict, f"{site.books.engine} at {PACE} a second", done)
        else:
            await asyncio.sleep(seconds)
        made = await site.count() - had
        if people is site.people:
            await site.until_arrived(answered + made)
        python = used(running.process.pid, None).python
        disk = site.books.handed_to_disk(running.process.pid)
    # Its sessions have ended, so the server has reported all of their work.
    after = await site.books.read()
    statements = int(file.read_text())
    return after.less(before).add(statements=statements, python=python, disk=disk), made


async def _highest(verdict: Verdict, site: _Site) -> None:
    """Measure the unpaced rate, then the highest share of it that is steady."""
    engine = site.books.engine
    had = await site.count()
    with product(site.environment(), site.stage.folder) as running:
        answered = await asyncio.to_thread(_answered, site.receiver)

        async def loaded(pace: float | None) -> tuple[float, float, Any, Used]:
            """Return deliveries per second, seconds behind at the end, the load's report, CPU."""
            nonlocal had, answered
            before = used(running.process.pid, site.books.process)
            began = time.monotonic()
            done = await asyncio.to_thread(site.load, running, site.people, pace)
            ended = time.monotonic()
            made = await site.count() - had
            await site.until_arrived(answered + made)
            now = time.monotonic()
            had, answered = had + made, answered + made
            _judge(verdict, f"{engine} at {pace or 'any'} a second", done)
            spent = used(running.process.pid, site.books.process).since(before)
            return made / (now - began), now - ended, done, spent

        await loaded(PACE)
        most, behind, done, _ = await loaded(None)
        verdict.figures[f"{engine}_no_pace_per_s"] = round(most)
        verdict.figures[f"{engine}_no_pace_behind_s"] = rounded(behind)
        for share in SHARES:
            _, behind, done, spent = await loaded(share * most)
            if behind <= KEPT_UP_SECONDS and not done["late"]:
                break
        events = site.size.steady_seconds * share * most
        verdict.figures |= {
            f"{engine}_steady_per_s": round(share * most),
            f"{engine}_steady_share": share,
            f"{engine}_steady_behind_s": rounded(behind),
            f"{engine}_steady_write_p50_ms": rounded(done["p50_ms"]),
            f"{engine}_steady_write_p99_ms": rounded(done["p99_ms"]),
            f"{engine}_steady_python_us": round(spent.python / events * 1e6),
            f"{engine}_steady_server_us": round(spent.server / events * 1e6),
            f"{engine}_steady_machine_us": round(spent.machine / events * 1e6),
        }


async def _disk(verdict: Verdict, site: _Site, empty: Mapping[str, int]) -> None:
    """Measure the size of rows, over all written here: as stored, and compacted."""
    engine, rows = site.books.engine, await site.count()
    verdict.figures[f"{engine}_rows"] = rows
    for what in ("as_written", "packed"):
        if what == "packed":
            await site.books.pack()
        sizes = await site.books.sizes()
        each = {table: (size - empty[table]) / rows for table, size in sizes.items()}
        verdict.figures[f"{engine}_bytes_{what}"] = {t: round(size) for t, size in each.items()}
        day = sum(each.values()) * DAILY * DAY / 2**30
        verdict.figures[f"{engine}_gib_a_day_{what}"] = rounded(day)


def _judge(verdict: Verdict, what: str, done: Any) -> None:
    if done["bad"] or done["gone"] or not done["count"]:
        verdict.broken.append(f"{what}: {done['bad']} bad, {done['gone']} gone")


async def _count(tx: Tx) -> int:
    row = await tx.one("select count(*) as n from contacts")
    assert row is not None
    return int(row["n"])


def _answered(port: int) -> int:
    with urlopen(f"http://127.0.0.1:{port}/count", timeout=30) as answer:
        return int(json.load(answer)["count"])
