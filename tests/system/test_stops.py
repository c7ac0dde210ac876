"""SIGTERM under load with receivers that hang."""

from __future__ import annotations

import pytest

from tests.support.engines import Engine
from tests.support.faults import ENGINES, sizes
from tests.system.stops import run_shutdown

SEED = 60260


@sizes("grace", small=5.0, large=15.0)
@ENGINES
async def test_the_grace(engine: Engine, grace: float) -> None:
    told = await run_shutdown(engine, SEED, grace=grace)
    assert told["pass"], told


@pytest.mark.faults
@ENGINES
async def test_a_second_sigterm_ends_it_at_once(engine: Engine) -> None:
    told = await run_shutdown(engine, SEED + 2, twice=True)
    assert told["pass"], told
