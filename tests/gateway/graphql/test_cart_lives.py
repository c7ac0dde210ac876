"""The cart of a customer, and what a sign-in, a sign-out and an order make of a cart."""

import json
from typing import Any

import pytest

from gateway.domain.storefront.carts.contents import Contents, current
from gateway.domain.storefront.carts.rows import close
from gateway.domain.storefront.stores import stores
from gateway.domain.storefront.visitors.shopper import Shopper
from gateway.records.errors import Refusal
from outbox.database.transaction import Tx
from tests.gateway.graphql.test_accounts import ANA, log_in, sign_up
from tests.gateway.graphql.test_carts import rows
from tests.support.carts import cart, change, offer, sell
from tests.support.shop import Browser, Shop

RULE = {
    "type": "express", "name": "Express", "price": 25, "deadline": 2,
    "cepFrom": "01000000", "cepTo": "05999999",
}  # fmt: skip


def held(contents: Any) -> dict[str, int]:
    """Return the quantities of a cart by product."""
    return {line["productId"]: line["quantity"] for line in contents["products"]}


def token_of(browser: Browser) -> str:
    [token] = [c.value for c in browser.http.cookie_jar if c.key == "cartSession"]
    return token


async def test_a_merge_takes_the_visitors_coupon_and_shipping(shop: Shop) -> None:
    await offer(shop, "MINE", discountValue=1)
    await offer(shop, "GUEST", discountValue=2)
    await shop.owner.put(f"/api/stores/{shop.store['id']}", {"shippingRules": [RULE]})
    browser, product = shop.browser(), await sell(shop)
    assert (await sign_up(browser)).data
    await change(browser, "AddProduct", productId=product)
    await change(browser, "ApplyCoupon", code="MINE")
    guest = shop.browser()
    await change(guest, "AddProduct", productId=product)
    assert (await log_in(guest)).data
    assert (await cart(guest))["coupon"]["code"] == "MINE"
    guest = shop.browser()
    await change(guest, "ApplyCoupon", code="GUEST")
    await change(guest, "SetShipping", cep="01310100", type="express")
    assert (await log_in(guest)).data
    contents = await cart(guest)
    assert (contents["coupon"]["code"], contents["shippingType"]) == ("GUEST", "express")


async def test_an_ordered_cart_gives_way_to_a_new_one_at_once(shop: Shop) -> None:
    browser, product = shop.browser(), await sell(shop)
    await change(browser, "AddProduct", productId=product)
    before = await cart(browser)
    store, zone = await shop.db.read(stores.by_hostname, shop.hostname)
    visitor = Shopper(store=store, zone=zone, cart_token=token_of(browser))

    async def order(tx: Tx) -> Contents:
        orders = await current(tx, visitor, lock=True)
        await close(tx, orders.cart, "1" * 24)
        return orders

    seen = await shop.db.read(current, visitor)
    ordered = await shop.db.write(order)
    with pytest.raises(Refusal) as refused:
        await shop.db.write(close, seen.cart, "2" * 24)
    assert refused.value.code == "cart_empty"
    assert (ordered.total, ordered.items[0].line.quantity) == (8990, 1)
    # Also for a client that goes on with the token of the ordered cart.
    after = await cart(browser)
    assert after["id"] != before["id"]
    assert (await cart(browser), held(after)) == (after, {})
    await change(browser, "AddProduct", productId=product, quantity=2)
    filled = await cart(browser)
    assert (filled["id"], held(filled)) == (after["id"], {product: 2})
    orders = {row["state"]: row["order_id"] for row in await shop.db.read(rows)}
    assert orders == {"ordered": "1" * 24, "active": None}


async def test_an_export_has_the_cart_and_an_erasure_deletes_it(shop: Shop) -> None:
    browser = shop.browser()
    assert (await sign_up(browser)).data
    await change(browser, "AddProduct", productId=await sell(shop, name="Tea"), quantity=2)
    exported = await browser.do("clientExportData", "data")
    data = json.loads(exported.data["clientExportData"]["data"])
    assert data["cart"] == [{"title": "Tea", "quantity": 2}]
    assert (await browser.do("clientDeleteAccount", "success", password=ANA["password"])).data
    assert await shop.db.read(rows) == []
