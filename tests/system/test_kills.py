"""Kill -9 under load: no acknowledged write is lost, and only deliveries in flight repeat."""

from __future__ import annotations

from functools import partial

import pytest

from tests.support.engines import Engine
from tests.support.faults import ENGINES, shows, sizes
from tests.system.kills import run_kills

SEED = 20260
BROKEN = "tests.system.broken_serve"


@sizes("kills", small=3, large=20)
@ENGINES
async def test_kills_lose_nothing(engine: Engine, kills: int) -> None:
    told = await run_kills(kills, engine, SEED + kills)
    assert told["pass"], told


@pytest.mark.parametrize(
    "engine",
    [
        pytest.param("sqlite", marks=pytest.mark.slow),
        pytest.param("postgres", marks=pytest.mark.faults),
    ],
)
async def test_settling_before_sending_is_seen(engine: Engine) -> None:
    assert await shows(partial(run_kills, 1, engine, module=BROKEN), SEED)
