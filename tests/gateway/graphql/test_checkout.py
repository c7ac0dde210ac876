"""The checkout: what it makes, what it refuses, and what a repeat gets."""

import asyncio
from typing import Any

from gateway.domain.sales import pix
from tests.support.carts import sell
from tests.support.checkouts import (
    BUYER,
    bought,
    check_out,
    put,
    see,
)
from tests.support.shop import Shop


async def orders(shop: Shop) -> list[Any]:
    return list((await shop.owner.get("/api/orders")).body["data"])


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


async def test_concurrent_repeats_make_one_order(shop: Shop) -> None:
    browser = shop.browser()
    await put(browser, await sell(shop, stock=5))
    answers = await asyncio.gather(*(check_out(browser, idempotencyKey="k") for _ in range(6)))
    found = [answer.data["checkout"]["order"] for answer in answers]
    assert all(order == found[0] for order in found)
    assert len(await orders(shop)) == 1
