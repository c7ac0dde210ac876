"""Reviews of a product: written by customers, shown to everybody, moderated by the owner."""

import asyncio
import json
from typing import Any

import pytest

from gateway.graphql.ids import global_id, record_id
from gateway.server.app_keys import DIRECTORY
from outbox.database.transaction import Database
from tests.support.carts import sell
from tests.support.counted import Counted
from tests.support.operations import operation
from tests.support.rest import UNLIMITED, RestApi
from tests.support.shop import Answer, Browser, Shop, open_shop
from tests.support.site import serving

REVIEW = "review { id stars text author createdAt } clientMutationId"
NODES = "nodes { id stars text author createdAt }"
LIST = """
query ($h: String!, $id: ID!, $first: Int, $after: String) {
  reviews(hostname: $h, productId: $id, first: $first, after: $after) {
    edges { cursor node { text } }
    pageInfo { hasNextPage hasPreviousPage startCursor endCursor }
    totalCount
  }
}
"""
PRODUCT = """
query ($h: String!, $id: ID!) {
  product(hostname: $h, id: $id) {
    averageStars reviewsCount reviews(first: 1) { nodes { text } totalCount }
  }
}
"""


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


async def put(shop: Shop, **values: Any) -> None:
    assert (await shop.owner.put(f"/api/stores/{shop.store['id']}", values)).status == 200


async def texts(browser: Browser, product: str) -> list[str]:
    selection = f'reviews(hostname: $h, productId: "{product}") {{ {NODES} }}'
    found = (await browser.ask(selection))["reviews"]["nodes"]
    return [node["text"] for node in found]


async def test_a_customer_reviews_a_product(shop: Shop) -> None:
    product = await sell(shop)
    ana = await customer(shop, "Ana Souza")
    answer = await ana.send(*operation("createReview", productId=product))
    made = answer.data["createReview"]["review"]
    assert made == {
        "id": made["id"], "stars": 5, "text": "Fresh and mild. The whole family likes it.",
        "createdAt": made["createdAt"],
    }  # fmt: skip
    record_id(made["id"], "Review", "id")
    shown = (await shop.browser().send(*operation("reviews", productId=product))).data["reviews"]
    assert shown["nodes"] == [made | {"author": "Ana Souza"}]
    assert shown["totalCount"] == 1
    assert shown["pageInfo"]["hasNextPage"] is False
    [note] = (await shop.owner.get("/api/activities?type=note")).body["data"]
    assert note["description"].startswith("Review of Coffee beans, 5 of 5 stars: Fresh")
    # A review is no event.
    names = [name for name, _ in await shop.api.events()]
    assert names == ["product.created", "contact.created"]


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"stars": 0}, "stars"),
        ({"stars": 6}, "stars"),
        ({"text": ""}, "text"),
        ({"text": "a" * 5_001}, "text"),
        ({"productId": "018f3a5b7c9d1e2f3a4b5c6d"}, "productId"),
        ({"productId": global_id("Store", "0" * 24)}, "productId"),
    ],
)
async def test_faults_name_their_field(shop: Shop, values: dict[str, Any], field: str) -> None:
    product = await sell(shop)
    ana = await customer(shop)
    sent = {"productId": product, "stars": 5, "text": "Good."} | values
    answer = await ana.do("createReview", REVIEW, **sent)
    assert (answer.status, answer.code) == (200, "BAD_USER_INPUT")
    assert answer.error["extensions"]["field"] == field
    assert await texts(shop.browser(), product) == []


async def test_three_people_and_their_reviews(shop: Shop) -> None:
    """A customer, another customer, a customer of another store; and a visitor."""
    other = await open_shop(shop.api, "other.example")
    product, theirs = await sell(shop), await sell(other, name="Tea")
    ana, bia, caio = await customer(shop), await customer(shop, "Bia"), await customer(other)
    assert (await review(ana, product, text="Ana's")).data
    assert (await review(bia, product, text="Bia's")).data
    assert (await review(caio, theirs, text="Caio's")).data
    visitor = await review(shop.browser(), product)
    assert (visitor.code, visitor.body["data"]) == ("UNAUTHENTICATED", {"createReview": None})
    # A customer of another store is a visitor here, and sees and reviews only what is shown.
    caio.hostname = shop.hostname
    assert (await review(caio, product)).code == "UNAUTHENTICATED"
    for browser in (ana, bia, shop.browser()):
        assert await texts(browser, product) == ["Bia's", "Ana's"]
        refused = await browser.send(LIST, {"h": shop.hostname, "id": theirs})
        assert refused.code == "PRODUCT_NOT_FOUND"
        assert refused.error["extensions"]["field"] == "productId"
    refused = await review(ana, theirs)
    assert (refused.code, refused.error["extensions"]["field"]) == (
        "PRODUCT_NOT_FOUND", "productId",
    )  # fmt: skip
    assert await texts(other.browser(), theirs) == ["Caio's"]
    assert (await shop.owner.get("/api/reviews")).body["total"] == 2
    assert (await other.owner.get("/api/reviews")).body["total"] == 1
    await other.close()


async def test_a_text_is_stored_and_returned_raw(shop: Shop) -> None:
    product = await sell(shop)
    text = "<script>alert('é')</script>\r\n\t& \u202e 🙂"
    assert (await review(await customer(shop), product, text=text)).data["createReview"]["review"][
        "text"
    ] == text
    assert await texts(shop.browser(), product) == [text]


async def test_only_published_reviews_are_shown(shop: Shop) -> None:
    await put(shop, reviewModeration=True)
    product = await sell(shop)
    made = (await review(await customer(shop), product, stars=2)).data["createReview"]["review"]
    path = f"/api/reviews/{record_id(made['id'], 'Review', 'id')}"
    node = f'node(id: "{made["id"]}") {{ ... on Review {{ text }} }}'
    nobody = {"averageStars": None, "reviewsCount": 0, "reviews": {"nodes": [], "totalCount": 0}}
    one = {
        "averageStars": 2, "reviewsCount": 1,
        "reviews": {"nodes": [{"text": "Good."}], "totalCount": 1},
    }  # fmt: skip
    for status, shown in (("pending", False), ("published", True), ("rejected", False)):
        if status != "pending":
            assert (await shop.owner.put(path, {"status": status})).status == 200
        browser = shop.browser()
        assert await texts(browser, product) == ["Good."] * shown
        answer = await browser.send(f"{{ {node} }}")
        assert answer.data["node"] == ({"text": "Good."} if shown else None)
        found = await browser.send(PRODUCT, {"h": shop.hostname, "id": product})
        assert found.data["product"] == (one if shown else nobody)


async def test_export_and_erasure_of_a_customer(shop: Shop) -> None:
    product = await sell(shop)
    ana, bia = await customer(shop), await customer(shop, "Bia")
    assert (await review(ana, product, text="Ana's")).data
    assert (await review(bia, product, text="Bia's")).data
    exported = await ana.do("clientExportData", "data")
    [mine] = json.loads(exported.data["clientExportData"]["data"])["reviews"]
    assert mine == {
        "productId": record_id(product, "Product", "id"), "product": "Coffee beans", "stars": 5,
        "text": "Ana's", "status": "published",
        "createdAt": mine["createdAt"],
    }  # fmt: skip
    assert (await ana.do("clientDeleteAccount", "success", password="segredo-1")).data
    found = await bia.send(*operation("reviews", productId=product))
    assert [(node["text"], node["author"]) for node in found.data["reviews"]["nodes"]] == [
        ("Bia's", "Bia"), ("Ana's", None),
    ]  # fmt: skip
    [_, kept] = (await shop.owner.get("/api/reviews")).body["data"]
    assert not {"author", "customerId"} & set(kept)


async def test_the_average_has_two_decimals(shop: Shop) -> None:
    product = await sell(shop)
    ana = await customer(shop)
    for stars in (5, 5, 4):
        assert (await review(ana, product, stars=stars)).data
    found = await ana.send(PRODUCT, {"h": shop.hostname, "id": product})
    assert found.data["product"]["averageStars"] == 4.67
    assert found.data["product"]["reviewsCount"] == 3


async def test_one_review_for_each_product_where_the_store_says_so(shop: Shop) -> None:
    await put(shop, oneReviewPerProduct=True)
    product, other = await sell(shop), await sell(shop, name="Tea")
    ana, bia = await customer(shop), await customer(shop, "Bia")
    answers = await asyncio.gather(*(review(who, product) for who in (ana, bia) * 4))
    made = [answer for answer in answers if "errors" not in answer.body]
    assert len(made) == 2
    for answer in answers:
        if answer not in made:
            assert (answer.code, answer.error["extensions"]["field"]) == (
                "BAD_USER_INPUT", "productId",
            )  # fmt: skip
    assert (await review(ana, other)).data
    assert len(await texts(ana, product)) == 2


async def test_twenty_reviews_a_day(shop: Shop) -> None:
    product = await sell(shop)
    ana = await customer(shop)
    answers = await asyncio.gather(*(review(ana, product) for _ in range(23)))
    refused = [answer for answer in answers if "errors" in answer.body]
    assert {answer.code for answer in refused} == {"RATE_LIMITED"}
    assert len(refused) == 3
    assert all(answer.error["extensions"]["retryAfter"] > 0 for answer in refused)
    found = await shop.browser().send(LIST, {"h": shop.hostname, "id": product, "first": 100})
    assert found.data["reviews"]["totalCount"] == len(found.data["reviews"]["edges"]) == 20


async def test_pages_by_cursor(shop: Shop) -> None:
    product = await sell(shop)
    ana = await customer(shop)
    for number in range(5):
        assert (await review(ana, product, text=f"{number}")).data
    seen: list[str] = []
    after = None
    for size in (2, 2, 1):
        variables = {"h": shop.hostname, "id": product, "first": 2, "after": after}
        found = (await shop.browser().send(LIST, variables)).data["reviews"]
        assert len(found["edges"]) == size
        seen += [edge["node"]["text"] for edge in found["edges"]]
        assert found["pageInfo"]["hasNextPage"] is (len(seen) < 5)
        assert found["pageInfo"]["hasPreviousPage"] is (after is not None)
        after = found["pageInfo"]["endCursor"]
        assert found["totalCount"] == 5
    assert seen == ["4", "3", "2", "1", "0"]
    for bad in ({"first": 101}, {"first": -1}, {"after": "x"}):
        answer = await shop.browser().send(LIST, {"h": shop.hostname, "id": product, **bad})
        assert answer.code == "BAD_USER_INPUT"
        assert answer.error["extensions"]["field"] == next(iter(bad))


async def test_reviews_of_many_products_cost_a_fixed_number_of_reads(db: Database) -> None:
    counted = Counted(db)
    query = """query ($h: String!, $first: Int) { products(hostname: $h, first: $first) { nodes {
        averageStars reviewsCount reviews(first: 2) { nodes { text author } totalCount } } } }"""
    async with serving(counted, UNLIMITED) as site:
        shop = await open_shop(RestApi(site))
        ana = await customer(shop)
        products = [await sell(shop, name=f"Product {number}") for number in range(30)]
        for product in products[:20]:
            assert (await review(ana, product)).data
        costs = []
        for first in (12, 30):
            site.app[DIRECTORY].forget()
            counted.reset()
            answer = await shop.browser().send(query, {"h": shop.hostname, "first": first})
            nodes = answer.data["products"]["nodes"]
            assert [node["reviewsCount"] for node in nodes] == [0] * 10 + [1] * (first - 10)
            assert [len(node["reviews"]["nodes"]) for node in nodes] == [
                node["reviewsCount"] for node in nodes
            ]
            costs.append((counted.units, len(counted.statements)))
        assert costs[0] == costs[1] == (3, 5), (costs, counted.statements)
        await shop.close()
