"""Tests the OpenAPI document: every route, valid examples, and a snapshot."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from gateway.rest.document.openapi import Components
from gateway.rest.document.operations import Shape
from tests.support.document import DOCUMENT
from tests.support.process import command
from tests.support.rest import RestApi

# These tests do not depend on the engine.
served = pytest.mark.parametrize("db_url", ["sqlite"], indirect=True)

SNAPSHOT = Path(__file__).parents[2] / "snapshots" / "openapi.json"


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


def test_two_shapes_with_the_same_name_are_refused() -> None:
    components = Components()
    components.use(Shape({"type": "object"}, {}, "Thing"))
    components.use(Shape({"type": "object"}, {}, "Thing"))
    with pytest.raises(ValueError, match="Thing"):
        components.use(Shape({"type": "string"}, "", "Thing"))


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
