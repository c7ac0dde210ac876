"""No lane waits for ever beside full lanes (A4)."""

from __future__ import annotations

import pytest

from tests.support.engines import Engine
from tests.system.turns import run_starvation


@pytest.mark.slow
@pytest.mark.timed
@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
async def test_beside_full_lanes_everybody_gets_a_turn(engine: Engine) -> None:
    told = await run_starvation(engine, lanes=20, slots=16, rounds=1, backlog=20_000)
    assert told["pass"], told


@pytest.mark.faults
@pytest.mark.timeout(300)
@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
async def test_beside_two_thousand_lanes_everybody_gets_a_turn(engine: Engine) -> None:
    told = await run_starvation(engine, lanes=2_000, slots=256, rounds=1)
    assert told["pass"], told
