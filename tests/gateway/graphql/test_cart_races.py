"""Changes of one cart at once: none is lost, and none goes past a limit."""

import asyncio
from typing import Any

import pytest

from outbox.database.transaction import Row, Tx
from tests.support.carts import cart, change, do, sell
from tests.support.shop import Shop

ROUNDS = 5


def codes(answers: list[Any]) -> list[str]:
    return sorted(a.code if "errors" in a.body else "" for a in answers)


@pytest.mark.slow
async def test_adds_at_once_all_count_and_make_one_row(shop: Shop) -> None:
    products = [await sell(shop, 1, name=f"P{n}") for n in range(4)]
    for _ in range(ROUNDS):
        browser = shop.browser()
        # The first look gives the token; the first change makes the row.
        await cart(browser)
        await asyncio.gather(
            *(change(browser, "AddProduct", productId=product) for product in products * 3)
        )
        contents = await cart(browser)
        assert {p["productId"]: p["quantity"] for p in contents["products"]} == dict.fromkeys(
            products, 3
        )

    async def unit(tx: Tx) -> list[Row]:
        return await tx.all("select id from carts")

    assert len(await shop.db.read(unit)) == ROUNDS


async def test_adds_at_once_stop_at_the_limit(shop: Shop) -> None:
    product = await sell(shop, 1)
    for _ in range(ROUNDS):
        browser = shop.browser()
        await change(browser, "AddProduct", productId=product, quantity=997)
        answers = await asyncio.gather(
            *(do(browser, "AddProduct", productId=product) for _ in range(6))
        )
        assert codes(answers) == ["", ""] + ["QUANTITY_LIMIT"] * 4
        assert (await cart(browser))["totalQuantity"] == 999


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
