"""A node that takes writes and delivers their events at the same time.

`end_to_end` is as fast as responses come; `quiet_day` is what an event costs at a few events a
second, and a node without any.
"""

from __future__ import annotations

import asyncio
import os
import time
from statistics import median

from tests.benchmarks.figures import Size, Verdict, quantile, rounded
from tests.benchmarks.site import Run, site

EVENTS = 20_000
SINGLES = 300
SINGLES_A_SECOND = 20.0
IDLE_MEDIAN_MS, IDLE_P99_MS = 4.0, 10.0
WARM_SECONDS = 2.0
PACES = (50.0, 200.0, 1_000.0)
PACE_SECONDS, IDLE_SECONDS = 12.0, 20.0
IDLE_PERCENT = {"sqlite": 0.5, "postgres": 1.0}


async def end_to_end(size: Size) -> Verdict:
    """Measure SQLite, and the latency of an idle system."""
    verdict = await _end_to_end("sqlite", Verdict("end_to_end"), size)
    async with site() as here, here.place("idle") as place:
        with here.node(place) as node:
            seconds = size.count(SINGLES, least=10) / SINGLES_A_SECOND
            run = await here.run(
                place, node, connections=1, per_second=SINGLES_A_SECOND, seconds=seconds
            )
    verdict.at_most("idle_median_ms", quantile(run.to_request, 0.5), IDLE_MEDIAN_MS)
    verdict.at_most("idle_p99_ms", quantile(run.to_request, 0.99), IDLE_P99_MS)
    return verdict


async def end_to_end_postgres(size: Size) -> Verdict:
    """Measure a node of two processes on PostgreSQL."""
    return await _end_to_end(
        "postgres", Verdict("end_to_end_postgres"), size, CARTEIRO_SERVER__PROCESSES="2"
    )


async def _end_to_end(engine: str, verdict: Verdict, size: Size, **settings: str) -> Verdict:
    events, runs = size.count(EVENTS, least=100), list[Run]()
    async with site(engine) as here:
        for number in range(size.runs):
            async with here.place(f"run{number}") as place:
                with here.node(place, **settings) as node:
                    runs.append(await here.run(place, node, total=events))
    verdict.figures |= {"events": events, "runs": size.runs, "cores": os.cpu_count()} | told(runs)
    return verdict


async def quiet_day(size: Size) -> Verdict:
    """Measure each pace and the idle node on each engine."""
    verdict = Verdict("quiet_day")
    for engine in size.engines:
        async with site(engine) as here, here.place("quiet") as place:
            with here.node(place) as node:
                for pace in PACES:
                    await here.run(place, node, per_second=pace, seconds=WARM_SECONDS)
                    seconds = size.seconds(PACE_SECONDS)
                    runs = [
                        await here.run(place, node, per_second=pace, seconds=seconds)
                        for _ in range(size.runs)
                    ]
                    verdict.figures[f"{engine}_{pace:g}"] = told(runs)
                before, began = sum(here.cpu(node)), time.monotonic()
                await asyncio.sleep(size.seconds(IDLE_SECONDS))
                spent, took = sum(here.cpu(node)) - before, time.monotonic() - began
        percent = 100 * spent / took
        verdict.at_most(f"{engine}_idle_percent", percent, IDLE_PERCENT[engine])
    return verdict


def told(runs: list[Run]) -> dict[str, object]:
    """Return the medians."""
    return {
        "events_per_s": round(median([run.per_s for run in runs]), 1),
        "cpu_us": round(median([run.cpu_us for run in runs])),
        "server_cpu_us": round(median([1e6 * run.cpu[1] / run.events for run in runs])),
        "write_p99_ms": rounded(median([run.write_p99_ms for run in runs])),
        "to_request_p50_ms": rounded(median([quantile(run.to_request, 0.5) for run in runs])),
        "to_request_p99_ms": rounded(median([quantile(run.to_request, 0.99) for run in runs])),
    }
