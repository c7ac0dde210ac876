"""How rate and latency change with webhooks per event, with webhooks, and with kept rows.

Each point has its own database. A run of a point starts a node, writes and delivers as fast as
responses come, and then half as fast, which gives the latency. The points take turns, and medians
count. A run leaves its rows behind. Kept rows are deliveries of the past with their attempts and
events, a tenth as many.
"""

from __future__ import annotations

import os
from contextlib import AsyncExitStack
from dataclasses import dataclass
from statistics import median

from outbox import database
from outbox.clock import SystemClock
from outbox.ids import Ids
from tests.benchmarks.figures import Size, Verdict
from tests.benchmarks.site import Place, Run, Site, site
from tests.benchmarks.whole_runs import told
from tests.support.ledger import query
from tests.support.old_rows import PER_EVENT, OldRows

DELIVERIES = 10_000
WARM = 200
"""Deliveries before a run is measured."""
PACE, PACE_SECONDS = 0.5, 5.0
"""The share of the highest rate at which latency is measured."""
AXES = {
    "webhooks_per_event": (10, 50),
    "webhooks": (1_000, 10_000),
    "kept_rows": (1_000_000, 10_000_000),
}
LEAST = {"webhooks_per_event": 1.0, "webhooks": 0.5, "kept_rows": 0.5}
"""With the most of it, this share of the deliveries a second of the smallest point."""
DAYS = 20.0


@dataclass(frozen=True)
class Point:
    """What a database holds: owners with their webhooks, and rows of the past."""

    webhooks_per_event: int = 1
    webhooks: int = 1
    kept_rows: int = 0


async def growth(size: Size) -> Verdict:
    """Measure events per second and p99 along three axes on SQLite."""
    return await _grow(Verdict("growth"), "sqlite", size)


async def growth_postgres(size: Size) -> Verdict:
    """Measure the same with one process on PostgreSQL."""
    return await _grow(Verdict("growth_postgres"), "postgres", size)


async def _grow(verdict: Verdict, engine: str, size: Size) -> Verdict:
    points = {"smallest": Point()}
    for axis, values in AXES.items():
        for value in values:
            # Webhooks per event are few; a share of them would be none.
            held = value if axis == "webhooks_per_event" else size.count(value)
            points[f"{axis}_{value}"] = Point(**{axis: held})
    runs: dict[Point, list[tuple[Run, Run]]] = {point: [] for point in points.values()}
    async with AsyncExitStack() as ends:
        here = await ends.enter_async_context(site(engine))
        places: dict[Point, Place] = {}
        for number, point in enumerate(runs):
            new = here.place(f"point{number}", point.webhooks, point.webhooks_per_event)
            places[point] = await ends.enter_async_context(new)
            await _fill(places[point], point.kept_rows)
        for _ in range(size.runs):
            for point, place in places.items():
                runs[point].append(await _run(here, place, point, size))
    verdict.figures |= {
        "deliveries": size.count(DELIVERIES), "runs": size.runs, "cores": os.cpu_count(),
    }  # fmt: skip
    deliveries = {}
    for name, point in points.items():
        fast, paced = (told([pair[part] for pair in runs[point]]) for part in (0, 1))
        latency = {what: paced[what] for what in paced if what.startswith("to_request")}
        verdict.figures[name] = fast | latency
        rate = median([run.per_s for run, _ in runs[point]])
        deliveries[name] = rate * point.webhooks_per_event
    for axis, values in AXES.items():
        share = deliveries[f"{axis}_{values[-1]}"] / deliveries["smallest"]
        verdict.at_least(f"deliveries_of_most_{axis}", share, LEAST[axis])
    return verdict


async def _fill(place: Place, rows: int) -> None:
    """Add rows of the past."""
    [(owner, webhooks), *_] = place.tenants.webhooks.items()
    db = await database.open(place.url, clock=SystemClock(), ids=Ids())
    await OldRows(db, owner, webhooks, seed=1).add(rows * PER_EVENT // (2 * PER_EVENT + 1), DAYS)
    await db.close()
    if rows and place.url.startswith("postgres"):
        for statement in ("vacuum (analyze)", "checkpoint"):
            await query(place.url, statement)


async def _run(here: Site, place: Place, point: Point, size: Size) -> tuple[Run, Run]:
    """Return a run as fast as responses come, and one at half of its rate."""
    fan, deliveries = point.webhooks_per_event, size.count(DELIVERIES)
    with here.node(place) as node:
        await here.run(place, node, per_event=fan, total=max(min(WARM, deliveries) // fan, 1))
        fast = await here.run(place, node, per_event=fan, total=max(deliveries // fan, 1))
        pace, seconds = PACE * fast.per_s, size.seconds(PACE_SECONDS)
        return fast, await here.run(place, node, per_event=fan, per_second=pace, seconds=seconds)
