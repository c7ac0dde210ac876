"""Changes of one cart at once: none is lost, and none goes past a limit."""

import asyncio
from typing import Any

import pytest

from gateway.domain.storefront.carts import cart_lifecycle, changes
from gateway.domain.storefront.carts.contents import current
from gateway.domain.storefront.stores import stores
from gateway.domain.storefront.visitors.visitor import Visitor
from gateway.graphql.ids import record_id
from gateway.records.errors import Refusal
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


async def test_an_add_and_a_clear_at_once_leave_what_came_last(shop: Shop) -> None:
    old, new = await sell(shop, 1), await sell(shop, 2)
    seen = set()
    for _ in range(ROUNDS * 2):
        browser = shop.browser()
        await change(browser, "AddProduct", productId=old)
        added, cleared = await asyncio.gather(
            change(browser, "AddProduct", productId=new), change(browser, "Clear")
        )
        held = [p["productId"] for p in (await cart(browser))["products"]]
        # Never the old line again, and never half of the new one.
        assert held in ([], [new])
        assert cleared["shoppingCart"]["products"] == []
        assert [p["productId"] for p in added["shoppingCart"]["products"]] == (
            [new] if held else [old, new]
        )
        seen.add(len(held))
    assert seen <= {0, 1}


async def test_two_removals_of_one_line_remove_it_once(shop: Shop) -> None:
    product, other = await sell(shop, 1), await sell(shop, 2)
    for _ in range(ROUNDS):
        browser = shop.browser()
        for each in (product, other):
            await change(browser, "AddProduct", productId=each)
        answers = await asyncio.gather(
            *(do(browser, "RemoveProduct", id=product) for _ in range(3))
        )
        assert codes(answers) == ["", "PRODUCT_NOT_FOUND", "PRODUCT_NOT_FOUND"]
        assert [p["productId"] for p in (await cart(browser))["products"]] == [other]


async def test_orders_of_one_cart_at_once_close_it_once(shop: Shop) -> None:
    product = await sell(shop, 1)
    for round_ in range(ROUNDS):
        browser = shop.browser()
        await change(browser, "AddProduct", productId=product)
        visitor = await _visitor(shop, browser)

        async def order(tx: Tx, order_id: str, visitor: Visitor = visitor) -> int:
            contents = await current(tx, visitor, lock=True)
            if not contents.items:
                raise Refusal("cart_empty", "The cart is empty.")
            await cart_lifecycle.close(tx, contents.cart, order_id)
            return contents.total_quantity

        async def again(tx: Tx, visitor: Visitor = visitor) -> int:
            product_id = record_id(product, "Product", "id")
            return (await changes.add(tx, visitor, product_id, 5, limiting=True)).total_quantity

        *orders, added = await asyncio.gather(
            *(shop.db.write(order, f"{round_}{n:023d}") for n in range(4)),
            shop.db.write(again),
            return_exceptions=True,
        )
        # The add came before an order or after it, into the old cart or into a new one.
        assert added in (5, 6)
        left = (await cart(browser))["totalQuantity"]
        done = [each for each in orders if isinstance(each, int)]
        assert sum(done) + left == 6
        assert {e.code for e in orders if isinstance(e, Refusal)} <= {"cart_empty"}
        assert len(done) in (1, 2)


async def _visitor(shop: Shop, browser: Any) -> Visitor:
    store, zone = await shop.db.read(stores.by_hostname, shop.hostname)
    [cookie] = [c.value for c in browser.http.cookie_jar if c.key == "cartSession"]
    return Visitor(store=store, zone=zone, cart_token=cookie)
