"""Flushes that fail or take long: no write is acknowledged before it is on the disk."""

from __future__ import annotations

import pytest

from tests.support.engines import Engine
from tests.system.flushes import run_failed_flushes, run_slow_flush

SEED = 41260
HOPEFUL = "tests.system.hopeful_serve"


@pytest.mark.faults
@pytest.mark.timeout(300)
@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
async def test_a_write_whose_flush_failed_is_refused(engine: Engine) -> None:
    told = await run_failed_flushes(8, engine, SEED)
    assert told["pass"], told


@pytest.mark.faults
async def test_forgetting_a_failed_flush_is_seen() -> None:
    for seed in range(SEED, SEED + 3):
        if (await run_failed_flushes(3, "sqlite", seed, module=HOPEFUL))["lost"]:
            return
    pytest.fail("no write was lost: the runs above prove nothing")


@pytest.mark.faults
@pytest.mark.timed
async def test_a_flush_of_two_seconds_holds_up_writes_alone() -> None:
    told = await run_slow_flush(SEED)
    assert told["pass"], told
