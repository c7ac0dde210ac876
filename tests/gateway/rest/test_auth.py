"""Tests authentication by API key, token and password, and its refusals."""

import asyncio
from collections.abc import Mapping

import pytest

from gateway.domain.accounts import api_keys, tokens, users
from gateway.domain.accounts.users import CheckedAccount
from gateway.server.app_keys import CREDENTIALS, PASSWORDS
from gateway.server.config import Config, Limits
from outbox.database.transaction import Database, Tx
from outbox.ids import Ids
from tests.support.rest import Person, RestApi
from tests.support.site import PASSWORD, Site, serving

Headers = dict[str, str]


async def me(site: Site, headers: Headers) -> tuple[int, dict[str, object], Mapping[str, str]]:
    async with site.http.get("/api/me", headers=headers) as answer:
        return answer.status, await answer.json(), answer.headers


def test_keys_have_the_documented_form_and_a_checksum() -> None:
    ids = Ids()
    keys = {api_keys.make(ids) for _ in range(200)}
    assert len(keys) == 200
    for text in keys:
        assert api_keys.SHAPE.fullmatch(text)
        assert api_keys.well_formed(text)
        for at in (4, 13, 55):
            other = "0" if text[at] != "0" else "1"
            assert not api_keys.well_formed(text[:at] + other + text[at + 1 :])
    for junk in ("", "crt_", "crt_" + "é" * 8 + "_" + "a" * 43, text + "\n", f" {text}"):
        assert not api_keys.well_formed(junk)


async def test_missing_and_invalid_credentials(site: Site) -> None:
    user_id = await site.user()
    key = await site.key(user_id)
    stranger = api_keys.make(Ids())
    cases: list[Headers] = [
        {},
        {"Authorization": "Basic eDp5"},
        {"X-API-Key": ""},
        {"X-API-Key": "junk"},
        {"X-API-Key": stranger},
        {"X-API-Key": key[:-1]},
        {"Authorization": "Bearer"},
        {"Authorization": "Bearer cst_unknown"},
        {"X-API-Key": key, "Authorization": f"Bearer {stranger}"},
        {"X-API-Key": stranger, "Authorization": f"Bearer {key}"},
        {"X-API-Key": f"{key}é"},
        {"Authorization": "Bearer cst_é"},
    ]
    for headers in cases:
        status, body, answered = await me(site, headers)
        assert status == 401, headers
        assert body["code"] == "unauthenticated"
        assert answered["WWW-Authenticate"] == "Bearer, ApiKey"
        assert body["requestId"] == answered["X-Request-Id"]


async def raw(site: Site, *lines: bytes) -> bytes:
    """Return the status line of the response to a malformed request."""
    reader, writer = await asyncio.open_connection("127.0.0.1", site.port)
    head = [b"GET /api/me HTTP/1.1", b"Host: a", b"Connection: close", *lines, b"", b""]
    writer.write(b"\r\n".join(head))
    answer = await reader.readline()
    writer.close()
    return answer


@pytest.mark.parametrize("line", [b"X-API-Key: \xff", b"Authorization: Bearer cst_\xff"])
async def test_a_credential_of_raw_bytes_is_invalid(site: Site, line: bytes) -> None:
    assert b" 401 " in await raw(site, line)


async def test_two_valid_credentials_of_different_users(site: Site) -> None:
    mine = await site.key(await site.user("a@example.com"))
    theirs = await site.key(await site.user("b@example.com"))
    status, body, answered = await me(
        site, {"X-API-Key": mine, "Authorization": f"Bearer {theirs}"}
    )
    assert (status, body["code"]) == (401, "conflicting_credentials")
    assert answered["WWW-Authenticate"] == "Bearer, ApiKey"


@pytest.mark.slow
@pytest.mark.usefixtures("true_cost")
async def test_only_digests_are_stored(site: Site) -> None:
    hashed = await site.app[PASSWORDS].hash(PASSWORD)
    user_id = await site.db.write(
        users.add, email="maria@example.com", name="Maria", password_hash=hashed
    )
    key, token = await site.key(user_id), await site.token()

    async def everything(tx: Tx) -> str:
        rows = [*await tx.all("select * from api_keys"), *await tx.all("select * from tokens")]
        rows += await tx.all("select * from users")
        return repr([[row[column] for column in row.keys()] for row in rows])  # noqa: SIM118 - a row iterates over its values

    stored = await site.db.read(everything)
    assert key[:12] in stored
    assert key[13:] not in stored
    assert token[4:] not in stored
    assert PASSWORD not in stored
    assert "$argon2id$v=19$m=19456,t=2,p=1$" in stored


async def test_expired_keys_and_tokens(site: Site) -> None:
    user_id = await site.user()
    now = site.db.clock.wall()
    late = await site.key(user_id, expires_at=now - 1)
    assert (await me(site, {"X-API-Key": late}))[0] == 401
    text, account = tokens.make(site.db.ids), CheckedAccount(user_id, 1, None)
    await site.db.write(tokens.add, account, text=text, lifetime=-1)
    assert (await me(site, {"Authorization": f"Bearer {text}"}))[0] == 401
    assert await site.db.write(tokens.EXPIRY.purge, 10) == 0
    await site.db.write(tokens.add, account, text=text + "x", lifetime=-90_000)
    assert await site.db.write(tokens.EXPIRY.purge, 10) == 1


async def test_a_disabled_user_cannot_authenticate(site: Site) -> None:
    user_id = await site.user()
    key, token = await site.key(user_id), await site.token()
    await site.db.write(users.disable, user_id)
    for headers in ({"X-API-Key": key}, {"Authorization": f"Bearer {token}"}):
        assert (await me(site, headers))[0] == 401
    body = {"email": "maria@example.com", "password": PASSWORD}
    async with site.http.post("/api/auth/token", json=body) as answer:
        assert answer.status == 401


async def test_only_a_token_can_manage_keys(site: Site) -> None:
    owner, other = await site.user("a@example.com"), await site.user("b@example.com")
    key = await site.key(owner)
    bearer = {"Authorization": f"Bearer {await site.token('a@example.com')}"}
    theirs = {"Authorization": f"Bearer {await site.token('b@example.com')}"}
    for headers, status in (({}, 401), ({"X-API-Key": key}, 401), (bearer, 201)):
        async with site.http.post(
            "/api/keys", json={"name": "CI", "scopes": ["read"]}, headers=headers
        ) as answer:
            assert answer.status == status
            created = await answer.json()
    assert created["scopes"] == ["read"]
    assert created["key"].startswith(created["prefix"])
    status, body, _ = await me(site, {"X-API-Key": created["key"]})
    assert (status, body["id"], body["scopes"]) == (200, owner, ["read"])
    async with site.http.get("/api/keys", headers=bearer) as answer:
        listed = (await answer.json())["data"]
    assert {record["name"] for record in listed} == {"CI", "test"}
    assert all("key" not in record for record in listed)
    async with site.http.get("/api/keys", headers=theirs) as answer:
        assert (await answer.json())["data"] == []
    path = f"/api/keys/{created['id']}"
    for headers, status in (({}, 401), (theirs, 403), (bearer, 200), (bearer, 404)):
        async with site.http.delete(path, headers=headers) as answer:
            assert answer.status == status
    assert (await me(site, {"X-API-Key": created["key"]}))[0] == 401
    async with site.http.delete("/api/keys/nonsense", headers=bearer) as answer:
        assert answer.status == 404
    assert other


async def test_an_invalid_key_is_refused(site: Site) -> None:
    await site.user()
    bearer = {"Authorization": f"Bearer {await site.token()}"}
    for wrong, field in (
        ({"name": ""}, "name"), ({"name": "x" * 101}, "name"), ({"scopes": ["admin"]}, "scopes[0]"),
        ({"scopes": []}, "scopes"), ({"scopes": [["read"]]}, "scopes[0]"),
        ({"expiresAt": "2001-01-01"}, "expiresAt"), ({"expiresAt": 5}, "expiresAt"),
    ):  # fmt: skip
        async with site.http.post("/api/keys", json={"name": "x"} | wrong, headers=bearer) as told:
            assert (told.status, (await told.json())["details"][0]["field"]) == (400, field)


async def test_a_key_expires_at_the_end_of_its_last_day(site: Site) -> None:
    person = Person(site.http, await site.user(), {})
    bearer = {"Authorization": f"Bearer {await site.token()}"}
    for sent, zone, shown in (
        ("2999-01-31", "America/Sao_Paulo", "2999-02-01T02:59:59.999Z"),
        ("2999-01-31", "Asia/Tokyo", "2999-01-31T14:59:59.999Z"),
        ("2999-01-31T00:00:00Z", "Asia/Tokyo", "2999-01-31T00:00:00.000Z"),
        ("9999-12-31", "America/Sao_Paulo", "9999-12-31T23:59:59.999Z"),
    ):
        await RestApi(site).move(person, zone)
        body = {"name": "x", "expiresAt": sent}
        async with site.http.post("/api/keys", json=body, headers=bearer) as answer:
            assert (answer.status, (await answer.json()).get("expiresAt")) == (201, shown)


async def test_two_credentials_of_one_user_have_the_scopes_of_both(site: Site) -> None:
    user_id = await site.user()
    reads = {"X-API-Key": await site.key(user_id, ["read"])}
    token = {"Authorization": f"Bearer {await site.token()}"}
    writes = {"Authorization": f"Bearer {await site.key(user_id, ['write'])}"}

    async def statuses(headers: Headers) -> tuple[int, int, int]:
        async with site.http.post("/api/contacts", json={"name": "x"}, headers=headers) as created:
            pass
        async with site.http.get("/api/contacts", headers=headers) as listed:
            pass
        async with site.http.get("/api/keys", headers=headers) as managed:
            return created.status, listed.status, managed.status

    assert await statuses(reads) == (403, 200, 401)
    assert await statuses(token) == (201, 200, 200)
    assert await statuses(reads | token) == (201, 200, 200)
    assert await statuses(writes) == (201, 403, 403)
    assert await statuses(reads | writes) == (201, 200, 403)
    swapped = {"X-API-Key": await site.token(), "Authorization": f"Bearer {reads['X-API-Key']}"}
    assert await statuses(swapped) == (201, 200, 200)
    assert "keyId" not in (await me(site, reads | token))[1]


async def test_calls_and_sign_ins_are_limited(still: Database) -> None:
    config = Config(limits=Limits(read_per_second=1, burst=2, sign_in_per_minute=1))
    async with serving(still, config) as site:
        key = {"X-API-Key": await site.key(await site.user())}
        seen = [await me(site, key) for _ in range(3)]
        assert [status for status, _, _ in seen] == [200, 200, 429]
        _, body, headers = seen[-1]
        assert body["code"] == "rate_limited"
        assert headers["Retry-After"] == "1"
        assert headers["RateLimit-Policy"] == '"read";q=1;w=1'
        assert seen[0][2]["RateLimit"] == '"read";r=0;t=1'
        wrong = {"email": "x@example.com", "password": "wrong horse"}
        answers = []
        for _ in range(2):
            async with site.http.post("/api/auth/token", json=wrong) as answer:
                answers.append((answer.status, answer.headers.get("Retry-After")))
        assert answers[0] == (401, None)
        assert answers[1] == (429, "60")


@pytest.mark.parametrize(
    "path",
    ["/api/openapi.json", "/api/docs", "/api/docs/assets/docs.js", "/api/schemas",
     "/api/schemas/contact.created"],
)  # fmt: skip
async def test_documents_count_as_reads_of_their_address(still: Database, path: str) -> None:
    async with serving(still, Config(limits=Limits(read_per_second=1, burst=2))) as site:
        statuses = []
        for _ in range(3):
            async with site.http.get(path) as answer:
                text = await answer.text()
            statuses.append(answer.status)
        assert statuses == [200, 200, 429]
        assert "rate_limited" in text


async def test_what_was_looked_up_before_a_change_is_not_remembered(site: Site) -> None:
    """A change that comes while a credential is looked up makes it forgotten."""
    user_id = await site.user()
    key, credentials = await site.key(user_id), site.app[CREDENTIALS]
    credentials.forget()
    before, _ = await asyncio.gather(credentials.recognise(key, "api_key"), changed(site, user_id))
    after = await credentials.recognise(key, "api_key")
    assert before is not None
    assert after is not None
    assert after.zone == "Asia/Tokyo"


async def changed(site: Site, user_id: str) -> None:
    site.app[CREDENTIALS].forget()
    await site.db.write(users.change, user_id, {"timezone": "Asia/Tokyo"})
