"""Reviews of a product: written by customers, shown to everybody, moderated by the owner."""

import json
from typing import Any

from gateway.graphql.ids import record_id
from tests.support.carts import sell
from tests.support.operations import operation
from tests.support.shop import Answer, Browser, Shop

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
