"""Concurrent checkouts sell nothing twice, and their races find each guard that is off."""

from __future__ import annotations

import pytest

from tests.support.engines import Engine
from tests.support.faults import ENGINES, sizes
from tests.system.checkouts import GUARDS, ONE_WRITER, run_races, run_unguarded


@sizes("rounds", large=50)
@ENGINES
async def test_races_sell_nothing_twice(engine: Engine, rounds: int) -> None:
    told = await run_races(engine, rounds)
    assert told["pass"], told


@pytest.mark.slow
@pytest.mark.parametrize("guard", GUARDS)
@ENGINES
async def test_a_guard_that_is_off_shows(engine: Engine, guard: str) -> None:
    if engine == "sqlite" and guard == ONE_WRITER:
        assert await run_unguarded(engine, guard, 2) == []
        return
    assert await run_unguarded(engine, guard, 5)
