"""The lines of the gateway's limits: big deletes, and the size of the metrics page."""

from __future__ import annotations

from tests.proof.outcome import Line, Outcome
from tests.support.engines import Engine
from tests.system.deletes import CONTACT, DELETES, run_delete
from tests.system.series import run_every_operation

ENGINES: tuple[Engine, ...] = ("sqlite", "postgres")
UNBOUNDED = "tests.system.unbounded_serve"


async def big_deletes(seed: int) -> Outcome:
    """Delete 200,000 dependants beside other writes, killed twice; without the bound it fails."""
    outcome = Outcome()
    for engine in ENGINES:
        for delete in DELETES:
            outcome.add(f"{engine} {delete.name}", await run_delete(delete, engine, seed))
        told = await run_delete(CONTACT, engine, seed, kills=0, module=UNBOUNDED)
        outcome.figures[f"control: {engine} unbounded"] = told["late"]
        outcome.need(bool(told["late"]), f"{engine}: unbounded is not felt: the bar proves nothing")
    return outcome


async def metric_series(seed: int) -> Outcome:
    """Call every operation as three callers in odd ways: series and bytes of the metrics page."""
    outcome = Outcome()
    for engine in ENGINES:
        outcome.add(engine, await run_every_operation(engine))
    return outcome


LINES: dict[str, Line] = {"big-deletes": big_deletes, "metric-series": metric_series}
