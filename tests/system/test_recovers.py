"""A recover job that is killed on its way ends complete: each failed delivery is replayed once."""

from __future__ import annotations

from functools import partial

import pytest

from tests.support.engines import Engine
from tests.support.faults import ENGINES, LARGE, shows
from tests.system.recovers import run_recover

SEED = 20260
HASTY = "tests.system.hasty_jobs_serve"
# A step replays up to 200: with few deliveries the last step may follow the one before it
# between two looks, and the kill comes too late.
SMALL = pytest.param(
    "sqlite", 2_000, 1, id="small", marks=(pytest.mark.slow, pytest.mark.timeout(180))
)


@pytest.mark.parametrize(
    ("engine", "count", "kills"),
    [
        SMALL,
        pytest.param("sqlite", 50_000, 2, id="sqlite-large", marks=LARGE),
        pytest.param("postgres", 50_000, 2, id="postgres-large", marks=LARGE),
    ],
)
async def test_kills_lose_and_double_no_replay(engine: Engine, count: int, kills: int) -> None:
    """R24."""
    told = await run_recover(count, engine, SEED, kills=kills)
    assert told["pass"], told


@pytest.mark.faults
@pytest.mark.timeout(300)
async def test_another_node_goes_on_when_the_one_that_leads_is_killed() -> None:
    told = await run_recover(10_000, "postgres", SEED + 2, kills=3, nodes=3)
    assert told["pass"], told


@pytest.mark.faults
@pytest.mark.timeout(300)
@ENGINES
async def test_moving_on_before_replaying_is_seen(engine: Engine) -> None:
    assert await shows(partial(run_recover, 2_000, engine, within=1.0, module=HASTY), SEED)
