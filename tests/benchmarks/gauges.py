"""Gauge readings beside a million waiting rows and ten thousand webhooks, on each engine.

Most rows wait at one paused webhook, the others at all of them. A reading must end within 100 ms,
also right after the rows were written, and concurrent reads must not wait for it.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from pathlib import Path

from outbox.database.transaction import DUTIES, Database, Tx
from outbox.queue.log.gauges import Gauges, Readings
from outbox.queue.state.lanes import due_now
from tests.benchmarks.engines import fresh
from tests.benchmarks.figures import Verdict, in_ms, median, quantile
from tests.benchmarks.sizes import Size
from tests.support.rows import add_waiting, add_webhooks, pause, webhook_id

READING_MS = 100.0
AT_ONCE = 20_000
PAUSED = 5
READINGS = 40
MOST_READINGS = 500
ASKED = 500


async def gauges(size: Size) -> Verdict:
    """Measure readings in milliseconds, readings per pass, and a point read beside them."""
    verdict = Verdict("gauges")
    webhooks = 10 * size.webhooks
    verdict.figures |= {"waiting": size.parked, "webhooks": webhooks}
    for engine in size.engines:
        with tempfile.TemporaryDirectory(prefix="carteiro-bench-") as name:
            async with fresh(engine, Path(name)) as stage:
                await stage.prepare()
                async with stage.opened() as db:
                    await _fill(db, webhooks, size.parked)
                    await _measure(verdict, db, size.parked)
    return verdict


async def _fill(db: Database, webhooks: int, rows: int) -> None:
    for first in range(1, webhooks + 1, 1_000):
        await db.write(add_webhooks, first, min(first + 999, webhooks))
    now = await db.read(due_now)
    own = rows // 100 // webhooks or 1
    for first in range(1, webhooks + 1, 500):
        await db.write(_own, range(first, min(first + 500, webhooks + 1)), own, now)
    await db.write(pause, PAUSED)
    left = rows - own * webhooks
    for done in range(0, max(left, 0), AT_ONCE):
        await db.write(add_waiting, PAUSED, min(AT_ONCE, left - done), now - rows + done)


async def _own(tx: Tx, numbers: range, count: int, now: int) -> None:
    for number in numbers:
        await add_waiting(tx, number, count, now - 1_000)


async def _measure(verdict: Verdict, db: Database, rows: int) -> None:
    engine = db.engine
    shown = [webhook_id(number) for number in range(1, 501)]
    readings = Readings(db)
    passes = 0
    for passes in range(1, MOST_READINGS):  # noqa: B007 - told below
        reading = await readings.take(lambda _: shown)
        if readings.complete:
            break
    await _checked(verdict, db, reading)
    took = []
    for _ in range(READINGS):
        began = time.perf_counter()
        await readings.take(lambda _: shown)
        took.append((time.perf_counter() - began) * 1e6)
    verdict.figures[f"{engine}_readings_a_pass"] = passes
    verdict.figures[f"{engine}_reading_median_ms"] = in_ms(median(took))
    verdict.figures[f"{engine}_reading_max_ms"] = in_ms(max(took))
    # Other load on the machine may delay one in ten.
    verdict.at_most(f"{engine}_reading_p90_ms", in_ms(quantile(took, 0.9)), READING_MS)
    alone = await _point_reads(db)
    beside = asyncio.create_task(_again_and_again(readings, shown))
    both = await _point_reads(db)
    beside.cancel()
    await asyncio.gather(beside, return_exceptions=True)
    verdict.figures[f"{engine}_point_read_p50_alone_ms"] = in_ms(alone)
    verdict.figures[f"{engine}_point_read_p50_beside_ms"] = in_ms(both)


async def _checked(verdict: Verdict, db: Database, reading: Gauges) -> None:
    counted = await db.scan(DUTIES, _counted)
    found = {name: waits.pending for name, waits in reading.waiting.items()}
    if found != counted:
        verdict.broken.append(f"{db.engine}: counts differ from those of one pass")


async def _counted(tx: Tx) -> dict[str, int]:
    rows = await tx.all(
        "select webhook_id, count(*) as n from deliveries where state = 'ready' group by webhook_id"
    )
    return {row["webhook_id"]: row["n"] for row in rows}


async def _again_and_again(readings: Readings, shown: list[str]) -> None:
    while True:
        await readings.take(lambda _: shown)


async def _point_reads(db: Database) -> float:
    """Return the median of many point reads, in microseconds."""

    async def one(tx: Tx) -> None:
        await tx.one("select state from webhooks where id = $1", webhook_id(1))

    took = []
    for _ in range(ASKED):
        began = time.perf_counter()
        await db.read(one)
        took.append((time.perf_counter() - began) * 1e6)
    return median(took)
