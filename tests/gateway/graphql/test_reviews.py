"""Reviews of a product: written by customers, shown to everybody, moderated by the owner."""

from typing import Any

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
