"""Tests the OpenAPI document: every route, valid examples, and a snapshot."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from gateway.domain.catalogue import EVENTS
from gateway.domain.webhooks.samples import sample
from gateway.rest.document import page as docs_page
from gateway.rest.document.openapi import Components
from gateway.rest.document.operations import Shape
from outbox.sending import request
from outbox.sending.request import Request, compose, new_secret
from outbox.webhooks.operational import NAMES as OPERATIONAL
from tests.support.document import DOCUMENT, entries, faults, resolved
from tests.support.process import command
from tests.support.rest import RestApi

SNAPSHOT = Path(__file__).parents[2] / "snapshots" / "openapi.json"
VENDOR = Path(docs_page.__file__).parent / "static" / "vendor"


def test_the_snapshot_equals_the_generated_document() -> None:
    """After a change, check the diff of: carteiro openapi > tests/snapshots/openapi.json"""
    assert json.loads(SNAPSHOT.read_text()) == DOCUMENT


def test_the_command_prints_the_snapshot(tmp_path: Path) -> None:
    done = command("openapi", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout == SNAPSHOT.read_text()
    assert list(tmp_path.iterdir()) == []


async def test_the_served_document_has_every_route(api: RestApi) -> None:
    reply = await api.nobody.get("/api/openapi.json")
    assert reply.status == 200
    assert reply.headers["Content-Type"] == "application/json"
    assert reply.body == DOCUMENT
    again = await api.nobody.get("/api/openapi.json", If_None_Match=reply.headers["ETag"])
    assert (again.status, again.text) == (304, "")
    there = {
        (route.method.lower(), route.resource.canonical)
        for route in api.site.app.router.routes()
        # A route for any method refuses methods without a route.
        if route.method != "*" and route.resource and route.resource.canonical.startswith("/api/")
    }
    # The files of the page of the document, and HEAD, which every GET route has.
    there -= {("get", docs_page.ASSETS), ("head", docs_page.ASSETS)}
    assert {route for route in there if route[0] != "head"} == {(m, p) for m, p, _ in entries()}
    assert {p for m, p in there if m == "head"} == {p for m, p in there if m == "get"}


def test_two_shapes_with_the_same_name_are_refused() -> None:
    components = Components()
    components.use(Shape({"type": "object"}, {}, "Thing"))
    components.use(Shape({"type": "object"}, {}, "Thing"))
    with pytest.raises(ValueError, match="Thing"):
        components.use(Shape({"type": "string"}, "", "Thing"))


@pytest.mark.slow
def test_every_entry_is_complete_and_its_examples_are_valid() -> None:
    names = [entry["operationId"] for _, _, entry in entries()]
    assert len(names) == len({*names})
    for method, path, entry in entries():
        place = f"{method} {path}"
        assert entry["summary"], place
        assert entry["tags"], place
        in_path = [p["name"] for p in entry["parameters"] if p["in"] == "path"]
        assert in_path == re.findall(r"\{(\w+)\}", path), place
        for one in entry["parameters"]:
            assert one["description"].endswith("."), (place, one["name"])
            # A key or a tag that works once has no example.
            if "example" in one or one["name"] not in ("Idempotency-Key", "If-Match"):
                assert faults(one["schema"], one["example"]) == [], (place, one["name"])
        assert "requestBody" in entry or method not in ("put", "patch"), place
        told = {*entry["responses"]}
        if "requestBody" in entry:
            [(kind, body)] = entry["requestBody"]["content"].items()
            file = path.startswith("/api/import/") or path.endswith("/images")
            assert kind == ("application/octet-stream" if file else "application/json"), place
            assert faults(body["schema"], body["example"]) == [], place
            assert {"400", "413", "415"} <= told, place
        assert {"401", "403", "429", "503"} <= told or entry["security"] == [], place
        named = re.search(r"\{(id|event)\}", path) or path == "/api/events"
        assert ("404" in told) == bool(named), place
        assert any(status < "300" for status in told), place
        assert not {"405", "500"} & told, place
        for status, answer in entry["responses"].items():
            found = resolved(answer)
            assert found["description"], place
            assert "X-Request-Id" in found["headers"], place
            other = path == "/api/docs" or path.endswith((".csv", "{event}")) or status == "304"
            assert other or "application/json" in found["content"], place
            for media in found.get("content", {}).values():
                several = [each["value"] for each in media.get("examples", {}).values()]
                for example in several or [media["example"]]:
                    assert faults(media["schema"], example) == [], (place, status)


def test_every_event_is_a_webhook_with_exactly_its_fields() -> None:
    assert list(DOCUMENT["webhooks"]) == [*EVENTS, *OPERATIONAL]
    told = {name: list(sample(name, "a" * 24, 0)) for name in OPERATIONAL}
    for event, fields in (EVENTS | told).items():
        media = DOCUMENT["webhooks"][event]["post"]["requestBody"]["content"]["application/json"]
        data = resolved(resolved(media["schema"])["properties"]["data"])
        assert list(data["properties"]) == data["required"] == list(fields)
        assert list(media["example"]["data"]) == list(fields)
        assert faults(media["schema"], media["example"]) == []


def test_the_headers_of_deliveries_are_documented() -> None:
    secret = new_secret(b"s" * 32)
    plain = Request(
        "e" * 24, "contact.created", 1, 1, 1, "event", "https://a.example/", b"", (secret,)
    )
    full = replace(
        plain, origin="test", sequence=1, repeats=True, snapshot="j" * 24,
        traceparent=f"00-{'a' * 32}-{'b' * 16}-01", record_url="https://crm.example/api/contacts/1",
    )  # fmt: skip
    of_media = {"Content-Type", "User-Agent"}
    always, sent = (
        {name for name, _ in compose(one, service="C", now_wall=1, span_id="c" * 16)} - of_media
        for one in (plain, full)
    )
    assert sent | of_media == request.OURS - request.OF_FORMS, "the fullest delivery has all"
    of_records = {"X-Webhook-Snapshot", "X-Webhook-Record-Url"}
    for event, entry in DOCUMENT["webhooks"].items():
        parameters = entry["post"]["parameters"]
        told = sent if event in EVENTS else sent - of_records
        assert {one["name"] for one in parameters} == told
        assert {one["name"] for one in parameters if one["required"]} == always


async def test_the_page_loads_nothing_from_other_servers(api: RestApi) -> None:
    page = await api.nobody.get("/api/docs")
    assert page.status == 200
    assert page.headers["Content-Type"] == "text/html; charset=utf-8"
    policy = page.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "http" not in policy
    assert "unsafe" not in policy
    assert not re.search(r"""(src|href)=["']?(https?:)?//""", page.text)
    assert "<script>" not in page.text
    for path in re.findall(r'(?:src|href)="(/[^"]+)"', page.text):
        reply = await api.nobody.get(path)
        assert reply.status == 200, path
        assert path == "/api/openapi.json" or reply.headers["X-Content-Type-Options"] == "nosniff"
    for path in ("/api/docs/", "/api/docs/assets/nothing.js", "/api/docs/assets/..%2Fopenapi.py"):
        assert (await api.nobody.get(path)).status == 404, path


def test_vendored_files_match_their_list() -> None:
    rows = re.findall(
        r"^\| (\S+) \|.*\(([\w.-]+)\)\) \| ([0-9a-f]{64}) \|$",
        (VENDOR / "VERSIONS.md").read_text(), re.MULTILINE,
    )  # fmt: skip
    assert {name: digest for name, _, digest in rows} == {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in VENDOR.iterdir() if path.suffix in {".js", ".css"}
    }  # fmt: skip
    assert all((VENDOR / licence).is_file() for _, licence, _ in rows)
    assert (VENDOR / "swagger-ui.NOTICE").is_file()
