"""The cost of an ordered webhook: the same events with the option and without it."""

from __future__ import annotations

import json
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

from outbox import database
from outbox.clock import SystemClock
from outbox.database.migrate import migrate
from outbox.database.transaction import Tx
from outbox.ids import Ids
from tests.support.databases import SOURCES
from tests.support.drain import drain, make, ring
from tests.support.engines import Engine, empty_database
from tests.support.recipients import recipients

EVENTS = 4_000
RECORDS = 200
AT_ONCE = 500
ROUNDS = 3
PATIENCE = 120.0
WAYS: dict[str, tuple[bool, int]] = {
    "unordered": (False, RECORDS),
    "ordered, each record once": (True, EVENTS),
    f"ordered, {RECORDS} records": (True, RECORDS),
}
"""Of each way: the option, and the number of records that the events are about."""


async def run_cost(engine: Engine) -> dict[str, Any]:
    """Print microseconds of this process and deliveries per second for each way (medians)."""
    found: dict[str, list[tuple[float, float]]] = {way: [] for way in WAYS}
    async with recipients(1) as there:
        for _ in range(ROUNDS):
            for way, (ordered, records) in WAYS.items():
                url = f"http://127.0.0.1:{there.ports[0]}/"
                found[way].append(await _once(engine, url, ordered, records))
    told: dict[str, Any] = {"engine": engine, "events": EVENTS, "pass": True}
    plain = median(cpu for cpu, _ in found["unordered"])
    for way, results in found.items():
        cpu = median(cpu for cpu, _ in results)
        told[way] = {
            "cpu_us": round(cpu),
            "of_unordered": round(cpu / plain, 2),
            "per_second": round(median(rate for _, rate in results)),
        }
    print(json.dumps(told), flush=True)
    return told


async def _once(engine: Engine, url: str, ordered: bool, records: int) -> tuple[float, float]:
    """Return the microseconds of a delivery, and deliveries per second."""
    clock, ids = SystemClock(), Ids()
    with tempfile.TemporaryDirectory(prefix="carteiro-cost-") as home:
        async with empty_database(engine, Path(home)) as place:
            db = await database.open(place, clock=clock, ids=ids, serving=True)
            try:
                await migrate(db, SOURCES)
                async with drain(db, ring()) as running:
                    await running.webhook(url, ordered=ordered)
                    spent, began = time.process_time(), time.monotonic()
                    for start in range(0, EVENTS, AT_ONCE):
                        await db.write(_some, start, records)
                    await running.watch.until("delivery_finished", EVENTS, PATIENCE)
                    cpu = (time.process_time() - spent) / EVENTS
                    return cpu * 1_000_000, EVENTS / (time.monotonic() - began)
            finally:
                await db.close()


async def _some(tx: Tx, start: int, records: int) -> None:
    for number in range(start, start + AT_ONCE):
        await make(tx, f"record-{number % records}")
