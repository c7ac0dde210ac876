"""A store that fails one call in a hundred costs no write and no delivery (R29)."""

from __future__ import annotations

import pytest

from tests.support.engines import Engine
from tests.support.faults import ENGINES, sizes
from tests.system.flaky import run_flaky

SEED = 2_900


@sizes("writes, share", small=(400, 0.02), large=(10_000, 0.01))
@ENGINES
async def test_a_failing_store_loses_nothing(engine: Engine, writes: int, share: float) -> None:
    told = await run_flaky(engine, SEED, writes=writes, share=share)
    assert told["pass"], told
    assert told["refused"], "no write met a fault"
    assert told["failed_turns"], "the drain met no fault"


@pytest.mark.faults
async def test_forgotten_results_are_seen() -> None:
    told = await run_flaky("sqlite", SEED, writes=400, share=0.1, forgets=True)
    assert told["lost"] or told["unexpected"], told
