"""The checkout: what it makes, what it refuses, and what a repeat gets."""

from typing import Any

import pytest

from gateway.graphql.ids import record_id
from tests.support.carts import cart, change, edit, sell
from tests.support.checkouts import (
    ADDRESS,
    RULES,
    check_out,
    coupon,
    ordered,
    put,
)
from tests.support.shop import Shop


async def orders(shop: Shop) -> list[Any]:
    return list((await shop.owner.get("/api/orders")).body["data"])


async def stock(shop: Shop, product: str) -> int:
    path = f"/api/products/{record_id(product, 'Product', 'id')}"
    return int((await shop.owner.get(path)).body["stock"])


async def test_a_checkout_makes_an_order_a_contact_an_invoice_and_a_deal(shop: Shop) -> None:
    browser = shop.browser()
    coffee = await sell(shop, 89.9, stock=5)
    tea = await sell(shop, 0.01, name="Tea")
    await put(browser, coffee, 2)
    await put(browser, tea)
    before = len(await shop.api.events())
    answer = await check_out(browser, phone="(11) 98888-7777", notes="Ring twice.")
    payload = answer.data["checkout"]
    assert payload["warnings"] == []
    order = payload["order"]
    assert order["number"] == "ORD-000001"
    assert order["status"] == "pending"
    assert order["items"] == [
        {"productId": coffee, "title": "Coffee beans", "price": 8990, "quantity": 2},
        {"productId": tea, "title": "Tea", "price": 1, "quantity": 1},
    ]
    amounts = [order[f"total{name}"] for name in ("Price", "Discount", "Shipping", "")]
    assert amounts == [17_981, 0, 0, 17_981]
    assert order["payment"] == payload["payment"] == {"method": "pix", "pixCode": None}
    assert len(order["accessToken"]) == 43

    names = [name for name, _ in (await shop.api.events())[before:]]
    assert names == ["contact.created", "deal.created", "invoice.created"]
    [kept] = await orders(shop)
    assert kept["id"] == record_id(order["id"], "Order", "id")
    assert (kept["total"], kept["phone"]) == (179.81, "(11) 98888-7777")
    invoice = (await shop.owner.get(f"/api/invoices/{kept['invoiceId']}")).body
    assert (invoice["total"], invoice["items"]) == (179.81, kept["items"])
    assert invoice["dueDate"] == order["expiresAt"]
    contact = (await shop.owner.get(f"/api/contacts/{kept['contactId']}")).body
    assert (contact["email"], contact["source"]) == ("maria@example.com", "storefront")
    deal = (await shop.owner.get(f"/api/deals/{kept['dealId']}")).body
    assert (deal["stage"], deal["value"]) == ("checkout", 179.81)
    assert await stock(shop, coffee) == 3


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"email": "maria"}, "email"),
        ({"name": " "}, "name"),
        ({"phone": "abc"}, "phone"),
        ({"document": "123.456.789-00"}, "document"),
        ({"document": "111.111.111-11"}, "document"),
        ({"paymentMethod": "gold"}, "paymentMethod"),
        ({"notes": "x" * 5_001}, "notes"),
        ({"idempotencyKey": "x" * 256}, "idempotencyKey"),
        ({"address": {**ADDRESS, "cep": "123"}}, "address.cep"),
        ({"address": {**ADDRESS, "state": "XX"}}, "address.state"),
        ({"address": {**ADDRESS, "street": " "}}, "address.street"),
    ],
)
async def test_a_wrong_value_is_named(shop: Shop, values: dict[str, Any], field: str) -> None:
    browser = shop.browser()
    await put(browser, await sell(shop))
    answer = await check_out(browser, **values)
    assert (answer.code, answer.error["extensions"]["field"]) == ("BAD_USER_INPUT", field)
    assert await orders(shop) == []


async def test_all_wrong_values_are_named_at_once(shop: Shop) -> None:
    browser = shop.browser()
    answer = await check_out(browser, email="x", phone="y", address={**ADDRESS, "cep": "z"})
    fields = [fault["field"] for fault in answer.error["extensions"]["fields"]]
    assert fields == ["email", "phone", "address.cep"]


async def test_too_little_stock_names_the_product(shop: Shop) -> None:
    browser = shop.browser()
    coffee, tea = await sell(shop, stock=5), await sell(shop, name="Green tea", stock=3)
    await put(browser, coffee, 2)
    await put(browser, tea, 3)
    await edit(shop, tea, stock=2)
    answer = await check_out(browser)
    assert answer.code == "INSUFFICIENT_STOCK"
    assert "only 2 of 'Green tea' left" in answer.error["message"]
    assert (await orders(shop), await stock(shop, coffee)) == ([], 5)
    line = (await cart(browser))["products"][1]
    assert line["available"] is False
    await change(browser, "UpdateProduct", id=line["id"], quantity=2)
    assert (await ordered(browser))["items"][1]["quantity"] == 2


async def test_a_product_that_is_no_longer_sold(shop: Shop) -> None:
    browser = shop.browser()
    coffee, tea = await sell(shop, stock=5), await sell(shop, name="Tea")
    await put(browser, coffee)
    await put(browser, tea)
    await edit(shop, tea, published=False)
    assert (await check_out(browser)).code == "PRODUCT_NOT_FOUND"
    assert (await orders(shop), await stock(shop, coffee)) == ([], 5)
    # The refusal has settled the cart, so what the buyer sees now is what the next one orders.
    order = await ordered(browser)
    assert [item["productId"] for item in order["items"]] == [coffee]


async def test_a_coupon_that_ended_meanwhile(shop: Shop) -> None:
    found = await coupon(shop)
    browser = shop.browser()
    await put(browser, await sell(shop, 100))
    await change(browser, "ApplyCoupon", code="WELCOME")
    past = {"endsAt": "2020-01-01T00:00:00Z"}
    assert (await shop.owner.put(f"/api/coupons/{found}", past)).status == 200
    answer = await check_out(browser)
    assert (answer.code, answer.error["extensions"]["field"]) == ("COUPON_EXPIRED", "coupon")
    assert await orders(shop) == []
    assert (await ordered(browser))["total"] == 10_000


async def test_a_coupon_that_was_deleted_meanwhile(shop: Shop) -> None:
    found = await coupon(shop)
    browser = shop.browser()
    await put(browser, await sell(shop, 100))
    await change(browser, "ApplyCoupon", code="WELCOME")
    assert (await shop.owner.delete(f"/api/coupons/{found}")).status == 200
    assert (await check_out(browser)).code == "COUPON_NOT_FOUND"
    assert (await ordered(browser))["coupon"] is None


async def shipped(shop: Shop, wanted: str = "express") -> Any:
    """A visitor whose cart ships to a CEP of São Paulo."""
    await shop.owner.put(f"/api/stores/{shop.store['id']}", {"shippingRules": RULES})
    browser = shop.browser()
    await put(browser, await sell(shop, 100))
    await change(browser, "SetShipping", cep="01310200", type=wanted)
    return browser


async def test_shipping_needs_an_address(shop: Shop) -> None:
    browser = await shipped(shop)
    answer = await check_out(browser)
    assert (answer.code, answer.error["extensions"]["field"]) == ("BAD_USER_INPUT", "address")
    order = await ordered(browser, address=ADDRESS)
    assert order["shipping"] == {
        "type": "express", "name": "Express", "price": 2550, "deadline": 2,
    }  # fmt: skip
    assert (order["totalShipping"], order["total"]) == (2550, 12_550)
    assert order["address"] == {
        **ADDRESS, "cep": "01310200", "name": None, "complement": None, "district": None,
    }  # fmt: skip
    [kept] = await orders(shop)
    assert (kept["shipping"], kept["shippingOption"]["price"]) == (25.5, 25.5)
    assert kept["address"]["city"] == "São Paulo"


async def test_an_address_outside_of_the_chosen_option(shop: Shop) -> None:
    browser = await shipped(shop)
    far = {**ADDRESS, "cep": "69005-010", "city": "Manaus", "state": "AM"}
    answer = await check_out(browser, address=far)
    assert (answer.code, answer.error["extensions"]["field"]) == (
        "SHIPPING_UNAVAILABLE", "address.cep",
    )  # fmt: skip
    await change(browser, "SetShipping", cep="69005-010", type="economy")
    assert (await ordered(browser, address=far))["totalShipping"] == 1000


async def test_a_shipping_option_that_the_store_ended(shop: Shop) -> None:
    browser = await shipped(shop)
    await shop.owner.put(f"/api/stores/{shop.store['id']}", {"shippingRules": RULES[1:]})
    answer = await check_out(browser, address=ADDRESS)
    assert (answer.code, answer.error["extensions"]["field"]) == (
        "SHIPPING_UNAVAILABLE", "shipping",
    )  # fmt: skip
    await change(browser, "SetShipping", cep="01310200", type="economy")
    order = await ordered(browser, address=ADDRESS)
    assert (order["shipping"]["type"], order["totalShipping"]) == ("economy", 1000)


async def test_the_same_key_for_another_order_is_refused(shop: Shop) -> None:
    browser = shop.browser()
    await put(browser, await sell(shop, stock=5))
    await ordered(browser, idempotencyKey="k1")
    await put(browser, await sell(shop, stock=5))
    answer = await check_out(browser, idempotencyKey="k1", name="Another")
    assert (answer.code, answer.error["extensions"]["field"]) == (
        "BAD_USER_INPUT", "idempotencyKey",
    )  # fmt: skip
    assert (await ordered(browser, idempotencyKey="k2", name="Another"))["number"] == "ORD-000002"
