"""One owner at its limits beside an honest one, who hardly notices, and whose work ends (R37).

Each line of GREED is what an owner may ask of what all share. The honest owner sends reads and
writes at a steady rate, first alone; its events are delivered meanwhile. All clients come through
the address of one proxy, as with the compose files.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from asyncio.subprocess import PIPE
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import count

import aiohttp
import pytest

from gateway.domain.contacts.contacts import CONTACTS
from gateway.domain.contacts.tasks import TASKS
from gateway.records.resource import Resource
from outbox.database.transaction import Tx
from tests.architecture.tree import ROOT
from tests.benchmarks.figures import quantile
from tests.support.deployed import deployed
from tests.support.engines import Engine
from tests.support.product import Product
from tests.system.attacks import greedy_jobs as jobs
from tests.system.attacks import greedy_pages as doors
from tests.system.attacks import honest_client
from tests.system.attacks import slow_clients as slow
from tests.system.attacks.attack import Target
from tests.system.attacks.test_work import Values, contact, insert, many

RATE = 20.0
ALONE_SECONDS = 12.0
LEAST_SECONDS = 12.0
TIMES, SECONDS = 3.0, 0.1
"""The honest owner's p99 is at most SECONDS or, on a slow machine, so many times that of its
time alone."""
ON_TIME_SECONDS = 2.0
MEMORY_MIB = 256.0
HONEST, GREEDY = "198.51.100.7", "203.0.113.9"
COMPOSED = {
    "READ_PER_SECOND": "100", "WRITE_PER_SECOND": "50", "PAGES_PER_SECOND": "20",
    "CONNECTIONS": "300", "CONNECTIONS_PER_ADDRESS": "300",
}  # fmt: skip
"""The limits by default and as docs/deploy/compose.yaml sets them, with fewer places."""


@dataclass
class Honest:
    """What the honest owner noticed, by kind of request."""

    took: dict[str, list[float]] = field(default_factory=dict)
    wrong: Counter[str] = field(default_factory=Counter)
    made: int = 0

    def p99(self, kind: str) -> float:
        return quantile(self.took[kind], 0.99)


@dataclass(frozen=True)
class Greed:
    """`run` is the work of the greedy owner; it ends when that is done, and returns what it got."""

    run: Callable[[Target], Awaitable[Counter[int]]]
    fill: Callable[[Target], Awaitable[None]] | None = None
    owners: int = 2
    broken: str = ""
    """The rule of tests/system/broken_serve.py without which the honest owner feels it."""


async def run_greed(name: str, greed: Greed, engine: Engine, broken: str = "") -> list[str]:
    """Run the greedy owner beside the honest one; return what missed a bar."""
    settings = {f"CARTEIRO_LIMITS__{key}": text for key, text in COMPOSED.items()} | {
        "CARTEIRO_IMAGES__FOLDER": "images",
        "CARTEIRO_MAIL__HOST": "127.0.0.1", "CARTEIRO_MAIL__PORT": "9",
        "CARTEIRO_MAIL__FROM_ADDRESS": "crm@example.com",
    }  # fmt: skip
    async with deployed(
        engine, 1, owners=greed.owners, webhooks=1, broken=broken, settings=settings
    ) as site:
        target, product = Target(site), site.product
        if greed.fill is not None:
            await greed.fill(target)
        start, memory = product.rss(), list[float]()
        alone, beside = Honest(), Honest()
        async with _working(target, alone):
            await asyncio.sleep(ALONE_SECONDS)
        began = time.monotonic()
        async with _working(target, beside):
            async with _looking(product, memory, files := list[int]()):
                got = await greed.run(target)
            await asyncio.sleep(max(0.0, LEAST_SECONDS - (time.monotonic() - began)))
        late = await _late(target, alone.made + beside.made)
        figures = {
            f"{kind}_{when}_ms": round(honest.p99(kind) * 1000, 1)
            for kind in ("read", "write")
            for when, honest in (("alone", alone), ("beside", beside))
        }
        print(json.dumps({
            "greed": name, "engine": engine, "got": dict(got), **figures, "late": late,
            "mib": round(max(memory) - start, 1), "files": max(files),
            "seconds": round(time.monotonic() - began, 1),
        }))  # fmt: skip
    findings = [*target.findings, *(f"{what}: {n}" for what, n in beside.wrong.items())]
    for kind in ("read", "write"):
        before, after = alone.p99(kind), beside.p99(kind)
        if after > max(TIMES * before, SECONDS):
            findings.append(f"a {kind} takes {after * 1000:.0f} ms, not {before * 1000:.0f} ms")
    if late:
        findings.append(f"{late} deliveries late")
    if max(memory) - start > MEMORY_MIB:
        findings.append(f"{max(memory) - start:.0f} MiB over the start")
    return findings


@asynccontextmanager
async def _working(target: Target, honest: Honest) -> AsyncIterator[None]:
    """Let the honest owner work."""
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-m", honest_client.__name__, target.address,
        str(target.site.product.pid), target.keys[1], HONEST,
        str(RATE), cwd=ROOT, stdin=PIPE, stdout=PIPE, limit=2**24,
    )  # fmt: skip
    assert child.stdout is not None
    await child.stdout.readline()
    try:
        yield
    finally:
        out, _ = await child.communicate(b"")
        told = json.loads(out)
        honest.took, honest.wrong, honest.made = told["took"], Counter(told["wrong"]), told["made"]


@asynccontextmanager
async def _looking(product: Product, memory: list[float], files: list[int]) -> AsyncIterator[None]:
    """Note the memory and the open files of the server each half second, and at the end."""

    async def look() -> None:
        while True:
            memory.append(product.rss())
            files.append(len(os.listdir(f"/proc/{product.pid}/fd")))
            await asyncio.sleep(0.5)

    looking = asyncio.create_task(look())
    await asyncio.sleep(0)
    try:
        yield
    finally:
        looking.cancel()
    memory.append(product.rss())


async def _late(target: Target, made: int) -> int:
    """Return how many of the honest owner's deliveries came late, or not at all."""
    owner = target.owners[1]
    there, prefix = target.site.there, f"/owner{target.owners.index(owner)}/"

    def mine() -> list[str]:
        return [one.event_id for one in there.got if one.path.startswith(prefix)]

    with suppress(TimeoutError):
        await there.until(lambda _: len(set(mine())) >= made, 20.0)
    async with target.site.opened() as db:
        rows = await db.read(_lateness, owner)
    return made - len(set(mine())) + sum(late > ON_TIME_SECONDS for late in rows)


async def _lateness(tx: Tx, owner: str) -> list[float]:
    rows = await tx.all(
        "select d.finished_at - e.occurred_at as us from deliveries d"
        " join events e on e.id = d.event_id where e.owner_id = $1 and d.state = 'delivered'",
        owner,
    )
    return [row["us"] / 1_000_000 for row in rows]


async def asks(paths: Sequence[str], target: Target, at_once: int = 50) -> Counter[int]:
    """Ask for the paths again and again, many at once, after refusals too."""
    got: Counter[int] = Counter()
    end = time.monotonic() + LEAST_SECONDS

    async def several(http: aiohttp.ClientSession, first: int) -> None:
        for number in count(first):
            if time.monotonic() > end:
                return
            async with http.get(paths[number % len(paths)]) as answer:
                await answer.read()
                got[answer.status] += 1

    async with target.client(0, X_Forwarded_For=GREEDY) as http:
        await asyncio.gather(*(several(http, first) for first in range(at_once)))
    return got


async def by_ids(target: Target) -> Counter[int]:
    """Ask for 300 records by their ids."""
    async with target.client(0) as http:
        pages = [
            await (await http.get(f"/api/contacts?limit=100&page={n}")).json() for n in (1, 2, 3)
        ]
    ids = ",".join(one["id"] for page in pages for one in page["data"])
    return await asks([f"/api/contacts?limit=100&ids={ids}"], target)


async def drips(target: Target, *, known: bool, seconds: float = 20.0) -> Counter[int]:
    """Hold more bodies open than there are places, which grow by a byte a second."""
    got: Counter[int] = Counter()
    key = f"X-API-Key: {target.keys[0]}\r\n" if known else ""
    head = (
        f"POST /api/{'contacts' if known else 'auth/token'} HTTP/1.1\r\nHost: a\r\n"
        f"Content-Type: application/json\r\nX-Forwarded-For: {GREEDY}\r\n{key}"
        "Content-Length: 60000\r\n\r\n"
    )
    end = time.monotonic() + seconds

    async def drip() -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            reader, writer = await asyncio.open_connection("127.0.0.1", target.port, limit=4_096)
            try:
                writer.write(head.encode())
                answer = asyncio.create_task(reader.readline())
                while time.monotonic() < end and not answer.done():
                    writer.write(b"x")
                    await asyncio.wait({answer}, timeout=1.0)
                line = answer.result() if answer.done() else b""
                answer.cancel()
                got[int(line[9:12]) if line[:4] == b"HTTP" else 0] += 1
            finally:
                writer.transport.abort()

    drops = []
    for _ in range(400):
        drops.append(asyncio.create_task(drip()))
        # Within the rate of writes, which would refuse the others.
        await asyncio.sleep(0.025)
    await asyncio.gather(*drops)
    return got


def task(number: int) -> dict[str, object]:
    return {
        "title": f"Call {number}", "due_at": 1_764_600_000_000_000 + number * 1_000_000,
        "due_day": False, "priority": "low", "completed": False,
    }  # fmt: skip


async def owned(kind: Resource, values: Values, target: Target) -> None:
    """Insert 100,000 records of the greedy owner, and a few of the honest one's."""
    await many(kind, values, target)


def wide(number: int) -> dict[str, object]:
    return {**contact(number), "notes": "a b " * 4_000}


async def some_wide(target: Target) -> None:
    """Insert contacts of the greedy owner with long notes, and a few of the honest one's."""
    async with target.site.opened() as db:
        await db.write(insert, CONTACTS, target.owners[0], map(wide, range(400)))
        await db.write(insert, CONTACTS, target.owners[1], map(contact, range(1_000)))


async def of_all(target: Target) -> None:
    """Insert contacts of every owner; the honest one has few."""
    await many(CONTACTS, contact, target)
    for number in range(2, len(target.owners)):
        site = target.site
        async with site.opened() as db:
            await db.write(_copied, target.owners[0], target.owners[number], f"{number:04x}")


async def _copied(tx: Tx, source: str, owner: str, mark: str) -> None:
    columns = ", ".join(
        name
        for name in (*CONTACTS.columns, "folded", "sort_name")
        if name not in ("id", "owner_id")
    )
    await tx.run(
        f"insert into contacts (id, owner_id, {columns})"
        f" select '{mark}' || substr(id, 5), $2, {columns}"
        " from contacts where owner_id = $1 order by id limit 40000",
        source, owner,
    )  # fmt: skip


DUE = (
    "/api/tasks/overdue", "/api/tasks/calendar?start=2025-12-01&end=2026-11-30",
    "/api/tasks/calendar?start=2025-12-01&end=2026-11-30&page=50", "/api/tasks/overdue?page=90",
)  # fmt: skip
DEEP = tuple(f"/api/contacts?sort=name&limit=100&page={number}" for number in (400, 700, 999))
GREED = {
    "lists by due date": Greed(
        partial(asks, DUE), partial(owned, TASKS, task), broken="unmetered_lists"
    ),
    "deep pages": Greed(
        partial(asks, DEEP), partial(owned, CONTACTS, contact), broken="unmetered_lists"
    ),
    "300 ids": Greed(by_ids, partial(owned, CONTACTS, contact), broken="unmetered_lists"),
    "pages of long records": Greed(
        partial(asks, [f"/api/contacts?limit=100&page={n}" for n in (2, 3)]), some_wide
    ),
    "bodies of a byte a second with a key": Greed(
        partial(drips, known=True), broken="patient_server"
    ),
    "bodies of a byte a second without one": Greed(
        partial(drips, known=False), broken="patient_server"
    ),
    "pages of the console": Greed(
        partial(doors.of_the_console, "/console/contacts"),
        partial(owned, CONTACTS, contact),
        broken="unmetered_console",
    ),
    "100 exports": Greed(
        partial(asks, ["/api/export/contacts.csv"], at_once=100), partial(owned, CONTACTS, contact)
    ),
    "digests": Greed(
        partial(asks, ["/api/digest/contacts?parts=100", "/api/digest/contacts"]),
        partial(owned, CONTACTS, contact),
    ),
    "a snapshot": Greed(jobs.snapshots, partial(owned, CONTACTS, contact)),
    "10,000 webhooks": Greed(jobs.writes, jobs.hooked),
    "erasures of 100 persons": Greed(jobs.erasures, partial(owned, CONTACTS, contact)),
    "an import of long lines": Greed(partial(jobs.imports, 200, 60_000)),
    "an import of many lines": Greed(partial(jobs.imports, 20_000, 8)),
    "nested lists of a shop": Greed(jobs.nested_lists, jobs.a_shop),
    "searches of all kinds": Greed(
        partial(doors.of_the_console, "/console/find?q=nobody"), partial(owned, CONTACTS, contact)
    ),
    "home pages": Greed(partial(doors.of_the_console, "/console"), partial(owned, TASKS, task)),
    "messages of MCP": Greed(doors.mcp_messages, partial(owned, CONTACTS, contact)),
    "PDF files of a link": Greed(doors.files_of_a_link),
    "images": Greed(doors.images),
    "forgotten passwords": Greed(doors.forgotten_passwords),
    "schemas": Greed(partial(asks, ["/api/schemas", "/api/openapi.json"])),
    "heads of a byte a second": Greed(
        partial(slow.held, "GET /api/me HTTP/1.1\r\nHost: a\r\nX-A: ", "x", None)
    ),
    "connections that say nothing": Greed(partial(slow.held, "", "", None), broken="places_kept"),
    "upgrades without a word after them": Greed(
        partial(
            slow.held,
            "GET /api/me HTTP/1.1\r\nHost: a\r\n{key}Connection: Upgrade\r\n"
            "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: eHl6\r\n\r\n",
            "",
            0,
        )
    ),
    "unread lists": Greed(
        partial(slow.unread, ["/api/contacts?limit=100"], 40), partial(owned, CONTACTS, contact)
    ),
    "10,000 requests at once on a connection": Greed(
        partial(slow.unread, ["/api/me", "/livez", "/api/none"], 10_000)
    ),
    "eight slow readers of exports": Greed(
        slow.exports, of_all, owners=10, broken="patient_streams"
    ),
}
"""What an owner asks for. Whoever bounds another kind of work adds its line."""
ENGINES: tuple[Engine, ...] = ("sqlite", "postgres")


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", GREED)
async def test_a_greedy_owner_delays_no_other(name: str, engine: Engine) -> None:
    assert await run_greed(name, GREED[name], engine) == []


@pytest.mark.parametrize("name", [name for name, greed in GREED.items() if greed.broken])
async def test_without_its_bound_others_feel_it(name: str) -> None:
    assert await run_greed(name, GREED[name], "sqlite", GREED[name].broken) != []
