"""What an event costs in one, two and three cells, each at the same pace.

A cell is a node with a PostgreSQL server of its own; they share a directory. Cells on one machine
share its cores, so this says what cells cost, not how many events they take together.
"""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

from tests.benchmarks.figures import Verdict, median, rounded
from tests.benchmarks.quiet_run import quiet_run
from tests.benchmarks.sizes import Size
from tests.support.cluster import Cluster

CELLS = (1, 2, 3)
PACE = 50.0
"""Events a second of each cell."""
OF_ONE = 1.05


async def cells(size: Size) -> Verdict:
    """Measure each number of cells in turn, with the cost in one cell as the baseline."""
    verdict = Verdict("cells")
    found: dict[int, list[float]] = {count: [] for count in CELLS}
    with tempfile.TemporaryDirectory(prefix="carteiro-bench-") as name:
        # The server runs as its own user, who must have access to its folder.
        (folder := Path(name)).chmod(0o755)
        directory = Cluster(folder / "directory")
        await directory.create()
        await directory.start()
        try:
            for _ in range(size.runs):
                for count in CELLS:
                    found[count].append(await _together(count, directory.url, size.steady_seconds))
        finally:
            await directory.close()
    costs = {count: median(each) for count, each in found.items()}
    for count, cost in costs.items():
        verdict.figures[f"cells_{count}_cpu_ms"] = rounded(cost)
    for count in CELLS[1:]:
        verdict.at_most(f"cells_{count}_of_one", costs[count] / costs[1], OF_ONE)
    return verdict


async def _together(count: int, directory: str, seconds: float) -> float:
    """Return the milliseconds of CPU of an event, when so many cells work at the same time."""
    gate = asyncio.Barrier(count)
    runs = await asyncio.gather(
        *(
            quiet_run(
                "postgres", PACE, seconds, gate=gate, CARTEIRO_CELL__NAME=f"cell-{number}",
                CARTEIRO_CELL__DIRECTORY=directory,
            )
            for number in range(count)
        )
    )  # fmt: skip
    return sum(run.cpu_ms for run in runs) / count
