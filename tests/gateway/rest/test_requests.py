"""Tests what every request of the REST door may send: content types, sizes, unknown fields."""

from typing import Any

import pytest

from tests.support.rest import Person

NOWHERE = "0" * 24


async def create(who: Person, **body: Any) -> dict[str, Any]:
    reply = await who.post("/api/contacts", {"name": "Maria"} | body)
    assert reply.status == 201, reply.text
    record: dict[str, Any] = reply.body
    return record


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        ("application/json", 201),
        ("application/json; charset=utf-8", 201),
        ("Application/JSON;charset=UTF-8", 201),
        ("application/merge-patch+json", 201),
        ("text/plain", 415),
        ("application/x-www-form-urlencoded", 415),
        ("application/json; charset=utf-16", 415),
        ("rubbish", 415),
    ],
)
async def test_content_types(ana: Person, kind: str, status: int) -> None:
    reply = await ana.call("POST", "/api/contacts", data=b'{"name":"X"}', Content_Type=kind)
    assert reply.status == status
    if status == 415:
        assert reply.body["code"] == "unsupported_media_type"


async def test_a_missing_content_type_is_json(ana: Person) -> None:
    assert (await ana.call("POST", "/api/contacts", data=b'{"name":"X"}')).status == 201


@pytest.mark.slow
async def test_a_body_above_the_limit_is_too_large(ana: Person) -> None:
    data = b'{"name":"X","junk":"' + b"x" * 1_100_000 + b'"}'
    reply = await ana.call("POST", "/api/contacts", data=data)
    assert (reply.status, reply.body["code"]) == (413, "payload_too_large")


async def test_unknown_and_read_only_fields_are_named_in_a_header(ana: Person) -> None:
    body = {"name": "X", "id": NOWHERE, "createdAt": "x", "nick": 1, "a b": 2, "é\r\nX-Evil: 1": 3}
    reply = await ana.post("/api/contacts", body)
    assert reply.status == 201
    assert reply.body["id"] != NOWHERE
    assert reply.headers["X-Ignored-Fields"] == "id, createdAt, nick, …, …"
    assert "X-Evil" not in reply.headers
    many = await ana.post("/api/contacts", {"name": "X"} | {f"f{i}": i for i in range(20)})
    assert many.headers["X-Ignored-Fields"].split(", ") == [f"f{i}" for i in range(10)] + ["…"]
    put = await ana.put(f"/api/contacts/{reply.body['id']}", {"phoneE164": "+1", "source": "web"})
    assert put.headers["X-Ignored-Fields"] == "phoneE164, source"


@pytest.mark.parametrize("digits", ["9999999999999999999", "9" * 25, "9" * 4000])
async def test_a_page_and_a_limit_of_many_digits(ana: Person, digits: str) -> None:
    await create(ana)
    for path in ("/api/contacts", "/api/tasks/calendar", "/api/activities/recent", "/api/events"):
        assert (await ana.get(f"{path}?page={digits}&limit={digits}")).status == 200
    far = (await ana.get(f"/api/contacts?page={digits}")).body
    assert far == {"data": [], "total": 1, "page": 2**63 - 1, "limit": 20}
    large = (await ana.get(f"/api/contacts?limit={digits}")).body
    assert (large["page"], large["limit"], len(large["data"])) == (1, 100, 1)
