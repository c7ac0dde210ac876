"""Changes of one cart at once: none is lost, and none goes past a limit."""

import asyncio
from typing import Any

import pytest

from tests.support.carts import change, do, sell
from tests.support.shop import Shop


def codes(answers: list[Any]) -> list[str]:
    return sorted(a.code if "errors" in a.body else "" for a in answers)


@pytest.mark.slow
async def test_further_lines_at_once_stop_at_the_limit(shop: Shop) -> None:
    products = [await sell(shop, 1, name=f"P{n}") for n in range(103)]
    browser = shop.browser()
    for product in products[:98]:
        await change(browser, "AddProduct", productId=product)
    answers = await asyncio.gather(
        *(do(browser, "AddProduct", productId=product) for product in products[98:])
    )
    assert codes(answers) == ["", "", "QUANTITY_LIMIT", "QUANTITY_LIMIT", "QUANTITY_LIMIT"]
