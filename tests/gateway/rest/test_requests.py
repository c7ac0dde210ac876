"""Tests what every request of the REST door may send: content types, sizes, unknown fields."""

import pytest

from tests.support.rest import Person

NOWHERE = "0" * 24


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
        ("application/json; charset=punycode", 415),
        ("application/json; charset*=punycode''x", 415),
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
