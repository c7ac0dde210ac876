"""Power cuts under load: acknowledged writes exist afterwards; less than FULL loses them."""

from __future__ import annotations

from functools import partial

import pytest

from tests.support.engines import Engine
from tests.support.faults import ENGINES, shows, sizes
from tests.system.power import run_power_cuts

SEED = 30260


@sizes("cuts", large=5)
@ENGINES
async def test_power_cuts_lose_nothing(engine: Engine, cuts: int) -> None:
    told = await run_power_cuts(cuts, engine, SEED)
    assert told["pass"], told


@pytest.mark.faults
@ENGINES
async def test_synchronous_normal_is_seen(engine: Engine) -> None:
    """The cost of `normal` as config.toml states it."""
    assert await shows(partial(run_power_cuts, 1, engine, synchronous="normal"), SEED)
