"""Wall clocks that jump: nothing is sent early, late or twice."""

from __future__ import annotations

import pytest

from tests.support.engines import Engine
from tests.system.clocks import run_clock_jumps

SEED = 61260
WALLED = "tests.system.walled_serve"


@pytest.mark.faults
@pytest.mark.timeout(600)
@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
async def test_a_wall_clock_that_jumps_neither_storms_nor_stalls(engine: Engine) -> None:
    told = await run_clock_jumps(engine, SEED)
    assert told["pass"], told


@pytest.mark.faults
@pytest.mark.timeout(300)
async def test_deliveries_due_by_the_wall_clock_are_seen() -> None:
    told = await run_clock_jumps("sqlite", SEED, module=WALLED, patience=4.0)
    assert any("attempts" in finding for finding in told["findings"]), told
