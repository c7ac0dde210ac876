"""Products of a store: lists in every order, single products, nodes, and who sees what."""

import asyncio
from typing import Any

import pytest

from gateway.graphql.ids import global_id, parse
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


async def test_a_product_as_visitors_see_it(shop: Shop) -> None:
    category = (
        await shop.owner.post(
            "/api/categories", {"storeId": shop.store["id"], "name": "Cafés especiais"}
        )
    ).body
    record = await made(
        shop.owner, shop.store, "Café em grãos 1 kg", price=89.9, compareAtPrice=109.9,
        sku="COF-1", stock=3, description="Whole beans.", categories=["CAFES ESPECIAIS", "Other"],
        images=[{"url": "https://x.example/a.jpg", "alt": "A bag"}, {"url": "https://x.example/b"}],
    )  # fmt: skip
    assert record["slug"] == "cafe-em-graos-1-kg"
    selection = """product(hostname: $h, slug: "cafe-em-graos-1-kg") {
        id title slug description price compareAtPrice currency sku available stock
        images { url alt } categories { id name slug parent { name } } groups { name }
        createdAt updatedAt }"""
    product = (await shop.browser().ask(selection))["product"]
    group = {
        "id": global_id("Category", category["id"]), "name": "Cafés especiais",
        "slug": "cafes-especiais", "parent": None,
    }  # fmt: skip
    assert product == {
        "id": global_id("Product", record["id"]), "title": "Café em grãos 1 kg",
        "slug": "cafe-em-graos-1-kg", "description": "Whole beans.", "price": 8990,
        "compareAtPrice": 10990, "currency": "BRL", "sku": "COF-1", "available": True, "stock": 3,
        "images": [
            {"url": "https://x.example/a.jpg", "alt": "A bag"},
            {"url": "https://x.example/b", "alt": None},
        ],
        "categories": [group], "groups": [{"name": group["name"]}],
        "createdAt": record["createdAt"], "updatedAt": None,
    }  # fmt: skip
    by_id = await shop.browser().ask(f'product(hostname: $h, id: "{product["id"]}") {{ title }}')
    assert by_id["product"] == {"title": "Café em grãos 1 kg"}
    assert parse(product["id"]) == ("Product", record["id"])


async def test_bad_arguments(shop: Shop) -> None:
    await made(shop.owner, shop.store, "A")
    cursor = (await listed(shop))["pageInfo"]["endCursor"]
    for variables, field in (
        ({"first": 101}, "first"), ({"first": -1}, "first"), ({"last": 101}, "last"),
        ({"after": "x"}, "after"), ({"before": "%%%"}, "before"),
        ({"after": cursor, "orderBy": "TITLE"}, "after"),
        ({"after": cursor, "orderBy": "PRICE_ASC"}, "after"),
        ({"search": "a" * 201}, "search"),
    ):  # fmt: skip
        answer = await shop.browser().send(LIST, {"h": shop.hostname, **variables})
        assert (answer.status, answer.code) == (200, "BAD_USER_INPUT"), variables
        assert answer.error["extensions"]["field"] == field
        assert answer.body["data"] == {"products": None}
    for selection, field in (
        ("product(hostname: $h) { id }", "id"),
        ('products(hostname: $h, search: "a\\u0000") { nodes { id } }', "search"),
        ('product(hostname: $h, id: "x") { id }', "id"),
        (f'product(hostname: $h, id: "{global_id("Store", "0" * 24)}") {{ id }}', "id"),
        ('product(hostname: $h, id: "x", slug: "x") { id }', "id"),
        ('nodes(ids: [' + '"x",' * 101 + ']) { id }', "ids"),
    ):  # fmt: skip
        query = f"query ($h: String!) {{ store(hostname: $h) {{ id }} {selection} }}"
        answer = await shop.browser().send(query, {"h": shop.hostname})
        assert (answer.code, answer.error["extensions"]["field"]) == ("BAD_USER_INPUT", field)
    for slug in ("none", "a\\u0000", "A B"):
        found = await shop.browser().ask(f'product(hostname: $h, slug: "{slug}") {{ id }}')
        assert found == {"product": None}
        query = f'products(hostname: $h, category: "{slug}") {{ nodes {{ id }} }}'
        assert await shop.browser().ask(query) == {"products": {"nodes": []}}


async def test_search(shop: Shop) -> None:
    await made(shop.owner, shop.store, "Café em grãos", sku="COF-1")
    await made(shop.owner, shop.store, "Chá", sku="TEA-1", categories=["Drinks"])
    for text, expected in (
        ("CAFE", ["Café em grãos"]), ("grãos", ["Café em grãos"]), ("-1", ["Chá", "Café em grãos"]),
        ("tea", ["Chá"]), ("none", []), ("%", []), ("\x1f", []), ("", ["Chá", "Café em grãos"]),
    ):  # fmt: skip
        page = await listed(shop, search=text)
        assert [node["title"] for node in page["nodes"]] == expected
        assert page["totalCount"] == len(expected)


async def test_nodes(shop: Shop) -> None:
    record = await made(shop.owner, shop.store, "Café", categories=["Top"])
    hidden = await made(shop.owner, shop.store, "Hidden", published=False)
    store_id = shop.store["id"]
    category = (await shop.owner.post("/api/categories", {"storeId": store_id, "name": "Top"})).body
    ids = [
        global_id("Product", record["id"]), global_id("Store", store_id),
        global_id("Category", category["id"]), global_id("Product", hidden["id"]),
        global_id("Product", store_id), global_id("AuthUser", record["id"]), "x",
        global_id("Contact", record["id"]), global_id("Product", record["id"]),
    ]  # fmt: skip
    query = """query ($ids: [ID!]!) { nodes(ids: $ids) { id __typename
        ... on Product { title categories { slug } } ... on Store { hostname }
        ... on Category { name } } }"""
    answer = await shop.browser().send(query, {"ids": ids})
    product = {
        "id": ids[0], "__typename": "Product", "title": "Café", "categories": [{"slug": "top"}]
    }  # fmt: skip
    assert answer.data["nodes"] == [
        product, {"id": ids[1], "__typename": "Store", "hostname": shop.hostname},
        {"id": ids[2], "__typename": "Category", "name": "Top"},
        None, None, None, None, None, product,
    ]  # fmt: skip
    assert (await shop.owner.put(f"/api/stores/{store_id}", {"active": False})).status == 200
    answer = await shop.browser().send(query, {"ids": ids})
    assert answer.data["nodes"] == [None] * len(ids)
    single = await shop.browser().send(f'{{ node(id: "{ids[0]}") {{ id }} }}')
    assert single.data == {"node": None}


async def test_a_slug_is_unique_in_its_store(shop: Shop) -> None:
    first = await made(shop.owner, shop.store, "Café", slug="cafe")
    for status, body in (
        (409, {"slug": "cafe", "storeId": shop.store["id"]}), (201, {"slug": "cafe"}),
    ):  # fmt: skip
        reply = await shop.owner.post("/api/products", {"name": "X", "price": 1, **body})
        assert reply.status == status
    assert reply.body["slug"] == "cafe"
    path = f"/api/products/{reply.body['id']}"
    moved = await shop.owner.put(path, {"storeId": shop.store["id"]})
    assert (moved.status, moved.faults) == (409, {"slug": "taken"})
    # The slug of the other one is free again.
    assert (await shop.owner.put(f"/api/products/{first['id']}", {"slug": None})).body[
        "slug"
    ] == "cafe"
    assert (await shop.owner.put(f"/api/products/{first['id']}", {"storeId": None})).status == 200
    assert (await shop.owner.put(path, {"storeId": shop.store["id"]})).status == 200


async def test_concurrent_creates_get_slugs_of_their_own(shop: Shop) -> None:
    products = await asyncio.gather(*(made(shop.owner, shop.store, "Café") for _ in range(14)))
    slugs = {product["slug"] for product in products}
    assert len(slugs) == 14
    assert {"cafe", *(f"cafe-{n}" for n in range(2, 10))} <= slugs
    bodies = [{"name": "X", "price": 1, "slug": "one", "storeId": shop.store["id"]}] * 6
    replies = await asyncio.gather(*(shop.owner.post("/api/products", body) for body in bodies))
    assert sorted(reply.status for reply in replies) == [201] + [409] * 5


async def test_a_deleted_store_shows_nothing(shop: Shop) -> None:
    record = await made(shop.owner, shop.store, "A", slug="a", categories=["Top"])
    body = {"storeId": shop.store["id"], "name": "Top"}
    category = (await shop.owner.post("/api/categories", body)).body
    assert (await shop.owner.delete(f"/api/stores/{shop.store['id']}")).status == 200
    path = f"/api/products/{record['id']}"
    assert "storeId" not in (await shop.owner.get(path)).body
    assert (await shop.owner.get(f"/api/categories/{category['id']}")).status == 404
    answer = await shop.browser().send(LIST, {"h": shop.hostname})
    assert answer.code == "STORE_NOT_FOUND"
    query = "query ($ids: [ID!]!) { nodes(ids: $ids) { id } }"
    ids = [global_id("Product", record["id"]), global_id("Category", category["id"])]
    assert (await shop.browser().send(query, {"ids": ids})).data["nodes"] == [None, None]
    again = (await shop.owner.post("/api/stores", {"hostname": "new.example", "name": "N"})).body
    assert (await shop.owner.put(path, {"storeId": again["id"]})).body["slug"] == "a"


async def test_long_texts_of_a_list(shop: Shop) -> None:
    image = {"url": "https://x.example/" + "a" * 2_000}
    for name in "AB":
        await made(shop.owner, shop.store, name, description=name * 60_000, images=[image])
    await made(shop.owner, shop.store, "C", description="short")
    query = "products(hostname: $h) { nodes { title description images { url } } }"
    nodes = (await shop.browser().ask(query))["products"]["nodes"]
    assert [(len(node["description"]), len(node["images"])) for node in nodes] == [
        (5, 0), (60_000, 1), (60_000, 1),
    ]  # fmt: skip


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
