"""Writes of many records: batches, and the upsert of contacts by their email."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from gateway.domain.catalogue import CATALOGUE, EVENTS
from gateway.records.resource import Resource
from gateway.server.config import Config, Limits
from outbox.database.transaction import Database
from tests.gateway.rest.test_resources import Town, town_of
from tests.support.document import answer_faults
from tests.support.rest import Person, RestApi
from tests.support.site import serving
from tests.support.tables import in_turn

MADE = [entry.resource for entry in CATALOGUE if entry.create is not None]


@pytest.fixture
async def town(api: RestApi, ana: Person) -> Town:
    return await town_of(api, ana)


@in_turn("resource", MADE)
async def test_a_refused_item_leaves_the_others(town: Town, resource: Resource) -> None:
    ana, path = town.owner, f"/api/{resource.plural}"
    before, total = len(await town.events()), (await ana.get(path)).body["total"]
    reply = await ana.post(f"{path}/batch", {"items": [town.body(resource), {}, 5], "x": 1})
    assert (reply.status, reply.headers["X-Ignored-Fields"]) == (207, "x"), reply.text
    assert answer_faults("POST", f"{path}/batch", 207, reply.body) == []
    made, empty, number = reply.body["results"]
    assert (made["index"], made["status"]) == (0, 201)
    assert (await ana.get(f"{path}/{made['id']}")).status == 200
    assert (empty["status"], number["status"]) == (400, 400)
    assert {fault["field"] for fault in empty["details"]} >= {*resource.required}
    assert (await ana.get(path)).body["total"] == total + 1
    names = [name for name, _ in (await town.events())[before:]]
    assert names == [f"{resource.noun}.created"] * (f"{resource.noun}.created" in EVENTS)


async def test_all_or_none(api: RestApi, ana: Person) -> None:
    good, bad = {"name": "Coffee", "price": 5, "sku": "A"}, {"price": -1}
    reply = await ana.post(
        "/api/products/batch", {"items": [good, bad, good | {"name": ""}], "atomic": True}
    )
    assert reply.status == 400
    assert reply.faults == {
        "items[1].name": "required", "items[1].price": "out_of_range", "items[2].name": "too_short",
    }  # fmt: skip
    twice = await ana.post("/api/products/batch", {"items": [good, good], "atomic": True})
    assert (twice.status, twice.faults) == (400, {"items[1].sku": "taken"})
    assert (await ana.get("/api/products")).body["total"] == 0
    assert await api.events() == []
    both = [good, good | {"sku": "B"}]
    replies = [
        await ana.post("/api/products/batch", {"items": both, "atomic": True}, Idempotency_Key="k")
        for _ in range(2)
    ]
    assert [reply.status for reply in replies] == [207, 207]
    assert (replies[0].text, replies[1].headers["Idempotent-Replayed"]) == (replies[1].text, "true")
    assert (await ana.get("/api/products")).body["total"] == 2


async def test_all_of_one_request_keep_their_order(ana: Person) -> None:
    """Some write at once, for their unique sku, and others with the rows that refer to them."""
    items = [
        {"name": f"P{n}", "price": 1, "categories": ["a"]} | ({"sku": f"{n}"} if n % 3 else {})
        for n in range(60)
    ]  # fmt: skip
    reply = await ana.post("/api/products/batch", {"items": items, "atomic": True})
    assert reply.status == 207, reply.text
    names = [one["name"] for one in items]
    for query, way in (("limit=100", -1), ("limit=100&sort=createdAt", 1)):
        rows = (await ana.get(f"/api/products?{query}")).body["data"]
        assert [one["name"] for one in rows] == names[::way]
    ids = [one["id"] for one in reply.body["results"]]
    assert ids == sorted(ids)


async def test_a_repeat_makes_only_what_is_missing(ana: Person) -> None:
    body = {"items": [{"name": "A", "price": 1, "sku": "1"}, {"name": "B", "price": 1, "sku": "1"}]}
    many = await asyncio.gather(
        *(ana.post("/api/products/batch", body, Idempotency_Key="k") for _ in range(3))
    )
    made = {reply.body["results"][0]["id"] for reply in many}
    assert (len(made), {reply.body["results"][1]["status"] for reply in many}) == (1, {409})
    await ana.put(f"/api/products/{made.pop()}", {"sku": "2"})
    again = await ana.post("/api/products/batch", body, Idempotency_Key="k")
    assert [one["status"] for one in again.body["results"]] == [201, 201]
    other = await ana.post("/api/products/batch", {"items": [{}]}, Idempotency_Key="k")
    assert (other.status, other.body["code"]) == (422, "idempotency_mismatch")
    assert (await ana.get("/api/products")).body["total"] == 2


@in_turn(
    ("body", "faults"),
    [
        ({}, {"items": "wrong_size"}),
        ({"items": []}, {"items": "wrong_size"}),
        ({"items": [{}] * 101}, {"items": "wrong_size"}),
        ({"items": [{}], "atomic": 1}, {"atomic": "wrong_type"}),
        ({"items": {}, "atomic": "x"}, {"items": "wrong_size", "atomic": "wrong_type"}),
    ],
)
async def test_a_batch_that_is_none(ana: Person, body: Any, faults: Any) -> None:
    reply = await ana.post("/api/contacts/batch", body)
    assert (reply.status, reply.faults) == (400, faults)


async def test_an_item_is_a_write(still: Database) -> None:
    limits = Limits(write_per_second=10, burst=2, read_per_second=0)
    async with serving(still, Config(limits=limits)) as site:
        ana = await RestApi(site).person()
        items = {"items": [{"name": "A"}] * 15}
        assert (await ana.post("/api/contacts/batch", items)).status == 207
        assert (await ana.post("/api/contacts/batch", items)).status == 429
        assert (await ana.get("/api/contacts")).body["total"] == 15


async def test_an_upsert_updates_the_oldest_contact_or_creates_one(
    api: RestApi, ana: Person, bia: Person
) -> None:
    path = "/api/contacts/upsert"
    await bia.post("/api/contacts", {"name": "Other", "email": "ana@example.com"})
    first = await ana.post(path, {"email": "Ana@Example.com", "name": "Ana", "tags": ["vip"]})
    assert (first.status, first.headers["X-Created"]) == (201, "true")
    assert first.headers["Location"] == f"/api/contacts/{first.body['id']}"
    await ana.post("/api/contacts", {"name": "Younger", "email": "ana@example.com"})
    again = await ana.post(path, {"email": "ANA@example.com", "position": "Buyer", "source": "web"})
    assert (again.status, again.headers["X-Created"]) == (200, "false")
    assert again.headers["X-Ignored-Fields"] == "source"
    assert again.body["id"] == first.body["id"]
    assert (again.body["name"], again.body["tags"], again.body["source"]) == ("Ana", ["vip"], "api")
    read = await ana.get(f"/api/contacts/{first.body['id']}")
    assert (read.body, read.headers["ETag"]) == (again.body, again.headers["ETag"])
    nameless = await ana.post(path, {"email": "new@example.com"})
    assert (nameless.status, nameless.faults) == (400, {"name": "required"})
    for body, fault in (({"name": "X"}, "required"), ({"email": None, "name": "X"}, "required"),
                        ({"email": "x", "name": "X"}, "invalid_email")):  # fmt: skip
        wrong = await ana.post(path, body)
        assert (wrong.status, wrong.faults.get("email")) == (400, fault), body
    assert [name for name, _ in await api.events()][-1] == "contact.updated"


async def test_a_key_that_only_writes_learns_no_more(api: RestApi, ana: Person) -> None:
    blind = await api.key_of(ana.user_id, ["write"])
    body = {"email": "ana@example.com", "name": "Ana"}
    reply = await blind.post("/api/contacts/upsert", body)
    assert (reply.status, [*json.loads(reply.text)]) == (201, ["id"])
