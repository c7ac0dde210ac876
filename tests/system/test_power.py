"""Power cuts under load: acknowledged writes exist afterwards; less than FULL loses them."""

from __future__ import annotations

import pytest

from tests.support.engines import Engine
from tests.system.power import run_power_cuts

SEED = 30260

pytestmark = pytest.mark.faults


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
async def test_five_power_cuts_lose_nothing(engine: Engine) -> None:
    told = await run_power_cuts(5, engine, SEED)
    assert told["pass"], told


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
async def test_synchronous_normal_is_seen(engine: Engine) -> None:
    """The cost of `normal` as config.toml states it."""
    for seed in range(SEED, SEED + 3):
        told = await run_power_cuts(1, engine, seed, synchronous="normal")
        if told["lost"]:
            return
    pytest.fail("three power cuts lost nothing with synchronous=normal: the test sees nothing")
