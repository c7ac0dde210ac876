"""What an event costs at a few events a second, and what a node costs without any.

One webhook, whose receiver responds at once. `quiet_pairs` compares with another tree; the bars are
from such pairs with commit 68bbf59.
"""

from __future__ import annotations

from dataclasses import asdict

from tests.benchmarks.figures import Verdict, median, rounded
from tests.benchmarks.quiet_run import quiet_run
from tests.benchmarks.sizes import Size

PACE = 200.0
BEFORE_MS = {"sqlite": 3.0, "postgres": 4.9}
"""CPU of an event at PACE before results and fan-out shared transactions."""
OF_BEFORE = 0.6
IDLE_PERCENT = {"sqlite": 0.5, "postgres": 1.0}


async def quiet_day(size: Size) -> Verdict:
    """Measure each pace and the idle node on each engine."""
    verdict = Verdict("quiet_day")
    for engine in size.engines:
        for pace in size.paces:
            runs = [await quiet_run(engine, pace, size.steady_seconds) for _ in range(size.runs)]
            for what in asdict(runs[0]):
                if engine == "sqlite" and what == "server_ms":
                    continue  # There is no server.
                value = median([getattr(each, what) for each in runs])
                verdict.figures[f"{engine}_{pace:g}_{what}"] = rounded(value)
            if pace == PACE:
                cost = median([each.cpu_ms for each in runs])
                ratio = cost / BEFORE_MS[engine]
                verdict.at_most(f"{engine}_of_before", ratio, OF_BEFORE)
        idle = [await quiet_run(engine, 0.0, 4 * size.steady_seconds) for _ in range(size.runs)]
        percent = median([each.core_percent for each in idle])
        verdict.at_most(f"{engine}_idle_percent", percent, IDLE_PERCENT[engine])
    return verdict
