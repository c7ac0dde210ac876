"""Tests contacts over HTTP, as the owner, another user and nobody."""

from typing import Any

import pytest

from tests.support.rest import Person, RestApi

NOWHERE = "0" * 24
FULL: dict[str, Any] = {
    "name": "Maria da Silva",
    "email": "maria@example.com",
    "phone": "(11) 98888-7777",
    "position": "Buyer",
    "notes": "Met at the fair.",
    "tags": ["vip"],
    "source": "web",
    "consent": True,
}


async def create(who: Person, **body: Any) -> dict[str, Any]:
    reply = await who.post("/api/contacts", {"name": "Maria"} | body)
    assert reply.status == 201, reply.text
    record: dict[str, Any] = reply.body
    return record


async def test_create_returns_the_record(ana: Person) -> None:
    reply = await ana.post("/api/contacts", FULL)
    assert reply.status == 201
    record = reply.body
    assert reply.headers["Location"] == f"/api/contacts/{record['id']}"
    assert reply.headers["ETag"] == '"1"'
    assert reply.headers["Content-Type"].startswith("application/json")
    assert "X-Ignored-Fields" not in reply.headers
    assert len(record["id"]) == 24
    assert record == FULL | {
        "id": record["id"], "createdAt": record["createdAt"], "phoneE164": "+5511988887777",
    }  # fmt: skip
    assert (await ana.get(f"/api/contacts/{record['id']}")).body == record


async def test_unset_fields_are_left_out(ana: Person) -> None:
    record = await create(ana)
    assert set(record) == {"id", "name", "tags", "source", "createdAt"}
    assert record["tags"] == []
    assert record["source"] == "api"


async def test_put_and_patch_change_the_sent_fields(ana: Person) -> None:
    record = await create(ana, **FULL)
    path = f"/api/contacts/{record['id']}"
    put = await ana.put(path, {"position": "CEO", "notes": None})
    assert put.status == 200
    assert put.headers["ETag"] == '"2"'
    expected = record | {"position": "CEO", "updatedAt": put.body["updatedAt"]}
    del expected["notes"]
    assert put.body == expected
    patch = await ana.call("PATCH", path, {"phone": "+55 11 3333-4444", "tags": None})
    assert patch.body["phoneE164"] == "+551133334444"
    assert patch.body["tags"] == []
    cleared = await ana.put(path, {"phone": None, "email": None, "consent": None})
    assert not {"phone", "phoneE164", "email", "consent"} & set(cleared.body)
    assert (await ana.get(path)).body == cleared.body


async def test_a_put_without_changes_keeps_the_etag(ana: Person) -> None:
    record = await create(ana, **FULL)
    path = f"/api/contacts/{record['id']}"
    for body in ({}, {"name": record["name"], "tags": ["vip", "vip"]}, {"id": NOWHERE}):
        reply = await ana.put(path, body)
        assert (reply.status, reply.headers["ETag"], reply.body) == (200, '"1"', record)


async def test_a_delete_is_permanent(ana: Person) -> None:
    record = await create(ana)
    path = f"/api/contacts/{record['id']}"
    reply = await ana.delete(path)
    assert reply.status == 200
    assert reply.body == {
        "message": "The contact and its activities were deleted.",
        "id": record["id"],
    }
    assert (await ana.delete(path)).status == 404
    assert (await ana.get(path)).status == 404
    assert (await ana.get("/api/contacts")).body["total"] == 0


@pytest.mark.parametrize("method", ["GET", "PUT", "PATCH", "DELETE", "HEAD"])
async def test_three_people_and_three_ids(
    api: RestApi, ana: Person, bia: Person, method: str
) -> None:
    record = await create(ana)
    body = {"name": "X"} if method in ("PUT", "PATCH") else None
    mine = f"/api/contacts/{record['id']}"
    assert (await api.nobody.call(method, mine, body)).status == 401
    assert (await bia.call(method, mine, body)).status == 403
    for wrong in (NOWHERE, "xyz", record["id"] + "0", "%00", "%ff", "a%20b"):
        reply = await ana.call(method, f"/api/contacts/{wrong}", body)
        assert reply.status == 404, wrong
        if method != "HEAD":
            assert reply.body["code"] == "not_found"
    assert (await ana.call(method, mine, body)).status == 200


async def test_lists_and_creation_need_a_caller(api: RestApi) -> None:
    for reply in (
        await api.nobody.get("/api/contacts"),
        await api.nobody.post("/api/contacts", {"name": "X"}),
        await api.nobody.post("/api/contacts", {}),
    ):
        assert reply.status == 401
        assert reply.headers["WWW-Authenticate"] == "Bearer, ApiKey"
        assert reply.body["code"] == "unauthenticated"


async def test_every_fault_of_a_body_is_reported_at_once(ana: Person) -> None:
    reply = await ana.post(
        "/api/contacts",
        {"email": "nope", "phone": "x", "position": 5, "tags": ["ok", ""], "companyId": NOWHERE,
         "source": "elsewhere", "consent": "yes", "notes": "n" * 65_536},
    )  # fmt: skip
    assert reply.status == 400
    assert reply.body["code"] == "validation_error"
    assert isinstance(reply.body["error"], str)
    assert reply.body["requestId"] == reply.headers["X-Request-Id"]
    assert reply.faults == {
        "name": "required",
        "email": "invalid_email",
        "phone": "invalid_phone",
        "position": "wrong_type",
        "tags[1]": "too_short",
        "companyId": "invalid_reference",
        "source": "not_allowed",
        "consent": "wrong_type",
        "notes": "too_long",
    }


@pytest.mark.parametrize("name", [None, "", " ", "\u200b", "x" * 201, 1, True, ["x"], {}])
async def test_an_invalid_name_is_refused_on_create_and_update(ana: Person, name: Any) -> None:
    created = await ana.post("/api/contacts", {"name": name})
    assert (created.status, set(created.faults)) == (400, {"name"})
    record = await create(ana)
    updated = await ana.put(f"/api/contacts/{record['id']}", {"name": name})
    assert (updated.status, set(updated.faults)) == (400, {"name"})
    assert (await ana.get(f"/api/contacts/{record['id']}")).body == record


@pytest.mark.parametrize(
    "data",
    [
        b"", b"{", b"[1", b"null", b'"x"', b"[]", b"5", b'{"name":"a","name":"b"}',
        b'{"name":"\\ud800"}', b'{"name":"a\\u0000"}', b'{"name":NaN}', b"\xff\xfe",
        b'{"name":"x","x":1e400}', b"[" * 100_000, b'{"name":' + b"[" * 70 + b"]" * 70 + b"}",
    ],
    ids=lambda data: repr(data[:20]),
)  # fmt: skip
async def test_an_unreadable_body(ana: Person, bia: Person, data: bytes) -> None:
    headers = {"Content_Type": "application/json"}
    reply = await ana.call("POST", "/api/contacts", data=data, **headers)
    assert reply.status == 400
    assert reply.body["code"] in ("invalid_json", "validation_error")
    # not_found and forbidden take precedence.
    path = f"/api/contacts/{(await create(ana))['id']}"
    assert (await ana.call("PUT", path, data=data, **headers)).status == 400
    assert (await bia.call("PUT", path, data=data, **headers)).status == 403
    assert (await ana.call("PUT", f"/api/contacts/{NOWHERE}", data=data, **headers)).status == 404


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


async def test_the_list_has_its_envelope(ana: Person, bia: Person) -> None:
    records = [await create(ana, name=f"c{i}") for i in range(3)]
    await create(bia)
    reply = await ana.get("/api/contacts")
    assert reply.status == 200
    assert reply.body == {"data": records[::-1], "total": 3, "page": 1, "limit": 20}
    assert "Link" not in reply.headers


async def test_a_list_links_to_its_next_page(ana: Person) -> None:
    for i in range(5):
        await create(ana, name=f"joão & {i}")
    read_slice = []
    path = "/api/contacts?limit=2&search=jo%C3%A3o%20%26&page=1"
    for _ in range(3):
        reply = await ana.get(path)
        read_slice += [r["name"] for r in reply.body["data"]]
        if "Link" in reply.headers:
            path, _, relation = reply.headers["Link"].partition("; ")
            assert relation == 'rel="next"'
            path = path[1:-1]
            assert reply.body["nextCursor"] in path
    assert read_slice == [f"joão & {i}" for i in (4, 3, 2, 1, 0)]
    assert "nextCursor" not in reply.body


@pytest.mark.parametrize("digits", ["9999999999999999999", "9" * 25, "9" * 4000])
async def test_a_page_and_a_limit_of_many_digits(ana: Person, digits: str) -> None:
    await create(ana)
    for path in ("/api/contacts", "/api/tasks/calendar", "/api/activities/recent", "/api/events"):
        assert (await ana.get(f"{path}?page={digits}&limit={digits}")).status == 200
    far = (await ana.get(f"/api/contacts?page={digits}")).body
    assert far == {"data": [], "total": 1, "page": 2**63 - 1, "limit": 20}
    large = (await ana.get(f"/api/contacts?limit={digits}")).body
    assert (large["page"], large["limit"], len(large["data"])) == (1, 100, 1)


@pytest.mark.parametrize(
    "query",
    ["page=0", "page=-1", "page=x", "limit=0", "limit=abc", "limit=1000", "page=", "search=%00",
     "search=%ED%A0%80", "search=%FF", "tag=%00", "companyId=%00", "ids=%00", "companyId=zzz",
     "page=99999999999999999999", "foo=bar", "&&&", "search=" + "x" * 4000],
)  # fmt: skip
async def test_a_list_accepts_any_query(ana: Person, query: str) -> None:
    await create(ana)
    reply = await ana.get(f"/api/contacts?{query}")
    assert reply.status == 200
    assert set(reply.body) == {"data", "total", "page", "limit"}


@pytest.mark.parametrize("name", ["cursor", "sort", "updatedSince"])
async def test_a_list_refuses_an_invalid_cursor_sort_and_updated_since(
    ana: Person, name: str
) -> None:
    reply = await ana.get(f"/api/contacts?{name}=%F0%9F%98%80%00")
    assert (reply.status, reply.faults) == (400, {name: "invalid_parameter"})


async def test_methods_and_paths(api: RestApi, ana: Person) -> None:
    record = await create(ana)
    for path, allowed in (
        ("/api/contacts", {"GET", "HEAD", "POST"}),
        (f"/api/contacts/{record['id']}", {"GET", "HEAD", "PUT", "PATCH", "DELETE"}),
    ):
        for method in ("DELETE", "PUT", "POST", "TRACE", "PROPFIND"):
            if method not in allowed:
                reply = await ana.call(method, path)
                assert (reply.status, reply.body["code"]) == (405, "method_not_allowed")
                assert set(reply.headers["Allow"].replace(" ", "").split(",")) >= allowed
        options = await api.nobody.call("OPTIONS", path)
        assert (options.status, options.text) == (204, "")
        assert set(options.headers["Allow"].replace(" ", "").split(",")) >= allowed
    for path in ("/api/contacts/", f"/api/contacts/{record['id']}/", "/api/nothing", "/api"):
        reply = await ana.get(path)
        assert (reply.status, reply.body["code"]) == (404, "not_found")


async def test_head_equals_get_without_a_body(ana: Person) -> None:
    record = await create(ana)
    for path in ("/api/contacts", f"/api/contacts/{record['id']}"):
        get, head = await ana.get(path), await ana.call("HEAD", path)
        assert (head.status, head.text) == (200, "")
        for name in ("Content-Length", "Content-Type"):
            assert head.headers[name] == get.headers[name]
        assert head.headers.get("ETag") == get.headers.get("ETag")


async def test_a_read_only_key(api: RestApi, ana: Person) -> None:
    reader = await api.key_of(ana.user_id, ["read"])
    record = await create(ana)
    path = f"/api/contacts/{record['id']}"
    assert (await reader.get(path)).status == 200
    assert (await reader.get("/api/contacts")).body["total"] == 1
    for reply in (
        await reader.post("/api/contacts", {"name": "X"}),
        await reader.put(path, {"name": "X"}),
        await reader.delete(path),
    ):
        assert (reply.status, reply.body["code"]) == (403, "forbidden")
    writer = await api.key_of(ana.user_id, ["write"])
    assert (await writer.get(path)).status == 403
    assert (await writer.get("/api/contacts")).status == 403
    assert (await writer.put(path, {"name": "Y"})).status == 200


async def test_a_credential_of_raw_bytes_is_refused(api: RestApi) -> None:
    for headers in ({"X_API_Key": "\udcff"}, {"Authorization": "Bearer \udcff"}):
        assert (await api.nobody.get("/api/contacts", **headers)).status == 401
