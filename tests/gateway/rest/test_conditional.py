"""Tests ETag, If-None-Match and If-Match over HTTP."""

from typing import Any

import pytest

from tests.support.rest import Person


@pytest.fixture
async def contact(ana: Person) -> dict[str, Any]:
    record: dict[str, Any] = (await ana.post("/api/contacts", {"name": "Maria"})).body
    return record


@pytest.mark.parametrize(
    ("known", "status"),
    [
        ('"1"', 304), ('W/"1"', 304), ('"0", "1"', 304), ("*", 304), (' "1" ', 304),
        ('"2"', 200), ("1", 200), ("", 200), ('"10"', 200), ('"1', 200),
    ],
)  # fmt: skip
async def test_if_none_match(ana: Person, contact: dict[str, Any], known: str, status: int) -> None:
    path = f"/api/contacts/{contact['id']}"
    for method in ("GET", "HEAD"):
        reply = await ana.call(method, path, If_None_Match=known)
        assert reply.status == status
        assert reply.headers["ETag"] == '"1"'
        if status == 304:
            assert reply.text == ""


async def test_a_change_invalidates_the_old_etag(ana: Person, contact: dict[str, Any]) -> None:
    path = f"/api/contacts/{contact['id']}"
    changed = await ana.put(path, {"name": "Ana"}, If_Match='"1"')
    assert (changed.status, changed.headers["ETag"]) == (200, '"2"')
    assert (await ana.get(path, If_None_Match='"1"')).status == 200
    for method, body in (("PUT", {"name": "X"}), ("PATCH", {"name": "X"}), ("DELETE", None)):
        for stale in ('"1"', 'W/"2"', "", "2", '"*"'):
            reply = await ana.call(method, path, body, If_Match=stale)
            assert (reply.status, reply.body["code"]) == (412, "precondition_failed"), stale
            assert reply.headers["ETag"] == '"2"'
    assert (await ana.get(path)).body == changed.body
    assert (await ana.call("PATCH", path, {"name": "Eva"}, If_Match='"1", "2"')).status == 200
    assert (await ana.delete(path, If_Match="*")).status == 200


async def test_faults_take_precedence_over_a_stale_etag(
    ana: Person, contact: dict[str, Any]
) -> None:
    path = f"/api/contacts/{contact['id']}"
    assert (await ana.put(path, {"name": ""}, If_Match='"9"')).status == 400
    assert (await ana.put(f"/api/contacts/{'0' * 24}", {}, If_Match='"9"')).status == 404
    assert (await ana.put(path, {}, If_Match='"9"')).status == 412
