"""Shipping by CEP, of a cart and of a product."""

from typing import Any

import pytest

from tests.gateway.graphql.test_carts import refused, rows
from tests.support.carts import cart, change, do, edit, sell
from tests.support.shop import Browser, Shop

RULES: list[dict[str, Any]] = [
    {
        "type": "express", "name": "Express", "price": 25, "deadline": 2,
        "cepFrom": "01000-000", "cepTo": "05999-999",
    },
    {
        "type": "standard", "name": "Standard", "price": 9.9, "deadline": 7,
        "cepFrom": "01000000", "cepTo": "09999999",
    },
    {
        "type": "express", "name": "Late express", "price": 40, "deadline": 4,
        "cepFrom": "06000000", "cepTo": "09999999",
    },
]  # fmt: skip
EXPRESS = {"type": "express", "name": "Express", "price": 2500, "deadline": 2, "freeFrom": None}
STANDARD = {"type": "standard", "name": "Standard", "price": 990, "deadline": 7, "freeFrom": None}
LATE = {
    "type": "express", "name": "Late express", "price": 4000, "deadline": 4, "freeFrom": None,
}  # fmt: skip
QUOTE = """
query ($h: String!, $cep: String!, $productId: ID, $quantity: Int) {
  shippingQuote(hostname: $h, cep: $cep, productId: $productId, quantity: $quantity) {
    type name price deadline freeFrom } }
"""


@pytest.fixture
async def browser(shop: Shop) -> Browser:
    """A visitor of a store with shipping rules, with a product of 50 BRL in the cart."""
    await rule(shop, RULES)
    browser = shop.browser()
    await change(browser, "AddProduct", productId=await sell(shop, 50))
    return browser


async def rule(shop: Shop, rules: list[dict[str, Any]]) -> None:
    path = f"/api/stores/{shop.store['id']}"
    changed = await shop.owner.put(path, {"shippingRules": rules})
    assert changed.status == 200, changed.body


@pytest.mark.parametrize(
    ("cep", "options"),
    [
        ("00999999", None),
        ("01000000", [EXPRESS, STANDARD]),
        ("05999999", [EXPRESS, STANDARD]),
        ("06000000", [STANDARD, LATE]),
        ("09999999", [STANDARD, LATE]),
        ("10000000", None),
    ],
)
async def test_both_ends_of_a_range_belong_to_it(
    shop: Shop, browser: Browser, cep: str, options: list[Any] | None
) -> None:
    quote = await browser.send(QUOTE, {"h": shop.hostname, "cep": cep})
    assert quote.data["shippingQuote"] == (options or [])
    answer = await do(browser, "SetShipping", cep=cep)
    if options is None:
        refused(answer, "SHIPPING_UNAVAILABLE", "cep")
    else:
        found = answer.data["shoppingCartSetShipping"]["shoppingCart"]
        assert found["shippingOptions"] == options


@pytest.mark.parametrize(
    "cep", ["", "0131010", "013101000", "01310_100", "abcdefgh", "０１３１０１００"]
)
async def test_what_is_no_cep_is_refused(shop: Shop, browser: Browser, cep: str) -> None:
    refused(await do(browser, "SetShipping", cep=cep), "INVALID_CEP", "cep")
    refused(await browser.send(QUOTE, {"h": shop.hostname, "cep": cep}), "INVALID_CEP", "cep")


async def test_an_unknown_type_is_refused_and_changes_nothing(browser: Browser) -> None:
    await change(browser, "SetShipping", cep="01310100", type="standard")
    answer = await do(browser, "SetShipping", cep="06000000", type="boat")
    refused(answer, "SHIPPING_UNAVAILABLE", "type")
    found = await cart(browser)
    assert (found["cep"], found["shippingType"]) == ("01310100", "standard")


async def test_a_changed_rule_changes_the_cart_with_a_warning(shop: Shop, browser: Browser) -> None:
    await change(browser, "SetShipping", cep="01310100", type="express")
    dearer = [{**RULES[0], "price": 30}, RULES[1]]
    await rule(shop, dearer)
    found = await cart(browser)
    assert (found["totalShipping"], found["total"]) == (3000, 8000)
    assert [(w["code"], w["productId"]) for w in found["warnings"]] == [("PRICE_CHANGED", None)]
    await rule(shop, [RULES[1]])
    found = await cart(browser)
    assert (found["shippingType"], found["totalShipping"]) == (None, None)
    assert [w["code"] for w in found["warnings"]] == ["SHIPPING_REMOVED"]
    assert found["shippingOptions"] == [STANDARD]
    payload = await change(browser, "RemoveCoupon")
    assert [w["code"] for w in payload["warnings"]] == ["SHIPPING_REMOVED"]
    await rule(shop, RULES)
    found = await cart(browser)
    assert (found["shippingType"], found["warnings"]) == (None, [])


async def test_a_quote_is_of_a_product_or_of_the_cart(shop: Shop, browser: Browser) -> None:
    product = await sell(shop, 1)
    before = len(await shop.db.read(rows))

    async def quote(**values: Any) -> Any:
        values = {"h": shop.hostname, "cep": "01310-100", **values}
        return await shop.browser().send(QUOTE, values)

    for values in ({}, {"productId": product}, {"productId": product, "quantity": 999}):
        assert (await quote(**values)).data["shippingQuote"] == [EXPRESS, STANDARD]
    refused(await quote(productId=product, quantity=0), "BAD_USER_INPUT", "quantity")
    refused(await quote(productId=product, quantity=1000), "BAD_USER_INPUT", "quantity")
    refused(await quote(productId="x"), "BAD_USER_INPUT", "productId")
    await edit(shop, product, published=False)
    refused(await quote(productId=product), "PRODUCT_NOT_FOUND", "productId")
    # A look makes no cart.
    assert len(await shop.db.read(rows)) == before


@pytest.mark.parametrize(
    ("second", "faults"),
    [
        ({"cepFrom": "05999999"}, {"shippingRules[1].type": "taken"}),
        ({"cepFrom": "00000000", "cepTo": "01000000"}, {"shippingRules[1].type": "taken"}),
        ({"cepFrom": "06000001", "cepTo": "06000000"}, {"shippingRules[1].cepTo": "disagrees"}),
        ({"cepFrom": "06000000"}, {}),
        ({"cepFrom": "01000000", "type": "other"}, {}),
    ],
)
async def test_no_cep_has_two_rules_of_one_type(
    shop: Shop, second: dict[str, str], faults: dict[str, str]
) -> None:
    rules = [RULES[0], {**RULES[0], "cepTo": "99999999", **second}]
    changed = await shop.owner.put(f"/api/stores/{shop.store['id']}", {"shippingRules": rules})
    assert (changed.status, changed.faults) == (400 if faults else 200, faults)
    body = {"hostname": "new.example", "name": "New", "shippingRules": rules}
    assert (await shop.owner.post("/api/stores", body)).faults == faults
