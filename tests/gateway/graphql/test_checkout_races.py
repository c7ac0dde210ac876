"""Requests at once, and repeats: one order per cart, no use too many, no change lost."""

import asyncio

from outbox.database.transaction import Row, Tx
from tests.gateway.graphql.test_carts import refused
from tests.support.carts import cart, change, do, edit, sell
from tests.support.checkout_races import coupon_with_one_use, hundred_buyers, one_cart
from tests.support.checkouts import BUYER, check_out, put
from tests.support.shop import Answer, Shop

ROUNDS = 2


async def test_races_of_checkouts(shop: Shop) -> None:
    """A cart makes one order, ten items make ten, and a coupon with one use left is used once."""
    for _ in range(ROUNDS):
        assert await one_cart(shop) == []
        assert await coupon_with_one_use(shop) == []
    assert await hundred_buyers(shop, 15) == []


async def test_concurrent_repeats_make_one_order(shop: Shop) -> None:
    browser = shop.browser()
    await put(browser, await sell(shop, stock=5))
    answers = await asyncio.gather(*(check_out(browser, idempotencyKey="k") for _ in range(6)))
    found = [answer.data["checkout"]["order"] for answer in answers]
    assert all(order == found[0] for order in found)
    assert (await shop.owner.get("/api/orders")).body["total"] == 1


async def test_a_repeat_after_a_lost_response(shop: Shop) -> None:
    browser = shop.browser()
    await put(browser, await sell(shop, stock=5))
    [old] = [c.value for c in browser.http.cookie_jar if c.key == "cartSession"]
    first = await check_out(browser, idempotencyKey="k1")
    # The client never saw the new cookie.
    browser.http.cookie_jar.clear()
    sent = {"input": {"hostname": shop.hostname, **BUYER, "idempotencyKey": "k1"}}
    query = (
        "mutation ($input: CheckoutMutationInput!)"
        " { checkout(input: $input) { order { number accessToken } } }"
    )
    again = await browser.send(query, sent, X_Cart_Session=old)
    order = first.data["checkout"]["order"]
    assert again.data["checkout"]["order"] == {
        "number": order["number"], "accessToken": order["accessToken"],
    }  # fmt: skip
    assert again.headers["X-Cart-Session"] == first.headers["X-Cart-Session"]
    # The key is the visitor's own.
    assert (await check_out(shop.browser(), idempotencyKey="k1")).code == "CART_EMPTY"


def codes(answers: list[Answer]) -> list[str]:
    return sorted(a.code if "errors" in a.body else "" for a in answers)


async def test_adds_at_once_all_count_and_stop_at_the_limit(shop: Shop) -> None:
    products = [await sell(shop, 1, name=f"P{n}") for n in range(4)]
    for _ in range(ROUNDS):
        browser = shop.browser()
        # The first look gives the token; the first change makes the row.
        await cart(browser)
        await asyncio.gather(
            *(change(browser, "AddProduct", productId=product) for product in products * 3)
        )
        held = {one["productId"]: one["quantity"] for one in (await cart(browser))["products"]}
        assert held == dict.fromkeys(products, 3)
        await change(browser, "UpdateProduct", id=products[0], quantity=997)
        answers = await asyncio.gather(
            *(do(browser, "AddProduct", productId=products[0]) for _ in range(6))
        )
        assert codes(answers) == ["", ""] + ["QUANTITY_LIMIT"] * 4

    async def unit(tx: Tx) -> list[Row]:
        return await tx.all("select id from carts")

    assert len(await shop.db.read(unit)) == ROUNDS


async def test_a_cart_has_at_most_100_lines(shop: Shop) -> None:
    browser = shop.browser()
    products = [await sell(shop, 1, name=f"P{n}") for n in range(103)]
    for product in products[:98]:
        await browser.do("shoppingCartAddProduct", "warnings { code }", productId=product)
    answers = await asyncio.gather(
        *(do(browser, "AddProduct", productId=product) for product in products[98:])
    )
    assert codes(answers) == ["", "", "QUANTITY_LIMIT", "QUANTITY_LIMIT", "QUANTITY_LIMIT"]
    [beyond, *_] = [
        one for one, told in zip(products[98:], answers, strict=True) if "errors" in told.body
    ]
    refused(await do(browser, "AddProduct", productId=beyond), "QUANTITY_LIMIT", "productId")
    # One more of a product that is there is no further line.
    payload = await change(browser, "AddProduct", productId=products[7])
    assert payload["shoppingCart"]["totalQuantity"] == 101
    # A line that the store no longer sells makes room.
    await edit(shop, products[0], published=False)
    payload = await change(browser, "AddProduct", productId=beyond)
    assert len(payload["shoppingCart"]["products"]) == 100
