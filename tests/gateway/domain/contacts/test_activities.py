"""Tests activities over HTTP, the timeline of contacts, companies and deals."""

from typing import Any

import pytest

from tests.support.rest import Person, RestApi

NOWHERE = "0" * 24
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


@pytest.mark.parametrize("kind", ["contact", "company", "deal"])
async def test_an_activity_of_each_kind(ana: Person, kind: str) -> None:
    sent = {
        "type": "call", "description": "Asked for a quote.", "relatedTo": await target(ana, kind),
        "relatedType": kind, "metadata": {"duration": 340, "deep": [{"a": None}], "n": 10**20},
    }  # fmt: skip
    reply = await ana.post("/api/activities", sent | {"createdBy": NOWHERE})
    assert reply.status == 201
    assert reply.headers["X-Ignored-Fields"] == "createdBy"
    record = reply.body
    assert record == sent | {
        "id": record["id"], "createdBy": ana.user_id, "createdAt": record["createdAt"],
    }  # fmt: skip
    assert (await ana.get(f"/api/activities/{record['id']}")).body == record


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


@pytest.mark.parametrize("kind", [None, "task", "", 5])
async def test_an_invalid_kind_is_the_only_fault(ana: Person, kind: Any) -> None:
    """Without a valid kind the id cannot be checked."""
    contact = await target(ana)
    body = {"type": "note", "description": "x", "relatedTo": contact, "relatedType": kind}
    assert set((await ana.post("/api/activities", body)).faults) == {"relatedType"}
    path = f"/api/activities/{(await create(ana, contact))['id']}"
    assert set((await ana.put(path, {"relatedType": kind})).faults) == {"relatedType"}


async def test_metadata_keeps_its_digits(ana: Person) -> None:
    contact = await target(ana)
    metadata = (
        '{"a":1.10,"b":[1e2,-0,0.00],"n":123456789012345678901234567890,'
        '"f":0.1234567890123456789012345}'
    )
    sent = (
        f'{{"type":"note","description":"x","relatedTo":"{contact}","relatedType":"contact",'
        f'"metadata":{metadata}}}'
    ).encode()
    made_one = await ana.call("POST", "/api/activities", data=sent, Idempotency_Key="k")
    path = made_one.headers["Location"]
    again = await ana.call("POST", "/api/activities", data=sent, Idempotency_Key="k")
    for reply in (
        made_one, again, await ana.get(path), await ana.get("/api/activities"),
        await ana.get("/api/activities/recent"),
        await ana.get(f"/api/activities/entity/{contact}"),
    ):  # fmt: skip
        assert f'"metadata":{metadata}' in reply.text
    other = metadata.replace("1.10", "1.1")
    changed = await ana.call("PUT", path, data=f'{{"metadata":{other}}}'.encode())
    assert f'"metadata":{other}' in changed.text


async def test_recent(api: RestApi, ana: Person, bia: Person) -> None:
    contact = await target(ana)
    for i in range(12):
        await create(ana, contact, description=str(i))
    await create(bia, await target(bia), description="theirs")
    newest = [str(i) for i in range(11, -1, -1)]
    for query, expected in {
        "": newest[:10], "?limit=3": newest[:3], "?limit=1000": newest, "?limit=0": newest[:10],
        "?limit=x": newest[:10], "?limit=": newest[:10], "?page=2": newest[:10],
    }.items():  # fmt: skip
        assert await told(ana, f"/recent{query}") == expected, query
    assert set((await ana.get("/api/activities/recent")).body) == {"data"}
    assert (await api.nobody.get("/api/activities/recent")).status == 401
    writer = await api.key_of(ana.user_id, ["write"])
    assert (await writer.get("/api/activities/recent")).status == 403


async def test_recent_is_at_most_a_hundred(ana: Person) -> None:
    contact = await target(ana)
    for i in range(101):
        await create(ana, contact, description=str(i))
    assert len(await told(ana, "/recent?limit=101")) == 100


async def test_by_entity(api: RestApi, ana: Person, bia: Person) -> None:
    contact, deal = await target(ana), await target(ana, "deal")
    for i in range(5):
        await create(ana, contact, description=str(i))
    await create(ana, deal, relatedType="deal", description="deal")
    path = f"/api/activities/entity/{contact}"
    reply = await ana.get(path)
    assert set(reply.body) == {"data", "total", "page", "limit"}
    assert (reply.body["total"], reply.body["page"], reply.body["limit"]) == (5, 1, 20)
    assert await told(ana, f"/entity/{contact}") == ["4", "3", "2", "1", "0"]
    assert await told(ana, f"/entity/{contact.upper()}?limit=2&page=3") == ["0"]
    assert await told(ana, f"/entity/{contact}?relatedTo={deal}&type=note&limit=1") == ["4"]
    first = await ana.get(f"{path}?limit=3")
    onward = f"{path}?limit=3&cursor={first.body['nextCursor']}"
    assert first.headers["Link"] == f'<{onward}>; rel="next"'
    assert [a["description"] for a in (await ana.get(onward)).body["data"]] == ["1", "0"]
    # The timeline of an unknown, malformed or another user's id is empty.
    for who, entity in ((bia, contact), (ana, NOWHERE), (ana, "xyz"), (ana, "%00"), (ana, "%FF")):
        empty = await who.get(f"/api/activities/entity/{entity}")
        assert (empty.status, empty.body) == (
            200, {"data": [], "total": 0, "page": 1, "limit": 20},
        )  # fmt: skip
    assert (await api.nobody.get(path)).status == 401


async def test_filters(ana: Person) -> None:
    contact, deal = await target(ana), await target(ana, "deal")
    await create(ana, contact, type="call", description="a")
    await create(ana, deal, relatedType="deal", type="email", description="b")
    for query, expected in {
        "": "ba", "type=call": "a", "type=fax": "", f"relatedTo={deal}": "b",
        "relatedType=contact": "a", "relatedType=contact&type=email": "", "sort=createdAt": "ab",
    }.items():  # fmt: skip
        assert await told(ana, f"?{query}") == list(expected), query


@pytest.mark.parametrize("kind", ["contact", "company", "deal"])
async def test_activities_are_deleted_with_their_record(
    api: RestApi, ana: Person, kind: str
) -> None:
    gone, remaining = await target(ana, kind), await target(ana, kind)
    activity = await create(ana, gone, relatedType=kind)
    await create(ana, gone, relatedType=kind)
    await create(ana, remaining, relatedType=kind, description="kept")
    assert (await ana.delete(f"/api/{PLURALS[kind]}/{gone}")).status == 200
    assert (await ana.get(f"/api/activities/{activity['id']}")).status == 404
    assert await told(ana, f"/entity/{gone}") == []
    reply = await ana.get("/api/activities")
    assert (reply.body["total"], len(reply.body["data"])) == (1, 1)
    assert [name for name, _ in await api.events()][2:] == [f"{kind}.deleted"]
