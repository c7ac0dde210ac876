"""Tests categories over REST: names and slugs, the tree, owners, deletes, and the limit."""

import asyncio
from typing import Any

import pytest

from gateway.domain.storefront.catalogue import categories
from tests.support.rest import Person, RestApi


async def store(who: Person, hostname: str = "shop.example") -> str:
    reply = await who.post("/api/stores", {"hostname": hostname, "name": "Shop"})
    assert reply.status == 201, reply.text
    return str(reply.body["id"])


async def create(who: Person, store_id: str, name: str, **values: Any) -> dict[str, Any]:
    reply = await who.post("/api/categories", {"storeId": store_id, "name": name, **values})
    assert reply.status == 201, reply.text
    record: dict[str, Any] = reply.body
    return record


async def test_create_change_and_delete(api: RestApi, ana: Person) -> None:
    shop = await store(ana)
    top = await create(ana, shop, "Cafés especiais")
    assert top == {
        "id": top["id"], "storeId": shop, "name": "Cafés especiais", "slug": "cafes-especiais",
        "createdAt": top["createdAt"],
    }  # fmt: skip
    low = await create(ana, shop, "Arabica", slug="a", parentId=top["id"])
    assert (low["slug"], low["parentId"]) == ("a", top["id"])
    path = f"/api/categories/{low['id']}"
    changed = (await ana.put(path, {"name": "Arábica", "parentId": None})).body
    assert (changed["name"], changed["slug"]) == ("Arábica", "a")
    assert "parentId" not in changed
    refused = await ana.put(path, {"slug": None, "name": "\u0301"})
    assert refused.faults == {"slug": "not_nullable", "name": "blank"}
    ignored = await ana.put(path, {"storeId": await store(ana, "two.example")})
    assert ignored.headers["X-Ignored-Fields"] == "storeId"
    listed = (await ana.get(f"/api/categories?storeId={shop}&sort=name")).body
    assert [category["name"] for category in listed["data"]] == ["Arábica", "Cafés especiais"]
    assert (await ana.delete(path)).status == 200
    assert (await ana.get(path)).status == 404
    assert await api.events() == []


async def test_names_and_slugs_are_unique_in_the_store(ana: Person) -> None:
    one, two = await store(ana), await store(ana, "two.example")
    bodies = [{"storeId": one, "name": name} for name in ("Café", "cafe", "CAFÉ", "Cafè")]
    replies = await asyncio.gather(*(ana.post("/api/categories", body) for body in bodies))
    assert sorted(reply.status for reply in replies) == [201, 409, 409, 409]
    [first] = [reply.body for reply in replies if reply.status == 201]
    await create(ana, two, "Café")
    reply = await ana.post("/api/categories", {"storeId": one, "name": "Tea", "slug": "cafe"})
    assert (reply.status, reply.faults) == (409, {"slug": "taken"})
    other = await create(ana, one, "Cafe!")
    assert other["slug"] == "cafe-2"
    taken = await ana.put(f"/api/categories/{other['id']}", {"name": "café"})
    assert (taken.status, taken.faults) == (409, {"name": "taken"})
    assert (await ana.put(f"/api/categories/{first['id']}", {"name": "CAFÉ!"})).status == 409
    assert (await ana.put(f"/api/categories/{first['id']}", {"name": "CÁFÉ"})).status == 200


async def test_concurrent_moves_make_no_cycle(ana: Person) -> None:
    shop = await store(ana)
    for round_number in range(5):
        ring = [(await create(ana, shop, f"{round_number} {n}"))["id"] for n in range(4)]
        moves = [
            ana.put(f"/api/categories/{one}", {"parentId": ring[place - 1]})
            for place, one in enumerate(ring)
        ]
        replies = await asyncio.gather(*moves)
        assert sorted(reply.status for reply in replies) == [200, 200, 200, 400]


async def test_a_store_has_a_limit(ana: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(categories, "MOST", 3)
    shop = await store(ana)
    bodies = [{"storeId": shop, "name": f"Name {n}"} for n in range(6)]
    replies = await asyncio.gather(*(ana.post("/api/categories", body) for body in bodies))
    assert sorted(reply.status for reply in replies) == [201, 201, 201, 400, 400, 400]
    assert {"storeId": "too_many"} in [reply.faults for reply in replies]
    assert (await ana.get(f"/api/categories?storeId={shop}")).body["total"] == 3
