"""MCP over HTTP: both ways to agree on a revision, bad messages, origins, credentials."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest
from multidict import CIMultiDict

from gateway.mcp.messages import (
    EARLIER,
    META,
    REVISIONS,
    Message,
    ProtocolError,
    decoded,
    encoded,
    error,
    revision_of,
)
from gateway.server.config import Config, Limits, Server
from outbox.database.transaction import Database
from tests.gateway.rest.test_scans import occupied, waiting
from tests.support.mcp import ABOUT, PATH, call, headers, message, post
from tests.support.rest import UNLIMITED, Person, RestApi
from tests.support.site import serving
from tests.support.tables import in_turn

CALL = message("tools/call", name="search", arguments={"query": "ana"})
ABSENT = "(absent)"
OLD = {"jsonrpc": "2.0", "id": 7, "method": "ping"}


async def test_the_newest_revision_needs_no_handshake(ana: Person) -> None:
    reply = await post(ana, "server/discover")
    found = reply.body["result"]
    assert reply.status == 200
    assert "Mcp-Session-Id" not in reply.headers
    assert found["resultType"] == "complete"
    assert found["supportedVersions"] == list(REVISIONS)
    assert (found["capabilities"], found["cacheScope"]) == ({"tools": {}}, "public")
    assert found["_meta"][f"{META}serverInfo"]["name"] == "carteiro"
    listed = (await post(ana, "tools/list")).body["result"]
    assert listed["ttlMs"] > 0
    assert listed["tools"] == (await post(ana, "tools/list")).body["result"]["tools"]
    assert (await call(ana, "search", query="ana")).content == {"data": []}


@pytest.mark.parametrize(
    ("asked", "agreed"), [*((one, one) for one in EARLIER), ("1900-01-01", EARLIER[0])]
)
async def test_an_earlier_client_begins_with_initialize(
    ana: Person, asked: str, agreed: str
) -> None:
    about = {"protocolVersion": asked, "capabilities": {}, "clientInfo": {"name": "Old"}}
    begun = await ana.post(PATH, {**OLD, "method": "initialize", "params": about})
    result = begun.body["result"]
    assert (result["protocolVersion"], result["serverInfo"]["name"]) == (agreed, "carteiro")
    assert "Mcp-Session-Id" not in begun.headers
    noted = await ana.post(PATH, {"jsonrpc": "2.0", "method": "notifications/initialized"})
    assert (noted.status, noted.text) == (202, "")
    said = {"MCP_Protocol_Version": agreed}
    assert (await ana.post(PATH, OLD, **said)).body == {"jsonrpc": "2.0", "id": 7, "result": {}}
    listed = (await ana.post(PATH, {**OLD, "method": "tools/list"}, **said)).body["result"]
    assert set(listed) == {"tools"}
    unknown = await ana.post(PATH, {**OLD, "method": "resources/list"}, **said)
    # Clients of these revisions read no body of a response with an error's status.
    assert (unknown.status, unknown.body["error"]["code"]) == (200, -32601)


def lacking(key: str) -> dict[str, Any]:
    return message("tools/list", meta={k: v for k, v in ABOUT.items() if k != f"{META}{key}"})


def of_revision(revision: str) -> dict[str, Any]:
    return message("tools/list", meta={**ABOUT, f"{META}protocolVersion": revision})


BAD: Mapping[str, tuple[Any, dict[str, str], int, int]] = {
    "no JSON": (b"{", {}, 400, -32700),
    "no UTF-8": (b'{"jsonrpc":"\xff"}', {}, 400, -32700),
    "too deep": (b"[" * 100_000, {}, 400, -32700),
    "a batch": ([CALL, CALL], {}, 400, -32600),
    "a text": ("tools/list", {}, 400, -32600),
    "a response": ({"jsonrpc": "2.0", "id": 1, "result": {}}, {}, 400, -32600),
    "no version of JSON-RPC": ({"id": 1, "method": "ping"}, {}, 400, -32600),
    "null as id": ({**OLD, "id": None}, {}, 400, -32600),
    "a fraction as id": ({**OLD, "id": 1.5}, {}, 400, -32600),
    "a list as params": ({**OLD, "params": []}, {}, 400, -32602),
    "an unknown method": (message("prompts/list"), {}, 404, -32601),
    "initialize in the newest revision": (message("initialize"), {}, 404, -32601),
    "an unknown revision": (of_revision("1900-01-01"), {}, 400, -32022),
    "an unknown revision of an earlier client": (
        OLD, {"MCP_Protocol_Version": "1900-01-01"}, 400, -32022,
    ),
    "no _meta": ({**OLD, "method": "server/discover"}, {}, 400, -32602),
    "no capabilities": (lacking("clientCapabilities"), {}, 400, -32602),
    "another revision in the header": (CALL, {"MCP_Protocol_Version": "2025-11-25"}, 400, -32020),
    "another method in the header": (CALL, {"Mcp_Method": "tools/list"}, 400, -32020),
    "another tool in the header": (CALL, {"Mcp_Name": "delete"}, 400, -32020),
    "a damaged name in the header": (CALL, {"Mcp_Name": "=?base64?x?="}, 400, -32020),
    "no method in the header": (CALL, {"Mcp_Method": ABSENT}, 400, -32020),
    "an unknown tool": (message("tools/call", name="serch"), {}, 400, -32602),
    "no tool": (message("tools/call"), {}, 400, -32602),
    "arguments in a list": (message("tools/call", name="get", arguments=[]), {}, 400, -32602),
    "a cursor": (message("tools/list", cursor="x"), {}, 400, -32602),
}  # fmt: skip


@in_turn("name", BAD)
async def test_a_bad_message_is_an_error_of_the_protocol(ana: Person, name: str) -> None:
    sent, given, status, code = BAD[name]
    if isinstance(sent, bytes):
        reply = await ana.call("POST", PATH, data=sent, Content_Type="application/json")
    else:
        mirrored = headers(sent) if isinstance(sent, dict) and "_meta" in str(sent) else {}
        if sent == of_revision("1900-01-01"):
            mirrored["MCP_Protocol_Version"] = "1900-01-01"
        said = {n: text for n, text in {**mirrored, **given}.items() if text != ABSENT}
        reply = await ana.post(PATH, sent, **said)
    error = reply.body["error"]
    assert (reply.status, error["code"]) == (status, code), reply.text
    assert reply.body["jsonrpc"] == "2.0"
    known = isinstance(sent, dict) and type(sent.get("id")) is int
    assert reply.body.get("id") == (sent["id"] if known else None)
    assert error["message"].endswith(".")
    if code == -32022:
        assert error["data"] == {"supported": list(REVISIONS), "requested": "1900-01-01"}
    if name == "an unknown tool":
        assert error["data"]["nearest"] == "search"


def test_a_revision_in_a_header_may_be_no_text() -> None:
    # aiohttp's server reads bytes that are no UTF-8 as surrogates; its client sends none.
    with pytest.raises(ProtocolError) as refused:
        revision_of(Message("ping", id=1), CIMultiDict({"MCP-Protocol-Version": "\udcff"}))
    assert rb"\\udcff" in msgspec.json.encode(error(refused.value))


async def test_a_name_in_a_header_may_be_encoded(ana: Person) -> None:
    assert (decoded(encoded("Ação")), encoded("search"), decoded("=?base64?!?=")) == (
        "Ação", "search", "=?base64?!?=",
    )  # fmt: skip
    said = headers(CALL) | {"Mcp_Name": "=?base64?c2VhcmNo?="}
    assert (await ana.post(PATH, CALL, **said)).status == 200


async def test_only_json_of_a_bounded_size_is_read(ana: Person) -> None:
    large = json.dumps(message("tools/list", filler="x" * 10_485_760)).encode()
    refused = await ana.call("POST", PATH, data=large, Content_Type="application/json")
    assert (refused.status, refused.body["error"]["data"]["code"]) == (413, "payload_too_large")
    text = await ana.call("POST", PATH, data=b"{}", Content_Type="text/plain")
    assert (text.status, text.body["error"]["data"]["code"]) == (415, "unsupported_media_type")


async def test_without_a_key_it_says_how_to_make_one(api: RestApi) -> None:
    wrong = Person(api.site.http, "", {"Authorization": "Bearer crt_no"})
    for who in (api.nobody, wrong):
        reply = await post(who, "tools/list")
        assert (reply.status, reply.headers["WWW-Authenticate"]) == (401, "Bearer")
        assert reply.body["error"]["data"] == {"code": "unauthenticated"}
        assert "/console/keys" in reply.body["error"]["message"]
        # A client that is not known may not make the server read megabytes.
        large = await who.call("POST", PATH, data=b" " * 200_000, Content_Type="application/json")
        assert large.status == 401


@in_turn("method", ["GET", "DELETE", "PUT", "HEAD"])
async def test_there_are_neither_streams_nor_sessions(ana: Person, method: str) -> None:
    reply = await ana.call(method, PATH)
    assert (reply.status, reply.headers["Allow"]) == (405, "POST")


@pytest.mark.parametrize(
    ("public_url", "origin", "status"),
    [
        ("", "http://localhost:6274", 200),
        ("", "http://[::1]:80", 200),
        ("", "https://evil.example", 403),
        ("", "http://localhost.evil.example", 403),
        ("", "null", 403),
        ("", "http://[", 403),
        ("https://crm.example.com", "https://CRM.example.com", 200),
        ("https://crm.example.com", "https://app.example.com", 200),
        ("https://crm.example.com", "http://localhost:6274", 403),
    ],
)
async def test_pages_of_other_origins_are_refused(
    file: Database, public_url: str, origin: str, status: int
) -> None:
    server = Server(public_url=public_url, cors_origins=("https://app.example.com",))
    async with serving(file, Config(limits=UNLIMITED.limits, server=server)) as site:
        who = await RestApi(site).person()
        # A page that has made its own name one of this machine sends it as Host, too.
        host = origin.rpartition("/")[2]
        reply = await who.post(PATH, CALL, **headers(CALL), Origin=origin, Host=host)
    assert reply.status == status, reply.text
    allowed = reply.headers.get("Access-Control-Allow-Origin")
    assert allowed == (origin if origin == "https://app.example.com" else None)
    if status == 403:
        assert "cors_origins" in reply.body["error"]["message"]


async def test_it_counts_and_limits_like_the_rest_api(still: Database) -> None:
    async with serving(still, Config(limits=Limits(read_per_second=1, burst=3))) as site:
        who = await RestApi(site).person()
        replies = [await post(who, "tools/list") for _ in range(5)]
        metrics = await who.get("/metrics")
    statuses = [reply.status for reply in replies]
    assert set(statuses) == {200, 429}
    late = replies[statuses.index(429)]
    assert late.body["error"]["data"]["code"] == "rate_limited"
    assert int(late.headers["Retry-After"]) >= 1
    assert 'route="/mcp"' in metrics.text
    assert 'http_requests_rejected_total{reason="rate_limited",surface="mcp"}' in metrics.text


async def test_a_client_that_goes_ends_its_call(api: RestApi, ana: Person) -> None:
    async with occupied(api.db):
        search = asyncio.create_task(call(ana, "search", query="a"))
        await waiting(api.db, 1)
        search.cancel()
        await waiting(api.db, 0)
