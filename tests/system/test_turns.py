"""No lane waits for ever beside full lanes (A4)."""

from __future__ import annotations

import pytest

from tests.support.engines import Engine
from tests.support.faults import ENGINES, LARGE
from tests.system.turns import run_starvation

SMALL = pytest.param(20, 16, 1, 20_000, id="small", marks=pytest.mark.slow)
LARGE_RUNS = ((20, 256, 5), (20, 8, 5), (2_000, 256, 3), (2_000, 16, 3))
"""Lanes with a backlog, slots of the worker, and the number of turns requested beside them."""


@pytest.mark.timed
@pytest.mark.parametrize(
    ("lanes", "slots", "rounds", "backlog"),
    [SMALL, *(pytest.param(*run, 80_000, marks=LARGE) for run in LARGE_RUNS)],
)
@ENGINES
async def test_beside_full_lanes_everybody_gets_a_turn(
    engine: Engine, lanes: int, slots: int, rounds: int, backlog: int
) -> None:
    told = await run_starvation(engine, lanes, slots, rounds=rounds, backlog=backlog)
    assert told["pass"], told
