"""Lists of products and categories over GraphQL: filters, categories below, pages of categories."""

from __future__ import annotations

from typing import Any

from tests.gateway.graphql.test_products import made
from tests.support.operations import operation
from tests.support.shop import Shop

LIST = """
query ($h: String!, $search: String, $category: String, $below: Boolean, $min: Float, $max: Float,
       $stock: Boolean, $orderBy: ProductOrder, $first: Int, $after: String) {
  products(hostname: $h, search: $search, category: $category, includeChildren: $below,
           minPrice: $min, maxPrice: $max, inStock: $stock, orderBy: $orderBy,
           first: $first, after: $after) {
    nodes { title } totalCount totalIsAtLeast pageInfo { endCursor hasNextPage }
  }
}
"""


async def listed(shop: Shop, **variables: Any) -> Any:
    answer = await shop.browser().send(LIST, {"h": shop.hostname, **variables})
    return answer.data["products"]


async def titles(shop: Shop, **variables: Any) -> list[str]:
    page = await listed(shop, **variables)
    names = [node["title"] for node in page["nodes"]]
    assert (page["totalCount"], page["totalIsAtLeast"]) == (len(names), False)
    return names


async def tree(shop: Shop) -> dict[str, str]:
    """Create Drinks > Coffee > Beans, and Mugs; return their ids."""
    ids: dict[str, str] = {}
    for name, parent in (
        ("Drinks", None),
        ("Coffee", "Drinks"),
        ("Beans", "Coffee"),
        ("Mugs", None),
    ):
        body = {"storeId": shop.store["id"], "name": name, "parentId": ids.get(parent or "")}
        reply = await shop.owner.post("/api/categories", body)
        assert reply.status == 201, reply.text
        ids[name] = reply.body["id"]
    return ids


async def test_a_list_with_the_categories_below(shop: Shop) -> None:
    ids = await tree(shop)
    await made(shop.owner, shop.store, "Arabica", price=30, categories=["beans", "Coffee"])
    await made(shop.owner, shop.store, "Cold brew", price=10, categories=["Drinks"])
    await made(shop.owner, shop.store, "Mug", price=20, categories=["Mugs"])
    assert await titles(shop, category="drinks") == ["Cold brew"]
    assert await titles(shop, category="drinks", below=True) == ["Cold brew", "Arabica"]
    assert await titles(shop, category="coffee", below=True) == ["Arabica"]
    assert await titles(shop, category="none", below=True) == []
    assert await titles(shop, category="drinks", below=True, orderBy="PRICE_DESC", min=1001) == [
        "Arabica"
    ]
    assert await titles(shop, category="drinks", below=True, search="arab") == ["Arabica"]
    path = f"/api/categories/{ids['Coffee']}"
    assert (await shop.owner.put(path, {"parentId": None})).status == 200
    assert await titles(shop, category="drinks", below=True) == ["Cold brew"]


async def test_the_index_follows_each_change_of_a_product(shop: Shop) -> None:
    record = await made(shop.owner, shop.store, "Caneca azul", sku="CAN-1", categories=["Top"])
    body = {"storeId": shop.store["id"], "name": "Top"}
    assert (await shop.owner.post("/api/categories", body)).status == 201
    path = f"/api/products/{record['id']}"
    for change, text, found in (
        ({}, "azul", True), ({"name": "Caneca verde"}, "azul", False), ({}, "verdes", True),
        ({"sku": "COP-2"}, "can-1", False), ({}, "cop", True), ({"published": False}, "cop", False),
        ({"published": True}, "cop", True), ({"storeId": None}, "cop", False),
        ({"storeId": shop.store["id"]}, "cop", True), ({"price": 5}, "cop", True),
    ):  # fmt: skip
        if change:
            assert (await shop.owner.put(path, change)).status == 200
        assert len(await titles(shop, search=text)) == found, (change, text)
        assert len(await titles(shop, search=text, category="top")) == found, (change, text)
    assert (await shop.owner.delete(path)).status == 200
    assert await titles(shop, search="cop") == []


async def test_best_match_is_the_default_of_a_search_alone(shop: Shop) -> None:
    for name in ("Caneca", "Porta caneca"):
        await made(shop.owner, shop.store, name)
    assert await titles(shop, search="caneca") == ["Caneca", "Porta caneca"]
    assert await titles(shop, search="caneca", orderBy="NEWEST") == ["Porta caneca", "Caneca"]
    assert await titles(shop, orderBy="BEST_MATCH") == ["Porta caneca", "Caneca"]
    assert await titles(shop, search="  ") == ["Porta caneca", "Caneca"]
    page = await listed(shop, search="caneca", first=1)
    assert page["pageInfo"]["hasNextPage"] is True
    after = page["pageInfo"]["endCursor"]
    assert (await listed(shop, search="caneca", after=after))["nodes"] == [
        {"title": "Porta caneca"}
    ]
    answer = await shop.browser().send(LIST, {"h": shop.hostname, "after": after})
    assert (answer.code, answer.error["extensions"]["field"]) == ("BAD_USER_INPUT", "after")


async def test_pages_of_categories(shop: Shop) -> None:
    await tree(shop)
    document, variables = operation("categoriesConnection")

    async def pages(**arguments: Any) -> Any:
        sent = {"hostname": shop.hostname, **arguments}
        return (await shop.browser().send(document, sent)).data["categoriesConnection"]

    assert variables == {"hostname": "shop.example", "topLevel": True}
    whole = await pages()
    assert [node["slug"] for node in whole["nodes"]] == ["beans", "coffee", "drinks", "mugs"]
    assert whole["totalCount"] == 4
    assert whole["nodes"][0]["parent"] == {"slug": "coffee"}
    for arguments, expected in (
        ({"topLevel": True}, ["drinks", "mugs"]), ({"parent": "drinks"}, ["coffee"]),
        ({"parent": whole["nodes"][1]["id"]}, ["beans"]), ({"parent": "none"}, []),
        ({"after": whole["pageInfo"]["endCursor"]}, []),
    ):  # fmt: skip
        page = await pages(**arguments)
        assert [node["slug"] for node in page["nodes"]] == expected
    query = """categoriesConnection(hostname: $h, last: 2) {
        nodes { slug } pageInfo { hasPreviousPage } }"""
    found = (await shop.browser().ask(query))["categoriesConnection"]
    assert found["nodes"] == [{"slug": "drinks"}, {"slug": "mugs"}]
    assert found["pageInfo"] == {"hasPreviousPage": True}
    refused = await shop.browser().send(
        document, {"hostname": shop.hostname, "parent": "drinks", "topLevel": True}
    )
    assert (refused.code, refused.error["extensions"]["field"]) == ("BAD_USER_INPUT", "topLevel")
