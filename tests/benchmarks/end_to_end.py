"""Writing and delivering at once.

One webhook, whose receiver responds at once, and 32 connections that create contacts as fast as
responses come. Medians count.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from tests.benchmarks.figures import Verdict, median, rounded
from tests.benchmarks.idle_commit import idle_commit
from tests.benchmarks.sizes import Size
from tests.benchmarks.whole_runs import site

CONNECTIONS = 32
IDLE_MEDIAN_MS = 4.0
IDLE_P99_MS = 10.0


async def end_to_end(size: Size) -> Verdict:
    """Measure SQLite; then the latency of an idle system."""
    verdict = Verdict("end_to_end")
    await _measure(verdict, "sqlite", size, {})
    idle = await idle_commit(replace(size, engines=("sqlite",)))
    verdict.broken += idle.broken
    for what, bar in (("median", IDLE_MEDIAN_MS), ("p99", IDLE_P99_MS)):
        verdict.at_most(f"idle_{what}_ms", float(str(idle.figures[f"sqlite_{what}_ms"])), bar)
    return verdict


async def end_to_end_postgres(size: Size) -> Verdict:
    """Measure a node of two processes on PostgreSQL."""
    verdict = Verdict("end_to_end_postgres")
    settings = {"CARTEIRO_SERVER__PROCESSES": "2"}
    await _measure(verdict, "postgres", size, settings)
    return verdict


async def _measure(verdict: Verdict, engine: str, size: Size, settings: Mapping[str, str]) -> None:
    connections = min(CONNECTIONS, size.connections)
    with tempfile.TemporaryDirectory(prefix="carteiro-bench-") as name:
        async with site(engine, Path(name)) as where:
            runs = [await where.alone(settings, size.events, connections) for _ in range(size.runs)]
    verdict.figures |= {
        "events": size.events,
        "connections": connections,
        "runs": size.runs,
        "cores": os.cpu_count(),
        "settings": dict(settings),
        "database": where.database,
        "events_per_s": round(median([size.events / run.seconds for run in runs])),
        "cpu_us": round(_per_event_us([run.used.python + run.used.server for run in runs], size)),
        "server_cpu_us": round(_per_event_us([run.used.server for run in runs], size)),
        "write_p99_ms": rounded(median([run.write_p99_ms for run in runs])),
    }


def _per_event_us(seconds: Sequence[float], size: Size) -> float:
    return median(seconds) / size.events * 1e6
