"""What the number of a delivery costs: events for a webhook that numbers, beside another one."""

from __future__ import annotations

import gc
import tempfile
import time
from pathlib import Path

from outbox.database.transaction import Database
from outbox.queue.drain.fanout import fan_out
from outbox.queue.state.deliveries import Capacity
from tests.benchmarks.engines import fresh
from tests.benchmarks.figures import Verdict, median, rounded
from tests.benchmarks.sizes import Size
from tests.support.drain import add_webhook, make, make_many, ring

MOST_TIMES = 1.25
"""A single event with a number, beside one without."""
URL = "http://127.0.0.1:9/"
NONE = Capacity("node", "claim", 0, 0, 0, {}, 0)
SECONDS_TO_US = 1_000_000
KINDS = ("plain", "numbered")


async def numbering(size: Size) -> Verdict:
    """Measure the processor time of this process for each event, as medians.

    Alone: its write and its fan-out, in one transaction each. Together: fan-out in full rounds.

    On PostgreSQL the server's part is not in it.
    """
    verdict = Verdict("numbering")
    for engine in size.engines:
        with tempfile.TemporaryDirectory(prefix="carteiro-bench-") as name:
            async with fresh(engine, Path(name)) as stage:
                await stage.prepare()
                async with stage.opened() as db:
                    took = await _runs(db, size)
        for way, times in took.items():
            plain, numbered = (median(times[kind]) for kind in KINDS)
            verdict.figures[f"{engine}_{way}_plain_us"] = rounded(plain)
            verdict.figures[f"{engine}_{way}_number_us"] = rounded(numbered - plain)
            verdict.figures[f"{engine}_{way}_ms"] = rounded(numbered / 1000)
        alone = took["alone"]
        ratio = median(alone["numbered"]) / median(alone["plain"])
        verdict.at_most(f"{engine}_times", ratio, MOST_TIMES)
    return verdict


async def _runs(db: Database, size: Size) -> dict[str, dict[str, list[float]]]:
    """Return the microseconds of an event by way and kind; the kinds alternate."""
    took: dict[str, dict[str, list[float]]] = {
        way: {kind: [] for kind in KINDS} for way in ("alone", "together")
    }
    key = ring()
    owners = {kind: str(number) * 24 for number, kind in enumerate(KINDS)}
    for kind, owner in owners.items():
        await add_webhook(db, key, URL, owner=owner, sequenced=kind == "numbered")
    for number in range(size.singles * size.runs):
        # After every pair the other kind is first.
        for kind in KINDS if number % 2 else reversed(KINDS):
            took["alone"][kind].append(await _alone(db, owners[kind], number))
    for run in range(size.runs + 1):
        for kind, owner in owners.items():
            together = await _together(db, owner, size.events)
            if run:
                took["together"][kind].append(together)
    return took


async def _alone(db: Database, owner: str, number: int) -> float:
    """Write an event and fan it out."""
    began = time.process_time()
    await db.write(make, f"record-{number}", "thing.made", owner)
    fanned = await db.write(fan_out, NONE)
    took = time.process_time() - began
    assert sum(fanned.created.values()) == 1
    return took * SECONDS_TO_US


async def _together(db: Database, owner: str, count: int) -> float:
    """Fan out many events in rounds."""
    for _ in range(count // 100):
        await db.write(make_many, 100, owner)
    gc.collect()
    began = time.process_time()
    while (await db.write(fan_out, NONE)).more:
        pass
    return (time.process_time() - began) * SECONDS_TO_US / count
