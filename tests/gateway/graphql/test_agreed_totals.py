"""A checkout costs at most what the buyer saw."""

from typing import Any

import pytest

from tests.gateway.graphql.test_carts import refused
from tests.gateway.graphql.test_shipping import rule
from tests.support.carts import cart, change, edit, sell
from tests.support.checkouts import ADDRESS, RULES, check_out, coupon, ordered, put, sign_up
from tests.support.shop import Browser, Shop


async def sold(shop: Shop) -> list[Any]:
    return list((await shop.owner.get("/api/orders?limit=100")).body["data"])


def warned(payload: Any) -> list[str]:
    return [warning["code"] for warning in payload["warnings"]]


async def dear(shop: Shop, browser: Browser) -> str:
    """Show a cart of 20 BRL to the browser, then raise it to 1,998 BRL; return the product."""
    product = await sell(shop, 10, stock=5)
    await put(browser, product, 2)
    assert (await cart(browser))["total"] == 2000
    await edit(shop, product, price=99_900)
    return product


async def test_the_terms_of_coupons_and_shipping_are_agreed_to_also(shop: Shop) -> None:
    await rule(shop, [{**RULES[0], "freeFrom": 100}])
    used = await coupon(shop, discountPercentage=50)
    browser = shop.browser()
    await put(browser, await sell(shop, 100))
    await change(browser, "ApplyCoupon", code="WELCOME")
    await change(browser, "SetShipping", cep=ADDRESS["cep"], type="express")
    assert (await cart(browser))["total"] == 5000
    raised = {"discountPercentage": 10}
    assert (await shop.owner.put(f"/api/coupons/{used}", raised)).status == 200
    assert (await check_out(browser, address=ADDRESS)).code == "TOTAL_CHANGED"
    await rule(shop, [{**RULES[0], "freeFrom": 101}])
    answer = await check_out(browser, address=ADDRESS)
    assert answer.code == "TOTAL_CHANGED"
    assert answer.error["extensions"]["shoppingCart"]["totalShipping"] == 2550
    await rule(shop, [{**RULES[0], "price": 30}])
    assert (await check_out(browser, address=ADDRESS)).code == "TOTAL_CHANGED"
    assert (await ordered(browser, address=ADDRESS))["total"] == 10_000 - 1000 + 3000


async def test_a_lower_total_is_ordered_with_warnings(shop: Shop) -> None:
    browser = shop.browser()
    product = await dear(shop, browser)
    await edit(shop, product, price=900)
    payload = (await check_out(browser)).data["checkout"]
    assert payload["order"]["total"] == 1800
    assert warned(payload) == ["PRICE_CHANGED", "TOTAL_CHANGED"]


@pytest.mark.parametrize("sent", [89.9, -1, 1e15, "x"])
async def test_an_expected_total_is_whole_centavos(shop: Shop, sent: Any) -> None:
    browser = shop.browser()
    await put(browser, await sell(shop))
    answer = await check_out(browser, expectedTotal=sent)
    extensions = answer.error["extensions"]
    assert (extensions["code"], await sold(shop)) == ("BAD_USER_INPUT", [])
    assert extensions["field"].endswith("expectedTotal")


async def test_a_repeat_with_its_key_answers_as_before(shop: Shop) -> None:
    browser = shop.browser()
    product = await dear(shop, browser)
    key = {"idempotencyKey": "k1"}
    assert (await check_out(browser, **key, expectedTotal=2000)).code == "TOTAL_CHANGED"
    first = await check_out(browser, **key, expectedTotal=199_800)
    await edit(shop, product, price=500_000)
    again = await check_out(browser, **key, expectedTotal=199_800)
    assert again.data["checkout"] == first.data["checkout"]
    assert len(await sold(shop)) == 1
    other = await check_out(browser, **key, expectedTotal=199_801)
    refused(other, "BAD_USER_INPUT", "idempotencyKey")


async def test_a_sign_in_brings_what_the_visitor_saw(shop: Shop) -> None:
    browser = shop.browser()
    product = await sell(shop, 10)
    await put(browser, product, 2)
    await sign_up(browser)
    await edit(shop, product, price=99_900)
    assert (await check_out(browser)).code == "TOTAL_CHANGED"
    await edit(shop, product, price=1000)
    assert (await cart(browser))["total"] == 2000
    assert (await ordered(browser))["total"] == 2000
