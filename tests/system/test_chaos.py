"""Random acts of operators, kills and clock steps leave nothing lost, stuck, doubled or wrong."""

from __future__ import annotations

import pytest

from tests.support.engines import Engine
from tests.support.faults import ENGINES, LARGE
from tests.system.chaos import run_chaos

SECONDS = 60.0
SHORT = pytest.param(1, 8.0, id="small", marks=(pytest.mark.slow, pytest.mark.timeout(180)))


@pytest.mark.parametrize(
    ("seed", "seconds"),
    [SHORT, *(pytest.param(seed, SECONDS, id=f"{seed}", marks=LARGE) for seed in range(1, 21))],
)
@ENGINES
async def test_chaos(engine: Engine, seed: int, seconds: float) -> None:
    told = await run_chaos(engine, seed, seconds=seconds)
    assert told["pass"], told


@pytest.mark.faults
@pytest.mark.parametrize(
    ("module", "finding"),
    [
        ("tests.system.hasty_serve", "attempts out of order"),
        ("tests.system.broken_serve", "successes in the log that no receiver has"),
    ],
)
async def test_broken_rules_are_found(module: str, finding: str) -> None:
    told = await run_chaos("sqlite", seed=1, seconds=12, module=module)
    assert any(finding in one for one in told["findings"]), told
