"""What every request gets, whatever happens inside: ids, JSON errors, no leaks."""

import io
import re
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web

from gateway.app import build_app
from gateway.records.errors import Fault, Refusal
from gateway.server.config import Config, Server, load
from gateway.server.telemetry.metrics import METRICS
from outbox.database.transaction import Database, Tx
from outbox.errors import DatabaseUnavailable, OutcomeUnknown
from tests.support.site import Site, serving

# Nothing here depends on the engine.
pytestmark = pytest.mark.parametrize("db_url", ["sqlite"], indirect=True)


async def answered(site: Site, method: str, path: str, **given: Any) -> tuple[int, Any, Any]:
    async with site.http.request(method, path, **given) as answer:
        body = await answer.json() if answer.content_type == "application/json" else None
        return answer.status, body, answer.headers


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
async def test_webhooks_are_managed_in_the_console(site: Site, method: str) -> None:
    for path, allow in (("/api/webhooks", "GET,HEAD"), ("/api/webhooks/" + "0" * 24, "")):
        status, body, headers = await answered(site, method, path)
        assert (status, body["code"], headers["Allow"]) == (405, "method_not_allowed", allow)
        assert "in the console at /console/webhooks;" in body["error"]
    assert (await answered(site, "GET", "/api/webhooks/" + "0" * 24))[0] == 404


PARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


async def test_events_carry_the_request_and_its_trace(site: Site) -> None:
    key = {"X-API-Key": await site.key(await site.user()), "X-Request-Id": "my-request"}

    async def causes(tx: Tx) -> list[tuple[str, str]]:
        rows = await tx.all("select request_id, traceparent from events order by pos")
        return [(row["request_id"], row["traceparent"]) for row in rows]

    for parent in ({"traceparent": PARENT}, {}):
        body = {"name": "x"}
        made = await answered(site, "POST", "/api/contacts", json=body, headers=key | parent)
        assert made[0] == 201
    (first, child), (_, root) = await site.db.read(causes)
    assert first == "my-request"
    assert child.split("-")[1] == PARENT.split("-")[1]
    assert child.split("-")[2] != PARENT.split("-")[2]
    assert re.fullmatch(r"00-[0-9a-f]{32}-[0-9a-f]{16}-01", root)
    assert root.split("-")[1] != PARENT.split("-")[1]


async def test_a_large_body_is_refused_and_a_good_one_goes_on(site: Site) -> None:
    key = {"X-API-Key": await site.key(await site.user()), "Content-Type": "application/json"}
    big = b'{"name":"' + b"x" * 1_048_576 + b'"}'
    sent = io.BytesIO(big)
    status, body, _ = await answered(site, "POST", "/api/contacts", data=sent, headers=key)
    assert (status, body["code"]) == (413, "payload_too_large")
    status, _, _ = await answered(site, "POST", "/api/contacts", data=b'{"name":"x"}', headers=key)
    assert status == 201


@pytest.fixture
async def faulty(db: Database) -> AsyncIterator[Site]:
    """The gateway with routes that go wrong in every way."""
    faults: dict[str, BaseException] = {
        "crash": ValueError("secret detail 4711"),
        "busy": DatabaseUnavailable("busy", "SQLite: secret detail 4711"),
        "unknown": OutcomeUnknown("connection", "secret detail 4711"),
        "teapot": web.HTTPExpectationFailed(),
        "moved": web.HTTPFound("/elsewhere"),
        "refused": Refusal(
            "validation_error", "Wrong.", faults=[Fault("a", "b", "c")], facts={"allowed": ["x"]}
        ),
    }

    async def fail(request: web.Request) -> web.StreamResponse:
        raise faults[request.match_info["what"]]

    def with_faults(*args: Any, **kwargs: Any) -> web.Application:
        app = build_app(*args, **kwargs)
        app.router.add_get("/api/fail/{what}", fail)
        app.router.add_post("/api/fail/{what}", fail)
        return app

    async with serving(db, build=with_faults) as site:
        yield site


async def test_nothing_of_a_fault_leaks(faulty: Site) -> None:
    for what, status, code in (
        ("crash", 500, "internal_error"),
        ("busy", 503, "unavailable"),
        ("unknown", 503, "outcome_unknown"),
        ("teapot", 417, "validation_error"),
        ("refused", 400, "validation_error"),
    ):
        got, body, headers = await answered(faulty, "GET", f"/api/fail/{what}")
        assert (got, body["code"]) == (status, code)
        assert "4711" not in str(body) + str(headers)
        assert body["requestId"] == headers["X-Request-Id"]
        if status == 503:
            assert headers["Retry-After"] == "1"
    _, body, _ = await answered(faulty, "GET", "/api/fail/refused")
    assert body["details"] == [{"field": "a", "code": "b", "message": "c"}]
    assert body["allowed"] == ["x"]
    status, _, headers = await answered(faulty, "GET", "/api/fail/moved", allow_redirects=False)
    assert (status, headers["Location"]) == (302, "/elsewhere")
    assert headers["X-Request-Id"]
    text = faulty.app[METRICS].registry.get_sample_value(
        "http_server_requests_total",
        {"surface": "api", "route": "/api/fail/{what}", "method": "GET", "status_class": "5xx"},
    )
    assert text == 3


async def test_origins_of_the_configuration_may_be_spelled_in_any_way(db: Database) -> None:
    config = load(None, {"CARTEIRO_SERVER__CORS_ORIGINS": "HTTPS://App.Example.com.:443/"})
    async with serving(db, config) as site:
        for origin, allowed in (
            ("https://app.example.com", True), ("https://app.example.com.", True),
            ("http://app.example.com", False), ("https://app.example.com:8443", False),
            ("null", False),
        ):  # fmt: skip
            _, _, headers = await answered(site, "GET", "/api/me", headers={"Origin": origin})
            found = headers.get("Access-Control-Allow-Origin")
            assert found == (origin if allowed else None)


async def test_cors_is_off_unless_origins_are_named(db: Database) -> None:
    config = Config(server=Server(cors_origins=("https://app.example.com",)))
    async with serving(db, config) as site:
        mine = {"Origin": "https://app.example.com"}
        _, _, headers = await answered(site, "GET", "/api/me", headers=mine)
        assert headers["Access-Control-Allow-Origin"] == "https://app.example.com"
        exposed = headers["Access-Control-Expose-Headers"].split(", ")
        assert {"X-Request-Id", "Location", "Content-Disposition", "ETag"} <= {*exposed}
        assert headers["Vary"] == "Authorization, X-API-Key, Origin"
        theirs = {"Origin": "https://evil.example.com"}
        _, _, headers = await answered(site, "GET", "/api/me", headers=theirs)
        assert "Access-Control-Allow-Origin" not in headers
        assert headers["Vary"] == "Authorization, X-API-Key, Origin"
        preflight = mine | {
            "Access-Control-Request-Method": "PUT", "Access-Control-Request-Headers": "x-of-mine",
            "Access-Control-Request-Private-Network": "true",
        }  # fmt: skip
        status, _, headers = await answered(site, "OPTIONS", "/api/contacts", headers=preflight)
        assert status == 204
        accepted = headers["Access-Control-Allow-Headers"].split(", ")
        assert {"X-API-Key", "traceparent", "baggage", "x-of-mine"} <= {*accepted}
        assert headers["Access-Control-Allow-Private-Network"] == "true"
        assert headers["Vary"].startswith("Origin, Access-Control-Request-Headers")
        assert headers["Access-Control-Allow-Origin"] == "https://app.example.com"
        assert "Access-Control-Allow-Credentials" not in headers
        _, _, headers = await answered(site, "GET", "/livez", headers=mine)
        assert "Access-Control-Allow-Origin" not in headers
