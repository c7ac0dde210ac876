"""Products of a store: lists in every order, single products, nodes, and who sees what."""

import asyncio
from typing import Any

import pytest

from tests.support.rest import Person
from tests.support.shop import Shop
from tests.support.waiting import next_millisecond

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


@pytest.mark.slow
async def test_every_order_in_both_directions(shop: Shop) -> None:
    names = ["Água", "bolo", "Café", "café", "Doce", "Erva", "Fubá"]
    prices = [5, 3, 3, 8, 1, 5, 2]
    for name, price in zip(names, prices, strict=True):
        await made(shop.owner, shop.store, name, price=price)
        # Products that are alike come in the order of their ids, which begin with milliseconds.
        await next_millisecond()
    for order in ("NEWEST", "TITLE", "PRICE_ASC", "PRICE_DESC"):
        whole = await listed(shop, orderBy=order, first=100)
        expected = [edge["node"]["title"] for edge in whole["edges"]]
        assert whole["totalCount"] == 7
        assert whole["pageInfo"] == {
            "hasNextPage": False, "hasPreviousPage": False,
            "startCursor": whole["edges"][0]["cursor"], "endCursor": whole["edges"][-1]["cursor"],
        }  # fmt: skip
        for size in (1, 2, 3, 7):
            for arguments in (("first", "after", "endCursor", "hasNextPage"),
                              ("last", "before", "startCursor", "hasPreviousPage")):  # fmt: skip
                way, position, cursor, more = arguments
                seen: list[str] = []
                place = None
                for _ in range(8):
                    page = await listed(shop, orderBy=order, **{way: size, position: place})
                    part = [node["title"] for node in page["nodes"]]
                    seen = seen + part if way == "first" else part + seen
                    place = page["pageInfo"][cursor]
                    if not page["pageInfo"][more]:
                        break
                assert seen == expected, (order, size, way)
    assert await titles(shop) == names[::-1]
    assert await titles(shop, orderBy="TITLE") == names
    assert await titles(shop, orderBy="PRICE_ASC") == [
        "Doce", "Fubá", "bolo", "Café", "Água", "Erva", "café",
    ]  # fmt: skip
    assert await titles(shop, orderBy="PRICE_DESC") == [
        "café", "Erva", "Água", "Café", "bolo", "Fubá", "Doce",
    ]  # fmt: skip


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
