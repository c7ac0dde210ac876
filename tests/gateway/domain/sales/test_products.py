"""Tests products over HTTP: prices, stock, categories, images and unique skus."""

import asyncio
from typing import Any

from tests.support.rest import Person

FULL: dict[str, Any] = {
    "name": "Café em grãos 1 kg",
    "description": "Medium roast.",
    "sku": "COF-1000",
    "slug": "cafe-em-graos-1-kg",
    "price": 89.9,
    "compareAtPrice": 109.9,
    "stock": 25,
    "weightGrams": 1050,
    "requiresShipping": False,
    "categories": ["Coffee", "Beans"],
    "images": [{"url": "https://shop.example/c.jpg", "alt": "A bag"}, {"url": "http://x.example"}],
    "active": True,
    "published": False,
}


async def create(who: Person, **body: Any) -> dict[str, Any]:
    reply = await who.post("/api/products", {"name": "Coffee", "price": 10} | body)
    assert reply.status == 201, reply.text
    record: dict[str, Any] = reply.body
    return record


async def test_every_fault_is_reported_at_once(ana: Person) -> None:
    body = {
        "price": 1.001, "compareAtPrice": -1, "stock": 1.5, "weightGrams": "1", "sku": " ",
        "slug": "Not A Slug", "categories": [1], "active": "yes", "published": 1,
        "images": [{"alt": 5}, {"url": "ftp://x.example"}, "x", {"url": "https://x.example/ y"}],
    }  # fmt: skip
    reply = await ana.post("/api/products", body)
    assert (reply.status, reply.faults) == (400, {
        "name": "required", "price": "too_precise", "compareAtPrice": "out_of_range",
        "stock": "wrong_type", "weightGrams": "wrong_type", "sku": "blank", "slug": "invalid_slug",
        "categories[0]": "wrong_type", "active": "wrong_type", "published": "wrong_type",
        "images[0].url": "required", "images[0].alt": "wrong_type", "images[1].url": "invalid_url",
        "images[2]": "wrong_type", "images[3].url": "invalid_url",
    })  # fmt: skip
    too_many = await ana.post(
        "/api/products", FULL | {"images": [{"url": "https://x.example"}] * 51, "stock": 10**18}
    )
    assert too_many.faults == {"images": "too_many", "stock": "out_of_range"}


async def test_a_sku_is_unique_per_owner(ana: Person, bia: Person) -> None:
    first = await create(ana, sku="A")
    await create(bia, sku="A")
    reply = await ana.post("/api/products", {"name": "X", "price": 1, "sku": "A"})
    assert (reply.status, reply.body["code"], reply.faults) == (409, "conflict", {"sku": "taken"})
    assert (await ana.get("/api/products")).body["total"] == 1
    other = await create(ana, sku="B")
    path = f"/api/products/{other['id']}"
    assert (await ana.put(path, {"sku": "A", "name": "Y"})).status == 409
    assert (await ana.get(path)).body == other
    assert (await ana.put(path, {"sku": "B", "price": 2})).status == 200
    # A change or a delete frees the sku.
    assert (await ana.put(f"/api/products/{first['id']}", {"sku": "C"})).status == 200
    assert (await ana.put(path, {"sku": "A"})).status == 200
    await ana.delete(path)
    assert (await create(ana, sku="A"))["sku"] == "A"
    assert (await create(ana, sku="a"))["sku"] == "a"
    await ana.put(f"/api/products/{first['id']}", {"sku": None})
    assert (await create(ana, sku="C"))["sku"] == "C"


async def test_one_of_the_concurrent_creates_with_a_sku_succeeds(ana: Person) -> None:
    others = [await create(ana) for _ in range(4)]
    replies = await asyncio.gather(
        *(ana.post("/api/products", {"name": "X", "price": 1, "sku": "A"}) for _ in range(8)),
        *(ana.put(f"/api/products/{other['id']}", {"sku": "A"}) for other in others),
    )
    assert sorted(reply.status for reply in replies)[1:] == [409] * 11
    listed = (await ana.get("/api/products?sku=A")).body
    assert (listed["total"], listed["data"][0]["sku"]) == (1, "A")
    assert (await ana.get("/api/products")).body["total"] in (4, 5)


async def test_the_list_and_its_filters(ana: Person, bia: Person) -> None:
    await create(bia, sku="COF-1")
    coffee = await create(ana, name="Café", sku="COF-1", categories=["Drinks", "Beans"], price=30)
    tea = await create(ana, name="Tea", categories=["Drinks"], active=False, price=20)
    mug = await create(ana, name="Mug", published=False, price=25)
    for query, expected in (
        ("", [mug, tea, coffee]), ("category=Drinks", [tea, coffee]), ("category=drinks", []),
        ("active=true", [mug, coffee]), ("active=false", [tea]), ("active=x", []),
        ("published=false", [mug]), ("sku=COF-1", [coffee]), ("sku=COF", []),
        ("search=cafe", [coffee]), ("search=cof-", [coffee]), ("sort=price", [tea, mug, coffee]),
        ("sort=-name", [tea, mug, coffee]), ("category=Drinks&active=true", [coffee]),
    ):  # fmt: skip
        reply = await ana.get(f"/api/products?{query}")
        assert (reply.status, reply.body["data"]) == (200, expected), query
        assert reply.body["total"] == len(expected)
    path = f"/api/products/{coffee['id']}"
    await ana.put(path, {"categories": ["Beans"]})
    assert (await ana.get("/api/products?category=Drinks")).body["data"] == [tea]
    await ana.delete(path)
    assert (await ana.get("/api/products?category=Beans")).body["data"] == []
