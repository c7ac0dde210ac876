"""The documents of the cart and of discount modals, one purchase long."""

import re
from typing import Any

from outbox.database.transaction import Database
from tests.gateway.graphql.test_modals import modal
from tests.gateway.graphql.test_shipping import EXPRESS, RULES, STANDARD, rule
from tests.support.carts import cart, change, offer, sell
from tests.support.counted import Counted
from tests.support.operations import operation
from tests.support.rest import UNLIMITED, RestApi
from tests.support.shop import Browser, Shop, open_shop
from tests.support.site import serving

OURS = re.compile("shopping|shipping|discountModal|saveDiscountModal")


async def run(browser: Browser, name: str, **placeholders: str) -> Any:
    return (await browser.send(*operation(name, **placeholders))).data[name]


async def test_the_documents_of_the_cart(shop: Shop) -> None:
    await rule(shop, RULES)
    await offer(shop, "WELCOME10", discountPercentage=10)
    product, browser = await sell(shop, 89.9), shop.browser()
    empty = await run(browser, "shoppingCart")
    assert (empty["products"], empty["total"], empty["coupon"]) == ([], 0, None)
    added = await run(browser, "shoppingCartAddProduct", productId=product)
    [line] = added["shoppingCart"]["products"]
    assert (added["shoppingCart"]["id"], line["quantity"]) == (empty["id"], 2)
    updated = await run(browser, "shoppingCartUpdateProduct", lineId=line["id"])
    assert updated["shoppingCart"]["totalPrice"] == 26_970
    coupon = await run(browser, "shoppingCartApplyCoupon")
    assert coupon["shoppingCart"]["totalDiscount"] == 2_697
    quote = await run(browser, "shippingQuote", productId=product)
    assert quote == [EXPRESS, STANDARD]
    shipped = await run(browser, "shoppingCartSetShipping")
    assert shipped["shoppingCart"]["total"] == 26_970 - 2_697 + 2_500
    whole = await run(browser, "shoppingCart")
    assert (whole["total"], whole["shippingType"]) == (26_773, "express")
    removed = await run(browser, "shoppingCartRemoveCoupon")
    assert removed["shoppingCart"]["coupon"] is None
    removed = await run(browser, "shoppingCartRemoveProduct", lineId=line["id"])
    assert removed["shoppingCart"]["products"] == []
    assert (await run(browser, "shoppingCartClear"))["warnings"] == []


async def test_the_documents_of_discount_modals(shop: Shop) -> None:
    campaign, browser = await modal(shop), shop.browser()
    shown = await run(browser, "discountModal")
    assert shown["id"] == campaign["globalId"]
    for modal_id in (campaign["globalId"], campaign["id"]):
        saved = await run(browser, "saveDiscountModalUserData", discountModalId=modal_id)
        assert saved["success"] is True
    [coupon] = (await shop.owner.get("/api/coupons")).body["data"]
    assert coupon["code"] == saved["couponCode"]


async def test_the_cart_costs_two_reads_besides_the_visitor(db: Database) -> None:
    counted = Counted(db)
    async with serving(counted, UNLIMITED) as site:
        shop = await open_shop(RestApi(site))
        try:
            await rule(shop, RULES)
            await offer(shop, "TEN", discountPercentage=10)
            browser = shop.browser()
            for count in (1, 9):
                for n in range(count):
                    product = await sell(shop, 1, name=f"P{count}-{n}", images=[])
                    await change(browser, "AddProduct", productId=product)
                await change(browser, "ApplyCoupon", code="TEN")
                await change(browser, "SetShipping", cep="01310100", type="express")
                counted.reset()
                contents = await cart(browser)
                assert (contents["coupon"]["code"], contents["shippingType"]) == ("TEN", "express")
                of_cart = [
                    sql for sql in counted.statements
                    if "from carts" in sql or "from products" in sql or "from coupons" in sql
                ]  # fmt: skip
                assert len(of_cart) == 2
                assert len(counted.statements) <= 4
                assert counted.units <= 2
        finally:
            await shop.close()
