"""Tests the OpenAPI document: every route, valid examples, and a snapshot."""

from __future__ import annotations

import hashlib
import importlib
import json
import pkgutil
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import gateway.rest
from gateway.domain.catalogue import EVENTS
from gateway.domain.webhooks.samples import sample
from gateway.rest.document import page as docs_page
from gateway.rest.document.openapi import Components
from gateway.rest.document.operations import Operation, Shape
from gateway.rest.routes import ROUTES
from outbox.sending import request
from outbox.sending.request import Request, compose, new_secret
from outbox.webhooks.operational import NAMES as OPERATIONAL
from tests.support.document import DOCUMENT, entries, faults, resolved
from tests.support.process import command
from tests.support.rest import RestApi

# These tests do not depend on the engine.
served = pytest.mark.parametrize("db_url", ["sqlite"], indirect=True)

SNAPSHOT = Path(__file__).parents[2] / "snapshots" / "openapi.json"
ASSET_FOLDER = Path(docs_page.__file__).parent / "static"


every_entry = pytest.mark.parametrize(
    ("method", "path", "entry"), [pytest.param(*e, id=f"{e[0]} {e[1]}") for e in entries()]
)


def test_the_snapshot_equals_the_generated_document() -> None:
    """After a change, check the diff of: carteiro openapi > tests/snapshots/openapi.json"""
    assert json.loads(SNAPSHOT.read_text()) == DOCUMENT


def test_the_command_prints_the_snapshot(tmp_path: Path) -> None:
    done = command("openapi", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout == SNAPSHOT.read_text()
    assert list(tmp_path.iterdir()) == []


@served
async def test_the_served_document_is_the_generated_one(api: RestApi) -> None:
    reply = await api.nobody.get("/api/openapi.json")
    assert reply.status == 200
    assert reply.headers["Content-Type"] == "application/json"
    assert reply.body == DOCUMENT
    again = await api.nobody.get("/api/openapi.json", If_None_Match=reply.headers["ETag"])
    assert (again.status, again.text) == (304, "")


@served
async def test_every_served_route_has_an_entry_and_every_entry_a_route(api: RestApi) -> None:
    there = {
        (route.method.lower(), route.resource.canonical)
        for route in api.site.app.router.routes()
        # A route for any method refuses methods without a route.
        if route.method != "*"
        and route.resource is not None
        and route.resource.canonical.startswith("/api/")
    }
    # The files of the page of the document, and HEAD, which every GET route has.
    there -= {("get", docs_page.ASSETS), ("head", docs_page.ASSETS)}
    assert {route for route in there if route[0] != "head"} == {(m, p) for m, p, _ in entries()}
    assert {p for m, p in there if m == "head"} == {p for m, p in there if m == "get"}


def test_every_described_operation_has_a_route() -> None:
    routed = {id(operation) for _, _, operation in ROUTES}
    lost = []
    for module in pkgutil.iter_modules(gateway.rest.__path__, "gateway.rest."):
        for name, value in vars(importlib.import_module(module.name)).items():
            if isinstance(value, Operation) and id(value) not in routed:
                lost.append(f"{module.name}.{name}")
    assert lost == []


def test_two_shapes_with_the_same_name_are_refused() -> None:
    components = Components()
    components.use(Shape({"type": "object"}, {}, "Thing"))
    components.use(Shape({"type": "object"}, {}, "Thing"))
    with pytest.raises(ValueError, match="Thing"):
        components.use(Shape({"type": "string"}, "", "Thing"))


@every_entry
def test_every_entry_is_complete(method: str, path: str, entry: dict[str, Any]) -> None:
    assert entry["summary"]
    assert entry["tags"]
    assert isinstance(entry["security"], list)
    in_path = [p["name"] for p in entry["parameters"] if p["in"] == "path"]
    assert in_path == re.findall(r"\{(\w+)\}", path)
    for parameter in entry["parameters"]:
        assert parameter["description"].endswith("."), parameter["name"]
        assert faults(parameter["schema"], parameter["example"]) == [], parameter["name"]
    if "requestBody" in entry:
        [(kind, body)] = entry["requestBody"]["content"].items()
        file = path.startswith("/api/import/")
        assert kind == ("application/octet-stream" if file else "application/json")
        assert faults(body["schema"], body["example"]) == []
    elif method in ("put", "patch"):
        pytest.fail("a change without a body")
    successes = [status for status in entry["responses"] if status.startswith("2")]
    assert successes


@pytest.mark.slow
@every_entry
def test_every_response_has_a_schema_and_a_valid_example(
    method: str, path: str, entry: dict[str, Any]
) -> None:
    for status, answer in entry["responses"].items():
        told = resolved(answer)
        assert told["description"]
        assert "X-Request-Id" in told["headers"]
        if status == "304":
            continue
        other = path == "/api/docs" or path.startswith("/api/export/")
        assert "application/json" in told["content"] or other
        for media in told["content"].values():
            several = [each["value"] for each in media.get("examples", {}).values()]
            for example in several or [media["example"]]:
                assert faults(media["schema"], example) == [], status


@every_entry
def test_statuses_follow_from_the_kind_of_operation(
    method: str, path: str, entry: dict[str, Any]
) -> None:
    told = set(entry["responses"])
    guarded = entry["security"] != []
    assert {"401", "403", "429", "503"} <= told or not guarded
    assert ("404" in told) == ("{id}" in path)
    assert {"400", "413", "415"} <= told or "requestBody" not in entry
    assert not {"405", "500"} & told


def test_every_event_is_a_webhook_with_exactly_its_fields() -> None:
    assert list(DOCUMENT["webhooks"]) == [*EVENTS, *OPERATIONAL]
    told = {name: list(sample(name, "a" * 24, 0)) for name in OPERATIONAL}
    for event, fields in (EVENTS | told).items():
        media = DOCUMENT["webhooks"][event]["post"]["requestBody"]["content"]["application/json"]
        data = resolved(resolved(media["schema"])["properties"]["data"])
        assert list(data["properties"]) == list(fields)
        assert data["required"] == list(fields)
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
    assert sent | of_media == request.OURS, "the fullest delivery has all"
    of_records = {"X-Webhook-Snapshot", "X-Webhook-Record-Url"}
    for event, entry in DOCUMENT["webhooks"].items():
        parameters = entry["post"]["parameters"]
        told = sent if event in EVENTS else sent - of_records
        assert {one["name"] for one in parameters} == told
        assert {one["name"] for one in parameters if one["required"]} == always


@served
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
    folder = ASSET_FOLDER / "vendor"
    rows = re.findall(
        r"^\| (\S+) \|.*\(([\w.-]+)\)\) \| ([0-9a-f]{64}) \|$",
        (folder / "VERSIONS.md").read_text(),
        re.MULTILINE,
    )
    assert {name: digest for name, _, digest in rows} == {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.iterdir()
        if path.suffix in {".js", ".css"}
    }
    assert all((folder / licence).is_file() for _, licence, _ in rows)
    assert (folder / "swagger-ui.NOTICE").is_file()
