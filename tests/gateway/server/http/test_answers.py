"""The headers that every answer carries, and what a write tells a key that may not read."""

from typing import Any

import pytest

from gateway.server.config import Config, Metrics, Server
from outbox.database.transaction import Database
from tests.support.site import Site, serving

sqlite = pytest.mark.parametrize("db_url", ["sqlite"], indirect=True)


@sqlite
async def test_no_browser_guesses_what_an_answer_is(site: Site) -> None:
    for path in ("/livez", "/readyz", "/metrics", "/api/contacts", "/api/docs", "/console/nothing",
                 "/api/openapi.json", "/nothing", "/console/sign-in", "/"):  # fmt: skip
        async with site.http.get(path, allow_redirects=False) as answer:
            assert answer.headers["X-Content-Type-Options"] == "nosniff", path
            assert "Strict-Transport-Security" not in answer.headers
    async with site.http.get("/readyz") as answer:
        assert (answer.status, await answer.json()) == (200, {"status": "ready"})


@sqlite
async def test_no_cache_shows_a_record_to_others_and_secrets_are_not_stored(site: Site) -> None:
    key = {"X-API-Key": await site.key(await site.user())}
    for headers, path, status in (
        (key, "/api/contacts", 200), (key, "/api/reports/sales", 200), (key, "/api/nothing", 404),
        ({}, "/api/contacts", 401), (key, "/api/tasks/calendar", 200), (key, "/api/events", 200),
    ):  # fmt: skip
        async with site.http.get(path, headers=headers) as answer:
            assert answer.status == status
            assert answer.headers["Cache-Control"] == "private, no-cache"
            assert answer.headers["Vary"] == "Authorization, X-API-Key"
    async with site.http.post("/api/contacts", json={"name": "x"}, headers=key) as answer:
        assert answer.headers["Cache-Control"] == "private, no-cache"
        one, tag = answer.headers["Location"], answer.headers["ETag"]
    async with site.http.get(one, headers=key | {"If-None-Match": tag}) as answer:
        assert (answer.status, answer.headers["Vary"]) == (304, "Authorization, X-API-Key")
    token = {"Authorization": f"Bearer {await site.token()}"}
    for path in ("/api/keys", "/api/me"):
        async with site.http.get(path, headers=token) as answer:
            assert answer.headers["Cache-Control"] == "no-store"


@sqlite
async def test_a_key_that_may_not_read_is_told_the_id_alone(site: Site) -> None:
    owner = await site.user()
    both = {"X-API-Key": await site.key(owner), "Idempotency-Key": "k"}
    writes = {"X-API-Key": await site.key(owner, ["write"]), "Idempotency-Key": "k"}
    contact = {"name": "Maria", "notes": "private"}

    async def call(who: dict[str, str], method: str, path: str, body: Any = None) -> Any:
        async with site.http.request(method, path, json=body, headers=who) as answer:
            assert answer.status in (200, 201), (path, await answer.text())
            return await answer.json(), answer.headers

    whole, _ = await call(both, "POST", "/api/contacts", contact)
    assert whole["notes"] == "private"
    alone = {"id": whole["id"]}
    # The stored answer is that of another key.
    said, headers = await call(writes, "POST", "/api/contacts", contact)
    assert (said, headers["ETag"], headers["Idempotent-Replayed"]) == (alone, '"1"', "true")
    for method, body in (("PUT", {}), ("PATCH", {"name": "Ana"})):
        said, headers = await call(writes, method, f"/api/contacts/{whole['id']}", body)
        assert (said, "ETag" in headers) == (alone, True)
    # And what such a key stored is whole for those who may read.
    writes["Idempotency-Key"] = both["Idempotency-Key"] = "t"
    said, _ = await call(writes, "POST", "/api/tasks", {"title": "Call"})
    assert said.keys() == {"id"}
    assert (await call(both, "POST", "/api/tasks", {"title": "Call"}))[0]["title"] == "Call"
    said, _ = await call(writes, "POST", f"/api/tasks/{said['id']}/complete")
    assert said.keys() == {"id"}


@sqlite
async def test_metrics_are_told_under_names_of_ours(db: Database) -> None:
    config = Config(
        server=Server(public_url="https://crm.example.com"),
        metrics=Metrics(hosts=("scrape.internal",), token="t"),
    )
    async with serving(db, config) as site:
        for host, status in (
            ("127.0.0.1", 200), ("127.0.0.1:9090", 200), ("[::1]:9090", 200),
            ("localhost:9090", 200), ("carteiro", 200), ("crm.example.com", 200),
            ("CRM.example.com.:443", 200), ("scrape.internal:8080", 200), ("evil.example", 403),
            ("127.0.0.1.evil.example", 403), ("crm.example.com.evil.example", 403), (".", 403),
        ):  # fmt: skip
            async with site.http.get("/metrics", headers={"Host": host}) as answer:
                assert answer.status == status, host
                if status == 403:
                    assert "[metrics] hosts" in await answer.text()
            admitted = {"Host": host, "Authorization": "Bearer t"}
            async with site.http.get("/metrics", headers=admitted) as answer:
                assert answer.status == 200
