"""Writing and delivering at once, against the commit before the fast paths in the same run.

One webhook, whose receiver responds at once, and 32 connections that create contacts as fast as
responses come. The trees take turns, and medians count.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from tests.benchmarks import earlier
from tests.benchmarks.figures import Verdict, median, rounded
from tests.benchmarks.idle_commit import idle_commit
from tests.benchmarks.sizes import Size
from tests.benchmarks.whole_runs import Side, Whole, site

CONNECTIONS = 32
SQLITE_TIMES = 1.6
POSTGRES_TIMES = 2.0
CPU_SHARE = 0.6
IDLE_MEDIAN_MS = 4.0
IDLE_P99_MS = 10.0


async def end_to_end(size: Size) -> Verdict:
    """Compare on SQLite; then measure the latency of an idle system."""
    verdict = Verdict("end_to_end")
    await _compare(verdict, "sqlite", size, SQLITE_TIMES, {})
    idle = await idle_commit(replace(size, engines=("sqlite",)))
    verdict.broken += idle.broken
    for what, bar in (("median", IDLE_MEDIAN_MS), ("p99", IDLE_P99_MS)):
        verdict.at_most(f"idle_{what}_ms", float(str(idle.figures[f"sqlite_{what}_ms"])), bar)
    return verdict


async def end_to_end_postgres(size: Size) -> Verdict:
    """Compare a node of two processes with a node of the commit before, which has one."""
    verdict = Verdict("end_to_end_postgres")
    settings = {"CARTEIRO_SERVER__PROCESSES": "2"}
    await _compare(verdict, "postgres", size, POSTGRES_TIMES, settings)
    return verdict


async def _compare(
    verdict: Verdict, engine: str, size: Size, times: float, settings: Mapping[str, str]
) -> None:
    connections = min(CONNECTIONS, size.connections)
    verdict.figures |= {
        "events": size.events,
        "connections": connections,
        "runs": size.runs,
        "cores": os.cpu_count(),
        "settings": dict(settings),
        "before": earlier.BASE[:12],
    }
    with tempfile.TemporaryDirectory(prefix="carteiro-bench-") as name:
        folder = Path(name)
        sides = {"before": Side(earlier.check_out(folder)), "now": Side(settings=settings)}
        runs: dict[str, list[Whole]] = {what: [] for what in sides}
        async with site(engine, folder) as where:
            verdict.figures["database"] = where.database
            order = list(sides)
            for _ in range(size.runs):
                for what in order:
                    runs[what].append(await where.alone(sides[what], size.events, connections))
                # Neither always runs on what the other left in caches.
                order.reverse()
    rate, cpu = {}, {}
    for what, found in runs.items():
        rate[what] = median([size.events / run.seconds for run in found])
        cpu[what] = _cpu_us(found, size)
        verdict.figures |= {
            f"{what}_events_per_s": round(rate[what]),
            f"{what}_cpu_us": round(cpu[what]),
            f"{what}_server_cpu_us": round(
                median([run.used.server for run in found]) / size.events * 1e6
            ),
            f"{what}_write_p99_ms": rounded(median([run.write_p99_ms for run in found])),
        }
    verdict.at_least("times_before", rate["now"] / rate["before"], times)
    verdict.at_most("cpu_of_before", cpu["now"] / cpu["before"], CPU_SHARE)


def _cpu_us(runs: Sequence[Whole], size: Size) -> float:
    """Return the CPU time of an event, of node and server together."""
    return median([run.used.python + run.used.server for run in runs]) / size.events * 1e6
