"""A recover job that is killed on its way ends complete: each failed delivery is replayed once."""

from __future__ import annotations

import pytest

from tests.support.engines import Engine
from tests.system.recovers import run_recover

SEED = 20260
HASTY = "tests.system.hasty_jobs_serve"


@pytest.mark.slow
@pytest.mark.timeout(180)
async def test_a_kill_loses_and_doubles_no_replay() -> None:
    # A step replays up to 200: with few deliveries the last step may follow the one before it
    # between two looks, and the kill comes too late.
    told = await run_recover(2_000, "sqlite", SEED, kills=1)
    assert told["pass"], told


@pytest.mark.faults
@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
async def test_ten_thousand_replays_survive_two_kills(engine: Engine) -> None:
    """R24."""
    told = await run_recover(10_000, engine, SEED + 1)
    assert told["pass"], told


@pytest.mark.faults
@pytest.mark.timeout(300)
async def test_another_node_goes_on_when_the_one_that_leads_is_killed() -> None:
    told = await run_recover(10_000, "postgres", SEED + 2, kills=3, nodes=3)
    assert told["pass"], told


@pytest.mark.faults
@pytest.mark.timeout(300)
@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
async def test_moving_on_before_replaying_is_seen(engine: Engine) -> None:
    for seed in range(SEED, SEED + 3):
        told = await run_recover(2_000, engine, seed, within=1.0, module=HASTY)
        if told["lost"]:
            return
    pytest.fail("deliveries were not lost: the tests above prove nothing")
