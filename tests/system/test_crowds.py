"""Very many waiting rows cost those who do not wait nothing (R16).

A gateway is started on it, and compared with one whose queue is empty: start, memory, requests,
deliveries and /metrics. tests/benchmarks/send_path.py compares the drain's rate and its claims.
"""

from __future__ import annotations

import asyncio
import time
import urllib.request
from dataclasses import dataclass
from typing import Any

import pytest

from outbox import database
from outbox.clock import SystemClock
from outbox.database.transaction import Tx
from outbox.ids import Ids
from outbox.queue.upkeep import parking
from outbox.webhooks.key_files import read_key_file
from tests.benchmarks.figures import quantile
from tests.support.deployed import Deployed, deployed
from tests.support.drain import make
from tests.support.engines import Engine
from tests.support.faults import ENGINES, sizes
from tests.support.ledger import Verdict
from tests.support.tenants import EVENT, Tenants, move_in
from tests.system.staging import pile_up

AT_ONCE = 50_000
RATE = 50.0
WRITES = 300
START_SECONDS = 3.0
METRICS_MS = 100.0
MORE_MIB = 64.0
OF_NONE = 1.5
NOISE_MS = 100.0
LOOKS = 5
DAYS_US = 10 * 86_400_000_000


@dataclass
class _Seen:
    start: float
    rss: float
    p99_ms: float
    metrics_ms: float


async def run_crowd(engine: Engine, seed: int, *, rows: int) -> dict[str, Any]:
    """Compare a start with `rows` parked and as many scheduled rows to an empty one."""
    seen = []
    for count in (0, rows):
        async with deployed(engine, seed, started=False) as site:
            if count:
                await _fill(site, count)
            seen.append(await _look(site))
            verdict = await site.verdict(f"{rows} parked, {rows} scheduled", strangers=True)
    _judge(verdict, *seen)
    return verdict.told()


async def _fill(site: Deployed, rows: int) -> None:
    """Let rows wait at a paused webhook, and as many at an active one for ten days."""
    db = await database.open(site.url, clock=SystemClock(), ids=Ids())
    ring = read_key_file(site.load.tenants.key_file, Ids())
    stranger = Tenants(site.load.tenants.key_file)
    # A request must end within ten seconds on PostgreSQL; to move a million rows takes longer.
    patient = db.apart("migration")
    try:
        places = [f"http://127.0.0.1:{site.there.ports[0]}/crowd{n}" for n in range(2)]
        await db.write(move_in, stranger, Ids(), ring, 1_000, places)
        [owner] = stranger.keys
        paused, active = stranger.webhooks[owner]
        event = await db.write(make, "crowd", EVENT, owner)
        await db.write(_seen, event)
        # Scheduled on insert: one update of a million rows leaves as many dead ones.
        for webhook, later in ((paused, 0), (active, DAYS_US)):
            for first in range(0, rows, AT_ONCE):
                count = min(AT_ONCE, rows - first)
                await patient.write(pile_up, [webhook], event, count, later=later)
        await db.write(parking.pause, paused)
    finally:
        await db.close()


async def _seen(tx: Tx, event_id: str) -> None:
    """Let no fan-out find the event."""
    await tx.run("update events set seq = 0 where id = $1", event_id)


async def _look(site: Deployed) -> _Seen:
    start = await site.product.start()
    async with site.load.writing(site.product.address, rate=RATE):
        await site.more(50)
    before = len(site.load.milliseconds)
    async with site.load.writing(site.product.address, rate=RATE):
        await site.more(WRITES)
    times = []
    for _ in range(LOOKS):
        began = time.monotonic()
        await asyncio.to_thread(_metrics, site)
        times.append((time.monotonic() - began) * 1000)
    p99 = quantile(site.load.milliseconds[before:], 0.99)
    return _Seen(start, max(site.rss), p99, min(times))


def _metrics(site: Deployed) -> None:
    with urllib.request.urlopen(f"{site.product.address}/metrics", timeout=30) as answer:
        answer.read()


def _judge(verdict: Verdict, empty: _Seen, full: _Seen) -> None:
    verdict.find(
        full.start > max(START_SECONDS, OF_NONE * empty.start),
        f"it starts after {full.start:.1f} s, an empty one after {empty.start:.1f} s",
    )
    verdict.find(
        full.rss - empty.rss > MORE_MIB,
        f"it takes {full.rss:.0f} MiB, an empty one {empty.rss:.0f} MiB",
    )
    verdict.find(
        full.p99_ms > max(OF_NONE * empty.p99_ms, empty.p99_ms + NOISE_MS),
        f"the p99 of a write is {full.p99_ms:.0f} ms, on an empty queue {empty.p99_ms:.0f} ms",
    )
    verdict.find(full.metrics_ms > METRICS_MS, f"/metrics takes {full.metrics_ms:.0f} ms")
    verdict.figures |= {
        "start_s": round(full.start, 2), "empty_start_s": round(empty.start, 2),
        "more_mib": round(full.rss - empty.rss, 1), "p99_ms": round(full.p99_ms, 1),
        "empty_p99_ms": round(empty.p99_ms, 1), "metrics_ms": round(full.metrics_ms, 1),
    }  # fmt: skip


SEED = 16260


@pytest.mark.timed
@sizes("rows", large=1_000_000)
@ENGINES
async def test_rows_that_wait_delay_nobody(engine: Engine, rows: int) -> None:
    told = await run_crowd(engine, SEED, rows=rows)
    assert told["pass"], told
