"""Kill -9 under load: no acknowledged write is lost, and only deliveries in flight repeat."""

from __future__ import annotations

import pytest

from tests.support.engines import Engine
from tests.system.kills import run_kills

SEED = 20260
BROKEN = "tests.system.broken_serve"


@pytest.mark.slow
@pytest.mark.timeout(180)
@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
async def test_three_kills_lose_nothing(engine: Engine) -> None:
    told = await run_kills(3, engine, SEED)
    assert told["pass"], told


@pytest.mark.slow
async def test_settling_before_sending_is_seen() -> None:
    assert await _goes_red("sqlite")


@pytest.mark.faults
@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
async def test_twenty_kills_lose_nothing(engine: Engine) -> None:
    told = await run_kills(20, engine, SEED + 1)
    assert told["pass"], told


@pytest.mark.faults
async def test_settling_before_sending_is_seen_on_postgres() -> None:
    assert await _goes_red("postgres")


async def _goes_red(engine: Engine) -> bool:
    for seed in range(SEED, SEED + 3):
        told = await run_kills(1, engine, seed, module=BROKEN)
        if told["lost"]:
            return True
    return False
