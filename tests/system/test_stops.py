"""SIGTERM under load with receivers that hang."""

from __future__ import annotations

import pytest

from tests.support.engines import Engine
from tests.system.stops import run_shutdown

SEED = 60260


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
async def test_a_short_grace(engine: Engine) -> None:
    told = await run_shutdown(engine, SEED, grace=5.0)
    assert told["pass"], told


@pytest.mark.faults
@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
async def test_the_whole_grace(engine: Engine) -> None:
    told = await run_shutdown(engine, SEED + 1)
    assert told["pass"], told


@pytest.mark.faults
@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
async def test_a_second_sigterm_ends_it_at_once(engine: Engine) -> None:
    told = await run_shutdown(engine, SEED + 2, twice=True)
    assert told["pass"], told
