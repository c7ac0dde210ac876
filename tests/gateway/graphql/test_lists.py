"""Lists of products and categories over GraphQL: filters, categories below, pages of categories."""

from __future__ import annotations

from typing import Any

from gateway.domain.storefront.catalogue import categories
from gateway.graphql import costs
from tests.gateway.graphql.test_products import made
from tests.support.shop import Shop
from tests.support.tables import in_turn

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


@in_turn(
    ("bound", "found"),
    [
        ("minPrice: 1e400", 0), ("minPrice: -1e400", 1), ("maxPrice: 1e400", 1),
        ("maxPrice: -1e400", 0), (f"maxPrice: {'9' * 400}", 1), ("minPrice: 1e300", 0),
    ],
)  # fmt: skip
async def test_a_bound_beyond_all_prices_is_a_bound(shop: Shop, bound: str, found: int) -> None:
    """A literal is a text of digits, which becomes infinite; a variable cannot be."""
    if not await titles(shop):
        await made(shop.owner, shop.store, "Caneca", price=5)
    query = f"query ($h: String!) {{ products(hostname: $h, {bound}) {{ totalCount }} }}"
    answer = await shop.browser().send(query, {"h": shop.hostname})
    assert answer.data == {"products": {"totalCount": found}}


async def test_the_whole_list_of_categories_costs_what_it_may_hold(shop: Shop) -> None:
    assert costs.WHOLE == {"categories": categories.MOST}

    def document(count: int) -> str:
        each = " ".join(f"c{n}: categories(hostname: $h) {{ id }}" for n in range(count))
        return f"query ($h: String!) {{ {each} }}"

    most = costs.COST // categories.MOST
    browser = shop.browser()
    assert len((await browser.send(document(most), {"h": shop.hostname})).data) == most
    fields = " ".join(f"c{n}: categories(hostname: $h) {{ id }}" for n in range(most + 1))
    in_fragment = f"query ($h: String!) {{ ...F }} fragment F on Query {{ ... {{ {fields} }} }}"
    for text in (document(most + 1), document(30), in_fragment):
        assert (await browser.send(text, {"h": shop.hostname})).code == "QUERY_TOO_COMPLEX"
    # The categories of a product are no such list.
    query = "products(hostname: $h, first: 100) { nodes { categories { id name slug } } }"
    assert await browser.ask(query) == {"products": {"nodes": []}}
