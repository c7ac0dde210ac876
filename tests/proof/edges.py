"""The lines of the gateway's edges: big deletes, and the size of the metrics page."""

from __future__ import annotations

from tests.proof.outcome import Line, Outcome
from tests.support.engines import Engine
from tests.system.deletes import CONTACT, DELETES, run_delete
from tests.system.series import run_every_operation

ENGINES: tuple[Engine, ...] = ("sqlite", "postgres")
UNBOUNDED = "tests.system.unbounded_serve"


async def big_deletes(seed: int) -> Outcome:
    """100,000 and 200,000 dependants beside others' writes, killed twice; unbounded goes red."""
    outcome = Outcome()
    for engine in ENGINES:
        for delete in DELETES:
            outcome.add(f"{engine} {delete.name}", await run_delete(delete, engine, seed))
        told = await run_delete(CONTACT, engine, seed, kills=0, module=UNBOUNDED)
        outcome.figures[f"control: {engine} unbounded"] = told["late"]
        outcome.need(bool(told["late"]), f"{engine}: unbounded is not felt: the bar proves nothing")
    return outcome


async def metric_series(seed: int) -> Outcome:
    """Every operation by three callers, odd methods, hosts and paths: series and bytes."""
    outcome = Outcome()
    for engine in ENGINES:
        outcome.add(engine, await run_every_operation(engine))
    return outcome


LINES: dict[str, Line] = {"big-deletes": big_deletes, "metric-series": metric_series}
