"""Shipping is part of the price: who must choose it, and from which total on it is free."""

import asyncio
from typing import Any

from gateway.graphql.ids import record_id
from tests.gateway.graphql.test_carts import refused
from tests.gateway.graphql.test_shipping import QUOTE, rule
from tests.support.carts import cart, change, edit, sell
from tests.support.checkouts import ADDRESS, RULES, check_out, ordered, put
from tests.support.shop import Browser, Shop

NEAR: dict[str, Any] = RULES[0]
"""A rule for the CEPs of São Paulo; it costs 25.50."""
FAR = {**ADDRESS, "cep": "69005-010", "city": "Manaus", "state": "AM"}
FREE = {**NEAR, "freeFrom": 100}


async def sold(shop: Shop) -> list[Any]:
    return list((await shop.owner.get("/api/orders")).body["data"])


async def buyer(shop: Shop, **values: Any) -> Browser:
    """A visitor with a product of 50 BRL in the cart."""
    browser = shop.browser()
    await put(browser, await sell(shop, 50, **values))
    return browser


async def test_no_order_goes_without_shipping_that_the_store_charges(shop: Shop) -> None:
    await rule(shop, [NEAR])
    browser = await buyer(shop, stock=5)
    assert (await cart(browser))["requiresShipping"] is True
    for values in ({}, {"address": ADDRESS}):
        refused(await check_out(browser, **values), "SHIPPING_REQUIRED", "shipping")
    # A CEP alone is no choice.
    await change(browser, "SetShipping", cep=ADDRESS["cep"])
    refused(await check_out(browser, address=ADDRESS), "SHIPPING_REQUIRED", "shipping")
    assert await sold(shop) == []
    await change(browser, "SetShipping", cep=ADDRESS["cep"], type="express")
    assert (await ordered(browser, address=ADDRESS))["total"] == 7550


async def test_no_order_goes_where_no_rule_leads(shop: Shop) -> None:
    await rule(shop, [NEAR])
    browser = await buyer(shop)
    refused(await check_out(browser, address=FAR), "SHIPPING_UNAVAILABLE", "address.cep")
    await change(browser, "SetShipping", cep=ADDRESS["cep"], type="express")
    refused(await check_out(browser, address=FAR), "SHIPPING_UNAVAILABLE", "address.cep")
    await change(browser, "SetShipping", cep=ADDRESS["cep"])
    await rule(shop, [{**NEAR, "cepTo": "01000001"}])
    refused(await check_out(browser), "SHIPPING_UNAVAILABLE", "cep")
    assert await sold(shop) == []


async def test_honest_buyers_beside_cheats_all_get_their_orders(shop: Shop) -> None:
    await rule(shop, [NEAR])
    product = await sell(shop, 50)

    async def honest() -> int:
        browser = shop.browser()
        await put(browser, product)
        await change(browser, "SetShipping", cep=ADDRESS["cep"], type="express")
        return int((await ordered(browser, address=ADDRESS))["total"])

    async def cheat(**values: Any) -> str:
        browser = shop.browser()
        await put(browser, product)
        return (await check_out(browser, **values)).code

    for _ in range(20):
        *totals, first, second = await asyncio.gather(
            *(honest() for _ in range(5)), cheat(), cheat(address=FAR)
        )
        assert totals == [7550] * 5
        assert (first, second) == ("SHIPPING_REQUIRED", "SHIPPING_UNAVAILABLE")
    listed = (await shop.owner.get("/api/orders?limit=100")).body
    assert listed["total"] == 100
    assert {order["shipping"] for order in listed["data"]} == {25.5}


async def test_goods_that_are_not_shipped_never_ask(shop: Shop) -> None:
    await rule(shop, [NEAR])
    browser = await buyer(shop, requiresShipping=False)
    assert (await cart(browser))["requiresShipping"] is False
    order = await ordered(browser)
    assert (order["total"], order["shipping"], order["address"]) == (5000, None, None)


async def test_an_option_of_goods_that_left_the_cart_costs_nothing(shop: Shop) -> None:
    await rule(shop, [NEAR])
    browser = await buyer(shop, requiresShipping=False)
    mug = await sell(shop, 10, name="Mug")
    await put(browser, mug)
    refused(await check_out(browser), "SHIPPING_REQUIRED", "shipping")
    await change(browser, "SetShipping", cep=ADDRESS["cep"], type="express")
    assert (await cart(browser))["total"] == 8550
    found = (await change(browser, "RemoveProduct", id=mug))["shoppingCart"]
    assert (found["totalShipping"], found["total"]) == (None, 5000)
    # The option that the visitor no longer needs may also end.
    await rule(shop, [{**NEAR, "type": "other"}])
    order = await ordered(browser)
    assert (order["total"], order["shipping"]) == (5000, None)


async def test_a_product_is_shipped_unless_the_owner_says_otherwise(shop: Shop) -> None:
    product = await sell(shop)
    path = f"/api/products/{record_id(product, 'Product', 'id')}"
    ask = f'product(hostname: $h, id: "{product}") {{ requiresShipping }}'
    changes: tuple[tuple[dict[str, bool | None], bool], ...] = (
        ({}, True), ({"requiresShipping": False}, False), ({"requiresShipping": None}, True),
    )  # fmt: skip
    for body, shipped in changes:
        assert (await shop.owner.put(path, body)).body["requiresShipping"] is shipped
        shown = await shop.browser().ask(ask)
        assert shown["product"]["requiresShipping"] is shipped
    wrong = await shop.owner.put(path, {"requiresShipping": "no"})
    assert wrong.faults == {"requiresShipping": "wrong_type"}


async def test_a_quote_knows_what_is_free(shop: Shop) -> None:
    await rule(shop, [FREE])
    browser, product = shop.browser(), await sell(shop, 50)

    async def quote(**values: Any) -> list[int]:
        sent = {"h": shop.hostname, "cep": ADDRESS["cep"], **values}
        options = (await browser.send(QUOTE, sent)).data["shippingQuote"]
        return [option["price"] for option in options]

    assert await quote() == [2550]
    assert await quote(productId=product) == [2550]
    assert await quote(productId=product, quantity=2) == [0]
    await put(browser, product, 2)
    assert await quote() == [0]
    await edit(shop, product, requires_shipping=False)
    assert await quote() == await quote(productId=product) == []
