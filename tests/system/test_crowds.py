"""What others notice of rows and owners without number: next to nothing (R16, R40).

A gateway is started on a million waiting rows, and compared with one whose queue is empty. And one
owner is at every limit at once: 50 webhooks with ten conditions each, 300,000 replays that begin to
be sent, ten backfills, 100 erasures, writes at a steady rate and, on PostgreSQL, a locked row that
all those writes wait for.
tests/benchmarks/send_path.py compares the drain's rate and its claims.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

import aiohttp
import asyncpg

from outbox import webhooks as endpoints
from outbox.database.transaction import Database, Tx
from outbox.ids import Ids
from outbox.queue.replays import jobs
from outbox.queue.upkeep import erasure_requests, parking
from outbox.sending.request import new_secret
from outbox.webhooks import Draft
from outbox.webhooks.conditions import MOST, Condition
from outbox.webhooks.key_files import read_key_file
from outbox.webhooks.secrets import KeyRing
from tests.benchmarks.figures import quantile
from tests.support.deployed import Deployed, deployed
from tests.support.drain import make, make_many
from tests.support.engines import Engine
from tests.support.faults import ENGINES
from tests.support.ledger import Verdict, query
from tests.support.load import Load
from tests.support.tenants import EVENT, Tenants
from tests.support.waiting import until
from tests.system.staging import pile_up

SEED = 16260
ROWS = 1_000_000
AT_ONCE = 50_000
WRITES = 300
START_SECONDS = 3.0
METRICS_MS = 100.0
MORE_MIB = 64.0
OF_NONE = 1.5
NOISE_MS = 100.0
DAYS_US = 10 * 86_400_000_000


@dataclass
class _Seen:
    start: float
    rss: float
    p99_ms: float
    metrics_ms: float


@ENGINES
async def test_rows_that_wait_delay_nobody(engine: Engine) -> None:
    """A million are parked, and a million scheduled."""
    seen = []
    for count in (0, ROWS):
        async with deployed(engine, SEED, started=False) as site:
            if count:
                await _fill(site, count)
            seen.append(await _look(site))
            verdict = await site.verdict("rows that wait", strangers=True)
    empty, full = seen
    for what, slow in {
        f"starts after {full.start:.1f} s": full.start > max(START_SECONDS, OF_NONE * empty.start),
        f"takes {full.rss:.0f} MiB": full.rss - empty.rss > MORE_MIB,
        f"writes in {full.p99_ms:.0f} ms": (
            full.p99_ms > max(OF_NONE * empty.p99_ms, empty.p99_ms + NOISE_MS)
        ),
        f"/metrics takes {full.metrics_ms:.0f} ms": (
            full.metrics_ms > max(METRICS_MS, OF_NONE * empty.metrics_ms)
        ),
    }.items():
        verdict.find(slow, f"{what}; an empty one: {empty}")
    verdict.figures |= {
        "start_s": round(full.start, 2), "empty_start_s": round(empty.start, 2),
        "more_mib": round(full.rss - empty.rss, 1), "metrics_ms": round(full.metrics_ms, 1),
        "p99_ms": round(full.p99_ms, 1), "empty_p99_ms": round(empty.p99_ms, 1),
    }  # fmt: skip
    verdict.must_hold()


async def _fill(site: Deployed, rows: int) -> None:
    """Let rows wait at a paused webhook, and as many at an active one for ten days."""
    places = [f"http://127.0.0.1:{site.there.ports[0]}/crowd{n}" for n in range(2)]
    stranger = await site.newcomers(1_000, [places])
    [(owner, [paused, active])] = stranger.webhooks.items()
    async with site.opened() as db:
        event = await db.write(make, "crowd", EVENT, owner)
        await db.write(_seen, event)
        # Scheduled on insert: one update of a million rows leaves as many dead ones.
        for webhook, later in ((paused, 0), (active, DAYS_US)):
            await _pile(db, webhook, event, rows, later)
        await db.write(parking.pause, paused)


async def _pile(db: Database, webhook: str, event: str, rows: int, later: int = 0) -> None:
    # A request must end within ten seconds on PostgreSQL; to move a million rows takes longer.
    patient = db.apart("migration")
    for first in range(0, rows, AT_ONCE):
        await patient.write(pile_up, [webhook], event, min(AT_ONCE, rows - first), later=later)


async def _seen(tx: Tx, event_id: str) -> None:
    """Let no fan-out find the event."""
    await tx.run("update events set seq = 0 where id = $1", event_id)


async def _look(site: Deployed) -> _Seen:
    start = await site.product.start()
    async with site.writing():
        await site.more(50)
    before = len(site.load.milliseconds)
    async with site.writing():
        await site.more(WRITES)
    times = []
    for _ in range(5):
        began = time.monotonic()
        await site.product.get("/metrics")
        times.append((time.monotonic() - began) * 1000)
    p99 = quantile(site.load.milliseconds[before:], 0.99)
    return _Seen(start, max(site.rss), p99, min(times))


WEBHOOKS = 50
EVENTS, REPLAYS, ERASURES = 50_000, 300_000, 100
RATE = 40.0
"""Writes a second of the others, and as many reads."""
ITS_RATE = 10.0
SECONDS = 20.0
MOST_MS = 100.0
OF_QUIET = 2.0
"""Or so many times what it is without the owner, on a machine that is slow by itself."""
UNSEEN = "select count(*) = 0 from events where seq is null"


@ENGINES
async def test_an_owner_at_every_limit_holds_up_nobody(engine: Engine) -> None:
    async with deployed(engine, SEED, owners=3, webhooks=1) as site, site.opened() as db:
        greedy = await _staged(site, db)
        await asyncio.sleep(2.0)
        quiet = await _measured(site)
        async with _greed(site, db, greedy):
            loud = await _measured(site)
        verdict = Verdict("R40 one owner at all limits", SEED, len(site.load.acked))
        verdict.lost += verdict.find(await site.until_own(60), "deliveries of others missing")
    for what, alone, beside in zip(("write", "read"), quiet, loud, strict=True):
        late = beside > max(MOST_MS, OF_QUIET * alone)
        verdict.find(late, f"p99 of a {what} {beside:.1f} ms, alone {alone:.1f} ms")
        verdict.figures |= {
            f"{what}_p99_alone_ms": round(alone, 1), f"{what}_p99_beside_ms": round(beside, 1)
        }  # fmt: skip
    verdict.find(len(site.load.refused) + len(site.load.broken), "writes of others refused")
    verdict.must_hold()


async def _staged(site: Deployed, db: Database) -> Tenants:
    """Create the owner, with past events, webhooks and replays that wait at a paused one."""
    tenants = await site.newcomers(1_000, [[]])
    [owner] = tenants.keys
    for _ in range(5):
        await db.write(make_many, EVENTS // 5, owner)
    await until(lambda: _all_seen(site), 120)
    places = [f"http://127.0.0.1:{site.there.ports[0]}/greedy{n}" for n in range(WEBHOOKS)]
    await db.write(_add_webhooks, tenants, places, read_key_file(tenants.key_file, Ids()))
    event = await db.write(make, "replayed", "thing.replayed", owner)
    await until(lambda: _all_seen(site), 60)
    paused = tenants.webhooks[owner][0]
    await db.write(parking.pause, paused)
    await _pile(db, paused, event, REPLAYS)
    return tenants


async def _add_webhooks(tx: Tx, tenants: Tenants, places: list[str], ring: KeyRing) -> None:
    [owner] = tenants.keys
    conditions = (Condition("id"),) * MOST
    for place in places:
        draft = Draft(place, (EVENT, "thing.made"), conditions=conditions)
        secret = new_secret(Ids().token(32))
        tenants.webhooks[owner].append(
            await endpoints.create(tx, owner_id=owner, draft=draft, secret=secret, ring=ring)
        )


async def _all_seen(site: Deployed) -> bool:
    [(done,)] = await query(site.url, UNSEEN)
    return bool(done)


@asynccontextmanager
async def _greed(site: Deployed, db: Database, tenants: Tenants) -> AsyncIterator[None]:
    """Start everything of the owner at once; it goes on during the block."""
    [(owner, webhooks)] = tenants.webhooks.items()
    async with AsyncExitStack() as stack:
        if site.engine == "postgres":
            await stack.enter_async_context(_locked_row(site.url, owner))
        load = Load(tenants, SEED + 1)
        await stack.enter_async_context(load.writing(site.product.address, rate=ITS_RATE))
        for number in range(ERASURES):
            await db.write(erasure_requests.request, owner, [f"record-{number}"])
        draft = jobs.Draft((), ("thing.made",), 0, db.clock.wall(), jobs.FASTEST)
        for webhook in webhooks[1 : 1 + jobs.MOST_RUNNING]:
            await db.write(
                jobs.create, owner_id=owner, webhook_id=webhook, user_id=owner, draft=draft, total=1
            )
        await parking.activate(db, webhooks[0], "all")
        yield


@asynccontextmanager
async def _locked_row(url: str, owner: str) -> AsyncIterator[None]:
    """Lock the totals of the owner, which each of its writes changes."""
    connection = await asyncpg.connect(url)
    try:
        async with connection.transaction():
            await connection.execute("select 1 from tallies where owner_id = $1 for update", owner)
            yield
    finally:
        await connection.close()


async def _measured(site: Deployed) -> tuple[float, float]:
    """Let the others write and read at a steady rate; return the p99 of their writes and reads."""
    before, reads, began = len(site.load.milliseconds), list[float](), time.monotonic()
    async with (
        aiohttp.ClientSession(site.product.address) as http,
        site.writing(rate=RATE),
        asyncio.TaskGroup() as group,
    ):
        for number in range(round(RATE * SECONDS)):
            await asyncio.sleep(max(began + number / RATE - time.monotonic(), 0.0))
            group.create_task(_read(site, http, reads))
    return quantile(site.load.milliseconds[before:], 0.99), quantile(reads, 0.99)


async def _read(site: Deployed, http: aiohttp.ClientSession, times: list[float]) -> None:
    key = site.tenants.keys[site.load.owner()]
    began = time.monotonic()
    async with http.get("/api/contacts?limit=3", headers={"X-API-Key": key}) as answer:
        await answer.read()
        assert answer.status == 200, answer.status
    times.append((time.monotonic() - began) * 1000)
