"""Tests activities over HTTP, the timeline of contacts, companies and deals."""

from typing import Any

from tests.support.rest import Person

BODIES = {
    "contact": {"name": "Maria"},
    "company": {"name": "Acme"},
    "deal": {"title": "Supply", "value": 1},
}
PLURALS = {"contact": "contacts", "company": "companies", "deal": "deals"}


async def target(who: Person, kind: str = "contact") -> str:
    return str((await who.post(f"/api/{PLURALS[kind]}", BODIES[kind])).body["id"])


async def create(who: Person, to: str, **body: Any) -> dict[str, Any]:
    plain = {"type": "note", "description": "x", "relatedTo": to, "relatedType": "contact"}
    reply = await who.post("/api/activities", plain | body)
    assert reply.status == 201, reply.text
    record: dict[str, Any] = reply.body
    return record


async def told(who: Person, path: str) -> list[str]:
    reply = await who.get(f"/api/activities{path}")
    assert reply.status == 200, reply.text
    return [activity["description"] for activity in reply.body["data"]]


async def test_an_activity_moves_with_both_its_references(ana: Person) -> None:
    contact, deal = await target(ana), await target(ana, "deal")
    record = await create(ana, contact)
    path = f"/api/activities/{record['id']}"
    for one_sided in ({"relatedTo": deal}, {"relatedType": "deal"}):
        reply = await ana.put(path, one_sided)
        assert (reply.status, reply.body["code"]) == (400, "invalid_reference")
    moved = await ana.call("PATCH", path, {"relatedTo": deal, "relatedType": "deal"})
    assert (moved.body["relatedTo"], moved.body["relatedType"]) == (deal, "deal")
    assert await told(ana, f"/entity/{contact}") == []
    assert await told(ana, f"/entity/{deal}") == ["x"]
