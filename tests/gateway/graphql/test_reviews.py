"""Reviews of a product: written by customers, shown to everybody, moderated by the owner."""

import json
from typing import Any

import pytest

from gateway.graphql.ids import global_id, record_id
from tests.support.carts import sell
from tests.support.operations import operation
from tests.support.shop import Answer, Browser, Shop

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
    nodes = (await browser.ask(selection))["reviews"]["nodes"]
    return [node["text"] for node in nodes]


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


async def test_only_published_reviews_are_shown(shop: Shop) -> None:
    await put(shop, reviewModeration=True)
    product = await sell(shop)
    written = (await review(await customer(shop), product, stars=2)).data["createReview"]["review"]
    path = f"/api/reviews/{record_id(written['id'], 'Review', 'id')}"
    node = f'node(id: "{written["id"]}") {{ ... on Review {{ text }} }}'
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
    answer = await bia.send(*operation("reviews", productId=product))
    assert [(node["text"], node["author"]) for node in answer.data["reviews"]["nodes"]] == [
        ("Bia's", "Bia"), ("Ana's", None),
    ]  # fmt: skip
    [_, anonymous] = (await shop.owner.get("/api/reviews")).body["data"]
    assert not {"author", "customerId"} & set(anonymous)


async def test_pages_by_cursor(shop: Shop) -> None:
    product = await sell(shop)
    ana = await customer(shop)
    for number in range(5):
        assert (await review(ana, product, text=f"{number}")).data
    seen: list[str] = []
    after = None
    for size in (2, 2, 1):
        variables = {"h": shop.hostname, "id": product, "first": 2, "after": after}
        page = (await shop.browser().send(LIST, variables)).data["reviews"]
        assert len(page["edges"]) == size
        seen += [edge["node"]["text"] for edge in page["edges"]]
        assert page["pageInfo"]["hasNextPage"] is (len(seen) < 5)
        assert page["pageInfo"]["hasPreviousPage"] is (after is not None)
        after = page["pageInfo"]["endCursor"]
        assert page["totalCount"] == 5
    assert seen == ["4", "3", "2", "1", "0"]
    for bad in ({"first": 101}, {"first": -1}, {"after": "x"}):
        answer = await shop.browser().send(LIST, {"h": shop.hostname, "id": product, **bad})
        assert answer.code == "BAD_USER_INPUT"
        assert answer.error["extensions"]["field"] == next(iter(bad))
