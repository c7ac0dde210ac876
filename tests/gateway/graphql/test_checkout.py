"""The checkout: what it makes, what it refuses, and what a repeat gets."""

import asyncio
from typing import Any

import pytest

from gateway.domain.sales import pix
from gateway.graphql.ids import record_id
from outbox.database.transaction import Tx
from tests.support.carts import EMPTY, cart, change, do, edit, sell
from tests.support.checkouts import (
    ADDRESS,
    BUYER,
    RULES,
    bought,
    check_out,
    coupon,
    ordered,
    put,
    see,
)
from tests.support.shop import Shop


async def orders(shop: Shop) -> list[Any]:
    return list((await shop.owner.get("/api/orders")).body["data"])


async def stock(shop: Shop, product: str) -> int:
    path = f"/api/products/{record_id(product, 'Product', 'id')}"
    return int((await shop.owner.get(path)).body["stock"])


async def uses(tx: Tx) -> list[tuple[str, str]]:
    """Return (order id, state) of every use of a coupon."""
    return [(row["id"], row["state"]) for row in await tx.all("select * from coupon_uses")]


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


async def test_the_cart_is_closed_and_the_visitor_gets_a_new_one(shop: Shop) -> None:
    browser = shop.browser()
    await put(browser, await sell(shop))
    before = (await change(browser, "Clear"))["shoppingCart"]["id"]
    await put(browser, await sell(shop))
    answer = await check_out(browser)
    token = answer.headers["X-Cart-Session"]
    assert answer.cookies["cartSession"] == (
        f"cartSession={token}; HttpOnly; Max-Age=2592000; Path=/; SameSite=Lax"
    )
    found = await cart(browser)
    assert found.pop("id") != before
    assert found == EMPTY
    assert (await check_out(browser)).code == "CART_EMPTY"


async def test_an_empty_cart_is_refused(shop: Shop) -> None:
    browser = shop.browser()
    assert (await check_out(browser)).code == "CART_EMPTY"
    await put(browser, await sell(shop))
    await change(browser, "Clear")
    assert (await check_out(browser)).code == "CART_EMPTY"
    assert await orders(shop) == []


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


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        ("529.982.247-25", "52998224725"), ("52998224725", "52998224725"),
        ("11.222.333/0001-81", "11222333000181"), ("12abc34501de35", "12ABC34501DE35"),
    ],
)  # fmt: skip
async def test_a_document_is_kept_without_its_mask(shop: Shop, sent: str, kept: str) -> None:
    await bought(shop, document=sent)
    [order] = await orders(shop)
    assert order["document"] == kept


async def test_text_is_trimmed_and_empty_fields_are_absent(shop: Shop) -> None:
    await bought(shop, email=" maria@example.com ", phone="", notes=" ", document="")
    [order] = await orders(shop)
    assert order["email"] == "maria@example.com"
    assert not {"phone", "notes", "document"} & order.keys()


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


async def test_later_changes_leave_an_order_as_it_is(shop: Shop) -> None:
    browser = shop.browser()
    coffee = await sell(shop, 12)
    await put(browser, coffee, 2)
    order = await ordered(browser)
    await edit(shop, coffee, price=9900, name="Another")
    kept = await see(browser, order["number"], order["accessToken"])
    assert (kept["total"], kept["items"][0]["title"]) == (2400, "Coffee beans")


async def test_a_coupon_is_used_and_given_back(shop: Shop) -> None:
    used = await coupon(shop, discountValue=15.5, maxUses=1)
    browser = shop.browser()
    await put(browser, await sell(shop, 100, stock=9))
    await change(browser, "ApplyCoupon", code="welcome")
    order = await ordered(browser)
    assert order["coupon"] == {
        "code": "WELCOME", "discountPercentage": None, "discountValue": 1550,
    }  # fmt: skip
    assert (order["totalPrice"], order["totalDiscount"], order["total"]) == (10_000, 1550, 8450)
    [kept] = await orders(shop)
    assert kept["coupon"] == {"code": "WELCOME", "discountValue": 15.5}
    assert (await shop.owner.get(f"/api/coupons/{used}")).body["uses"] == 1
    other = shop.browser()
    await put(other, await sell(shop, 100))
    assert (await do(other, "ApplyCoupon", code="WELCOME")).code == "COUPON_USAGE_LIMIT"
    await browser.do(
        "orderCancel", "order { status }", number=order["number"],
        accessToken=order["accessToken"],
    )  # fmt: skip
    assert (await shop.owner.get(f"/api/coupons/{used}")).body["uses"] == 0
    await change(other, "ApplyCoupon", code="WELCOME")
    paid = await ordered(other, email="ana@example.com")
    kept = (await orders(shop))[0]
    await shop.owner.post(f"/api/invoices/{kept['invoiceId']}/pay", {})
    assert await shop.db.read(uses) == [(kept["id"], "redeemed")]
    refused = await shop.owner.post(f"/api/orders/{kept['id']}/cancel", {})
    assert (refused.status, paid["number"]) == (409, "ORD-000002")
    assert (await shop.owner.get(f"/api/coupons/{used}")).body["uses"] == 1


async def test_a_percentage_is_shown_in_percent(shop: Shop) -> None:
    await coupon(shop, discountPercentage=12.5)
    browser = shop.browser()
    await put(browser, await sell(shop, 100))
    await change(browser, "ApplyCoupon", code="WELCOME")
    order = await ordered(browser)
    assert order["coupon"]["discountPercentage"] == 12.5
    assert order["totalDiscount"] == 1250
    [kept] = await orders(shop)
    assert kept["coupon"] == {"code": "WELCOME", "discountPercentage": 12.5}


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


async def test_a_coupon_once_per_customer_counts_emails_of_visitors(shop: Shop) -> None:
    await coupon(shop, perCustomer=1)
    product = await sell(shop, 100, stock=9)
    used = "COUPON_USAGE_LIMIT"
    for email, code in (
        ("jos\u00e9@example.com", None),
        ("JOS\u00c9@example.com", used),
        ("jose\u0301@example.com", used),
    ):
        browser = shop.browser()
        await put(browser, product)
        await change(browser, "ApplyCoupon", code="WELCOME")
        answer = await check_out(browser, email=email)
        assert code is None or answer.code == code
    assert len(await orders(shop)) == 1
    assert await stock(shop, product) == 8


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


async def test_an_address_where_the_same_option_costs_the_same(shop: Shop) -> None:
    browser = await shipped(shop, "economy")
    far = {**ADDRESS, "cep": "69005-010", "city": "Manaus", "state": "AM"}
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


async def test_an_order_that_costs_nothing_is_paid_at_once(shop: Shop) -> None:
    used = await coupon(shop, discountPercentage=100)
    browser = shop.browser()
    product = await sell(shop, 100, stock=9)
    await put(browser, product, 2)
    await change(browser, "ApplyCoupon", code="WELCOME")
    before = len(await shop.api.events())
    order = await ordered(browser)
    assert (order["status"], order["total"]) == ("paid", 0)
    assert order["payment"] == {"method": "pix", "pixCode": None}
    assert order["paidAt"] == order["createdAt"]
    names = [name for name, _ in (await shop.api.events())[before:]]
    assert names == [
        "contact.created", "deal.created", "invoice.created", "invoice.paid", "deal.updated",
    ]  # fmt: skip
    [kept] = await orders(shop)
    assert (kept["status"], kept["paidAt"]) == ("paid", order["paidAt"])
    invoice = (await shop.owner.get(f"/api/invoices/{kept['invoiceId']}")).body
    assert (invoice["status"], invoice["total"]) == ("paid", 0)
    assert (await shop.owner.get(f"/api/deals/{kept['dealId']}")).body["status"] == "won"
    assert await shop.db.read(uses) == [(kept["id"], "redeemed")]
    # What is paid neither expires nor is given back.
    refused = await shop.owner.post(f"/api/orders/{kept['id']}/cancel", {})
    assert (refused.status, await stock(shop, product)) == (409, 7)
    assert (await shop.owner.get(f"/api/coupons/{used}")).body["uses"] == 1
    assert await see(browser, order["number"], order["accessToken"]) == {
        **order, "accessToken": None,
    }  # fmt: skip


async def test_the_pix_code_of_a_pending_order(shop: Shop) -> None:
    key = {"pixKey": "pix@shop.example"}
    assert (await shop.owner.put(f"/api/stores/{shop.store['id']}", key)).status == 200
    browser, order = await bought(shop)
    code = order["payment"]["pixCode"]
    assert code == (
        "00020126380014br.gov.bcb.pix0116pix@shop.example520400005303986540530.005802BR"
        "5911Coffee Shop6006BRASIL62130509ORD000001" + code[-8:]
    )
    assert code[-8:-4] == "6304"
    assert int(code[-4:], 16) == pix.crc16(code[:-4].encode())
    [kept] = await orders(shop)
    await shop.owner.post(f"/api/invoices/{kept['invoiceId']}/pay", {})
    paid = await see(browser, order["number"], order["accessToken"])
    assert (paid["status"], paid["payment"]) == ("paid", {"method": "pix", "pixCode": None})
    assert paid["paidAt"] is not None
    _, other = await bought(shop, paymentMethod="card")
    assert other["payment"] == {"method": "card", "pixCode": None}


async def test_a_known_contact_is_completed(shop: Shop) -> None:
    body = {"name": "Maria", "email": "MARIA@example.com"}
    known = (await shop.owner.post("/api/contacts", body)).body["id"]
    before = len(await shop.api.events())
    await bought(shop, phone="(11) 98888-7777")
    await bought(shop, phone="(11) 98888-7777")
    names = [name for name, _ in (await shop.api.events())[before:]]
    assert names.count("contact.updated") == 1
    assert "contact.created" not in names
    assert {order["contactId"] for order in await orders(shop)} == {known}


async def test_a_repeat_gets_the_same_order(shop: Shop) -> None:
    browser = shop.browser()
    await put(browser, await sell(shop, stock=5))
    first = await check_out(browser, idempotencyKey="k1")
    events = await shop.api.events()
    again = await check_out(browser, idempotencyKey="k1", clientMutationId="other")
    assert again.data["checkout"] == first.data["checkout"]
    assert "cartSession" not in again.cookies
    assert await shop.api.events() == events
    assert len(await orders(shop)) == 1


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


async def test_a_key_is_the_visitors_own(shop: Shop) -> None:
    _, first = await bought(shop, idempotencyKey="k1")
    _, second = await bought(shop, idempotencyKey="k1")
    assert first["number"] != second["number"]
    assert first["accessToken"] != second["accessToken"]
    stranger = shop.browser()
    assert (await check_out(stranger, idempotencyKey="k1")).code == "CART_EMPTY"


async def test_a_key_can_be_used_again_after_a_day(shop: Shop) -> None:
    browser = shop.browser()
    product = await sell(shop, stock=5)
    await put(browser, product)
    await ordered(browser, idempotencyKey="k1")

    async def age(tx: Tx) -> None:
        await tx.run("update checkouts set created_at = created_at - $1", 86_400_000_000)

    await shop.db.write(age)
    await put(browser, product)
    order = await ordered(browser, idempotencyKey="k1", name="Another")
    assert order["number"] == "ORD-000002"
    again = await ordered(browser, idempotencyKey="k1", name="Another")
    assert again["accessToken"] == order["accessToken"]


async def test_concurrent_repeats_make_one_order(shop: Shop) -> None:
    browser = shop.browser()
    await put(browser, await sell(shop, stock=5))
    answers = await asyncio.gather(*(check_out(browser, idempotencyKey="k") for _ in range(6)))
    found = [answer.data["checkout"]["order"] for answer in answers]
    assert all(order == found[0] for order in found)
    assert len(await orders(shop)) == 1
