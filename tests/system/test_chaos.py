"""Random acts of operators, kills and clock steps leave nothing lost, stuck, doubled or wrong."""

from __future__ import annotations

import pytest

from tests.support.engines import Engine
from tests.system.chaos import run_chaos

ENGINES = pytest.mark.parametrize("engine", ["sqlite", "postgres"])


@pytest.mark.slow
@pytest.mark.timeout(180)
@ENGINES
async def test_a_few_seconds_of_chaos(engine: Engine) -> None:
    told = await run_chaos(engine, seed=1, seconds=8)
    assert told["pass"], told


@pytest.mark.faults
@pytest.mark.parametrize("seed", range(1, 21))
@ENGINES
async def test_twenty_seeds_of_a_minute(engine: Engine, seed: int) -> None:
    told = await run_chaos(engine, seed)
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
