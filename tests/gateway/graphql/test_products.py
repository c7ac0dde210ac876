"""Products of a store: lists in every order, single products, nodes, and who sees what."""

import asyncio
from typing import Any

import pytest

from tests.support.rest import Person
from tests.support.shop import Shop

LIST = """
query ($h: String!, $first: Int, $after: String, $last: Int, $before: String, $search: String,
       $category: String, $orderBy: ProductOrder) {
  products(hostname: $h, first: $first, after: $after, last: $last, before: $before,
           search: $search, category: $category, orderBy: $orderBy) {
    edges { cursor node { title } }
    nodes { title }
    pageInfo { hasNextPage hasPreviousPage startCursor endCursor }
    totalCount
  }
}
"""


async def made(who: Person, store: Any, name: str, **values: Any) -> dict[str, Any]:
    body = {"name": name, "price": 10, "storeId": store["id"] if store else None, **values}
    reply = await who.post("/api/products", body)
    assert reply.status == 201, reply.text
    record: dict[str, Any] = reply.body
    return record


async def listed(shop: Shop, **variables: Any) -> Any:
    answer = await shop.browser().send(LIST, {"h": shop.hostname, **variables})
    return answer.data["products"]


async def titles(shop: Shop, **variables: Any) -> list[str]:
    return [node["title"] for node in (await listed(shop, **variables))["nodes"]]


async def test_concurrent_creates_get_slugs_of_their_own(shop: Shop) -> None:
    products = await asyncio.gather(*(made(shop.owner, shop.store, "Café") for _ in range(14)))
    slugs = {product["slug"] for product in products}
    assert len(slugs) == 14
    assert {"cafe", *(f"cafe-{n}" for n in range(2, 10))} <= slugs
    bodies = [{"name": "X", "price": 1, "slug": "one", "storeId": shop.store["id"]}] * 6
    replies = await asyncio.gather(*(shop.owner.post("/api/products", body) for body in bodies))
    assert sorted(reply.status for reply in replies) == [201] + [409] * 5


@pytest.mark.slow
async def test_very_long_texts_together_are_refused(shop: Shop) -> None:
    for _ in range(18):
        await made(shop.owner, shop.store, "A", description="é" * 65_000, images=[
            {"url": "https://x.example/" + "a" * 2_000, "alt": "é" * 500} for _ in range(50)
        ])  # fmt: skip
    query = "query ($h: String!) { products(hostname: $h) { nodes { description } } }"
    answer = await shop.browser().send(query, {"h": shop.hostname})
    assert {error["extensions"]["code"] for error in answer.body["errors"]} == {"QUERY_TOO_COMPLEX"}
    assert len(await titles(shop)) == 18
