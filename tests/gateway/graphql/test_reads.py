"""The number of reads of a list or a cart is fixed: the same for few products and for many."""

from typing import Any

import pytest

from gateway.domain.storefront.stores import stores
from gateway.records.values.global_ids import global_id
from gateway.server.app_keys import DIRECTORY
from outbox.database.transaction import Database
from tests.gateway.graphql.test_products import made
from tests.support.carts import cart, change, offer, sell
from tests.support.checkouts import RULES
from tests.support.counted import Counted
from tests.support.shop import Answer, Browser, Shop, opened

LIST = """
query ($h: String!, $first: Int) {
  products(hostname: $h, first: $first) {
    nodes {
      title description images { url }
      categories { name parent { name parent { name parent { name } } } } groups { slug }
      averageStars reviewsCount reviews(first: 3) { nodes { text } totalCount }
    }
    totalCount
  }
}
"""


@pytest.mark.slow
async def test_a_list_costs_a_fixed_number_of_reads(db: Database) -> None:
    counted = Counted(db, of_requests=True)
    async with opened(counted) as shop:
        await _fill(shop)
        costs = []
        for first in (2, 50):
            shop.api.site.app[DIRECTORY].committed({stores.name_of(shop.store["id"])})
            counted.reset()
            answer = await shop.browser().send(LIST, {"h": shop.hostname, "first": first})
            nodes = answer.data["products"]["nodes"]
            assert len(nodes) == first
            assert {
                (group["name"], group["parent"]["parent"]["parent"]["name"])
                for node in nodes
                for group in node["categories"]
            } == {("Low", "Root"), ("Lowest", "Top")}
            assert {
                (node["averageStars"], node["reviewsCount"], len(node["reviews"]["nodes"]))
                for node in nodes
            } == {(5, 1, 1)}
            assert {len(node["description"]) for node in nodes} == {9_000}
            costs.append((counted.units, len(counted.statements)))
        assert costs[0] == costs[1]
        units, statements = costs[0]
        assert (units, statements) == (7, 13), counted.statements


async def _fill(shop: Shop) -> None:
    parent_id = None
    for name in ("Root", "Top", "Middle", "Low", "Lowest"):
        body = {"storeId": shop.store["id"], "name": name, "parentId": parent_id}
        parent_id = (await shop.owner.post("/api/categories", body)).body["id"]
    for number in range(50):
        if number % 20 == 0:
            # A customer may write 20 reviews a day.
            writer = await customer(shop, f"Customer {number}")
        product = await made(
            shop.owner, shop.store, f"Product {number}", categories=["low", "LOWEST"],
            description="x" * 9_000, images=[{"url": "https://x.example/a"}],
        )  # fmt: skip
        assert (await review(writer, global_id("Product", product["id"]))).data


async def test_the_cart_costs_two_reads_besides_the_visitor(db: Database) -> None:
    counted = Counted(db, of_requests=True)
    async with opened(counted, shippingRules=RULES) as shop:
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


REVIEW = "review { id stars text author createdAt } clientMutationId"


async def customer(shop: Shop, name: str = "Ana") -> Browser:
    browser = shop.browser()
    email = f"{name.replace(' ', '.')}@example.com"
    answer = await browser.do(
        "clientSignup", "user { id }", name=name, email=email, password="segredo-1"
    )
    assert answer.data
    return browser


async def review(browser: Browser, product: str, **values: Any) -> Answer:
    sent = {"stars": 5, "text": "Good."} | values
    return await browser.do("createReview", REVIEW, productId=product, **sent)
