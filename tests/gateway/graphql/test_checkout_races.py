"""Concurrent checkouts: one order per cart, no stock below zero, no coupon used twice."""

import pytest

from tests.support.checkout_races import coupon_with_one_use, hundred_buyers, one_cart
from tests.support.shop import Shop

ROUNDS = 2


async def test_concurrent_checkouts_of_one_cart_make_one_order(shop: Shop) -> None:
    for _ in range(ROUNDS):
        assert await one_cart(shop) == []


@pytest.mark.slow
@pytest.mark.parametrize("buyers", [30])
async def test_many_buyers_of_ten_items_make_ten_orders(shop: Shop, buyers: int) -> None:
    for _ in range(ROUNDS):
        assert await hundred_buyers(shop, buyers) == []


async def test_a_coupon_with_one_use_left_is_used_once(shop: Shop) -> None:
    for _ in range(ROUNDS):
        assert await coupon_with_one_use(shop) == []
