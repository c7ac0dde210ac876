"""Random walks of buyers and an owner at once: stock, coupons, documents and events agree."""

import pytest

from tests.support.shop import Shop
from tests.support.trade_walk import Walk, faults

WAVES = 6


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
async def test_everything_agrees_after_a_random_walk(shop: Shop, seed: int) -> None:
    walk = Walk(shop, seed)
    await walk.open()
    for _ in range(WAVES):
        await walk.wave(12)
    assert walk.surprises == []
    assert len(walk.orders) > WAVES
    assert await faults(shop) == []
