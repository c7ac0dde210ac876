"""Tests products over HTTP: prices, stock, categories, images and unique skus."""

import asyncio
from typing import Any

from tests.support.rest import Person


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
    body = {"name": "X", "price": 1, "images": [{"url": "https://x.example"}] * 51}
    too_many = await ana.post("/api/products", body | {"stock": 10**18})
    assert too_many.faults == {"images": "too_many", "stock": "out_of_range"}


async def test_a_sku_is_unique_per_owner(ana: Person, bia: Person) -> None:
    others = [await create(ana) for _ in range(4)]
    await create(bia, sku="A")
    replies = await asyncio.gather(
        *(ana.post("/api/products", {"name": "X", "price": 1, "sku": "A"}) for _ in range(8)),
        *(ana.put(f"/api/products/{other['id']}", {"sku": "A"}) for other in others),
    )
    assert sorted(reply.status for reply in replies)[1:] == [409] * 11
    refused = next(reply for reply in replies if reply.status == 409)
    assert (refused.body["code"], refused.faults) == ("conflict", {"sku": "taken"})
    [first] = (await ana.get("/api/products?sku=A")).body["data"]
    other = await create(ana, sku="B")
    path = f"/api/products/{other['id']}"
    assert (await ana.put(path, {"sku": "A", "name": "Y"})).status == 409
    assert (await ana.get(path)).body == other
    # A change or a delete frees the sku.
    assert (await ana.put(f"/api/products/{first['id']}", {"sku": "C"})).status == 200
    assert (await ana.put(path, {"sku": "A"})).status == 200
    await ana.delete(path)
    assert (await create(ana, sku="A"))["sku"] == "A"
    assert (await create(ana, sku="a"))["sku"] == "a"
