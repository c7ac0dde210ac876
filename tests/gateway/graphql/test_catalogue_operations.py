"""The documented operations of the catalogue, as they are written."""

from typing import Any

import pytest

from gateway.graphql.ids import global_id
from tests.gateway.graphql.test_products import made
from tests.support.operations import operation
from tests.support.shop import Shop


@pytest.fixture
async def beans(shop: Shop) -> dict[str, Any]:
    """A product in a category below another one."""
    parent_id = None
    for name in ("Drinks", "Coffee"):
        body = {"storeId": shop.store["id"], "name": name, "parentId": parent_id}
        parent_id = (await shop.owner.post("/api/categories", body)).body["id"]
    beans = await made(
        shop.owner, shop.store, "Coffee beans 1 kg", price=89.9, stock=25, categories=["coffee"]
    )
    return beans | {"categoryId": parent_id}


async def test_products(shop: Shop, beans: dict[str, Any]) -> None:
    await made(shop.owner, shop.store, "Mug")
    answer = await shop.browser().send(*operation("products"))
    page = answer.data["products"]
    assert page["totalCount"] == 1
    assert page["pageInfo"]["hasNextPage"] is False
    assert page["nodes"] == [
        {
            "id": global_id("Product", beans["id"]), "title": "Coffee beans 1 kg",
            "slug": "coffee-beans-1-kg", "price": 8990, "compareAtPrice": None, "available": True,
            "images": [],
        }
    ]  # fmt: skip


async def test_a_search(shop: Shop, beans: dict[str, Any]) -> None:
    answer = await shop.browser().send(*operation("searchProducts"))
    assert answer.data["products"] == {
        "nodes": [{"title": beans["name"], "slug": beans["slug"], "price": 8990}],
        "pageInfo": answer.data["products"]["pageInfo"], "totalCount": 1, "totalIsAtLeast": False,
    }  # fmt: skip


async def test_product(shop: Shop, beans: dict[str, Any]) -> None:
    found = (await shop.browser().send(*operation("product"))).data["product"]
    assert (found["title"], found["stock"]) == ("Coffee beans 1 kg", 25)
    assert [category["slug"] for category in found["categories"]] == ["coffee"]
    assert (found["averageStars"], found["reviewsCount"]) == (None, 0)
    assert found["reviews"] == {"nodes": []}


async def test_categories(shop: Shop, beans: dict[str, Any]) -> None:
    found = (await shop.browser().send(*operation("categories"))).data["categories"]
    assert [(category["name"], category["parent"]) for category in found] == [
        ("Coffee", {"slug": "drinks"}), ("Drinks", None),
    ]  # fmt: skip


async def test_nodes(shop: Shop, beans: dict[str, Any]) -> None:
    product_id = global_id("Product", beans["id"])
    category_id = global_id("Category", beans["categoryId"])
    one = (await shop.browser().send(*operation("node", productId=product_id))).data["node"]
    assert one == {"id": product_id, "title": "Coffee beans 1 kg", "price": 8990}
    ids = {"productId": product_id, "categoryId": category_id}
    assert (await shop.browser().send(*operation("nodes", **ids))).data["nodes"] == [
        {"id": product_id, "title": "Coffee beans 1 kg"}, {"id": category_id, "name": "Coffee"},
    ]  # fmt: skip
