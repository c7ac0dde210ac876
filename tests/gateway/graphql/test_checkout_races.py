"""Concurrent checkouts: one order per cart, no stock below zero, no coupon used twice."""

from tests.support.checkout_races import coupon_with_one_use
from tests.support.shop import Shop

ROUNDS = 2


async def test_a_coupon_with_one_use_left_is_used_once(shop: Shop) -> None:
    for _ in range(ROUNDS):
        assert await coupon_with_one_use(shop) == []
