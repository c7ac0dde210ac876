"""A store that fails one call in a hundred costs no write and no delivery (R29)."""

from __future__ import annotations

import pytest

from tests.support.engines import Engine
from tests.system.flaky import run_flaky

SEED = 2_900


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
async def test_a_failing_store_loses_nothing(engine: Engine) -> None:
    told = await run_flaky(engine, SEED, writes=400, share=0.02)
    assert told["pass"], told
    assert told["refused"], "no write met a fault"
    assert told["failed_turns"], "the drain met no fault"


@pytest.mark.faults
@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
async def test_ten_thousand_writes_on_a_failing_store(engine: Engine) -> None:
    told = await run_flaky(engine, SEED + 1, writes=10_000)
    assert told["pass"], told


@pytest.mark.faults
async def test_forgotten_results_are_seen() -> None:
    told = await run_flaky("sqlite", SEED, writes=400, share=0.1, forgets=True)
    assert told["lost"] or told["unexpected"], told
