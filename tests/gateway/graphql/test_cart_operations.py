"""The documents of the cart and of discount modals, one purchase long."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from outbox.database.transaction import Database
from tests.gateway.graphql.test_accounts import sign_up
from tests.gateway.graphql.test_carts import refused
from tests.gateway.graphql.test_modals import modal
from tests.gateway.graphql.test_shipping import EXPRESS, RULES, STANDARD, rule
from tests.support.carts import cart, change, do, offer, sell
from tests.support.counted import Counted
from tests.support.operations import FOLDER, operation
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
    made, browser = await modal(shop), shop.browser()
    shown = await run(browser, "discountModal")
    assert shown["id"] == made["globalId"]
    for modal_id in (made["globalId"], made["id"]):
        saved = await run(browser, "saveDiscountModalUserData", discountModalId=modal_id)
        assert saved["success"] is True
    [coupon] = (await shop.owner.get("/api/coupons")).body["data"]
    assert coupon["code"] == saved["couponCode"]


def test_the_documentation_shows_these_documents() -> None:
    page = (Path(__file__).parents[3] / "docs" / "storefront.md").read_text("utf-8")
    names = [path.stem for path in FOLDER.glob("*.graphql") if OURS.match(path.stem)]
    assert len(names) == 11
    for name in names:
        for kind in ("graphql", "json"):
            text = (FOLDER / f"{name}.{kind}").read_text("utf-8")
            # A document whose only variable is the hostname needs no example of it.
            plain = json.loads(text) == {"hostname": "shop.example"} if kind == "json" else False
            assert plain or f"```{kind}\n{text}```" in page, f"{name}.{kind}"


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
                found = await cart(browser)
                assert (found["coupon"]["code"], found["shippingType"]) == ("TEN", "express")
                of_cart = [
                    sql for sql in counted.statements
                    if "from carts" in sql or "from products" in sql or "from coupons" in sql
                ]  # fmt: skip
                assert len(of_cart) == 2
                assert len(counted.statements) <= 4
                assert counted.units <= 2
        finally:
            await shop.close()


@pytest.mark.parametrize("signed_in", [False, True])
async def test_nobody_reaches_the_cart_of_another(shop: Shop, *, signed_in: bool) -> None:
    await rule(shop, RULES)
    await offer(shop, "TEN", discountPercentage=10)
    elsewhere = await open_shop(shop.api, "other.example", shippingRules=RULES)
    product, owner = await sell(shop, 10), shop.browser()
    await change(owner, "AddProduct", productId=product)
    [token] = [c.value for c in owner.http.cookie_jar if c.key == "cartSession"]
    if signed_in:
        assert (await sign_up(owner)).data
    await change(owner, "ApplyCoupon", code="TEN")
    await change(owner, "SetShipping", cep="01310100", type="standard")
    before = await cart(owner)
    line = before["products"][0]["id"]
    visitor, customer, foreign = shop.browser(), shop.browser(), elsewhere.browser()
    assert (await sign_up(customer, email="bia@example.com")).data
    assert (await sign_up(foreign, email="caio@example.com")).data
    for person in (visitor, customer, foreign):
        # With the token of the owner's visit, too: a sign-in made it worthless, and to a
        # signed-in customer or in another store it means nothing.
        headers = {"X_Cart_Session": token} if signed_in or person is not visitor else {}
        document, variables = operation("shoppingCart")
        variables["hostname"] = person.hostname
        seen = (await person.send(document, variables, **headers)).data["shoppingCart"]
        assert (seen["products"], seen["coupon"], seen["cep"]) == ([], None, None)
        assert seen["id"] != before["id"]
        for name, values in (
            ("UpdateProduct", {"id": line, "quantity": 9}),
            ("UpdateProduct", {"id": product, "quantity": 0}),
            ("RemoveProduct", {"id": line}),
        ):
            refused(await do(person, name, **values), "PRODUCT_NOT_FOUND", "id")
        await do(person, "Clear")
        await do(person, "RemoveCoupon")
        await do(person, "SetShipping", cep="01310100")
        assert await cart(owner) == before
    added = await do(foreign, "AddProduct", productId=product)
    refused(added, "PRODUCT_NOT_FOUND", "productId")
    refused(await do(foreign, "ApplyCoupon", code="TEN"), "COUPON_NOT_FOUND", "code")
    quote, variables = operation("shippingQuote", productId=product)
    variables["hostname"] = foreign.hostname
    refused(await foreign.send(quote, variables), "PRODUCT_NOT_FOUND", "productId")
    assert await cart(owner) == before
    await elsewhere.close()
