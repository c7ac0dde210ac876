"""Statuses, media types and headers of /graphql, beside the audits of graphql-http."""

import asyncio
import json
from typing import Any

import aiohttp
import pytest

from gateway.graphql import execution
from gateway.graphql.execution import JSON
from gateway.graphql.view import GRAPHQL, HTML, chosen
from gateway.server.app_keys import DIRECTORY
from gateway.server.config import Config, Limits
from gateway.server.telemetry.metrics import METRICS
from outbox.database.transaction import Database
from tests.support.log_lines import Lines
from tests.support.rest import Reply, RestApi
from tests.support.shop import Shop, opened

QUERY = {"query": "{ __typename }"}
STORE = 'query { store(hostname: "shop.example") { name } }'


async def broken(hostname: str) -> Any:
    raise RuntimeError("a secret detail")


async def forever(hostname: str) -> Any:
    await asyncio.Event().wait()


def code(reply: Reply) -> str:
    return str(reply.body["errors"][0]["extensions"]["code"])


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        ("", JSON), ("*/*", JSON), (JSON, JSON), (GRAPHQL, GRAPHQL),
        (f"{GRAPHQL}, {JSON}", GRAPHQL),
        (f"{JSON}, {GRAPHQL}", JSON), (f"{GRAPHQL};q=0.5, {JSON};q=0.4", GRAPHQL),
        (f"{GRAPHQL};q=0.1, */*;q=0.9", JSON), (f"{JSON};q=0, {GRAPHQL}", GRAPHQL),
        ("application/*", JSON), ("text/plain", JSON), (f"{GRAPHQL};q=x", JSON), (HTML, JSON),
    ],
)  # fmt: skip
def test_the_media_type_is_negotiated(accept: str, expected: str) -> None:
    assert chosen(accept) == expected


async def test_bodies_that_are_no_request(api: RestApi) -> None:
    bodies: list[Any] = [
        [], [QUERY], "x", 1, None, {}, {"query": None}, {"query": 1}, {"query": ["{ a }"]},
        {**QUERY, "variables": []}, {**QUERY, "variables": "{}"}, {**QUERY, "operationName": 1},
        {**QUERY, "extensions": 1},
    ]  # fmt: skip
    texts = [json.dumps(body).encode() for body in bodies]
    texts += [
        b"",
        b"{",
        b"\xff",
        b'{"query": NaN}',
        b"[" * 100_000,
        b'{"query":"{a}","query":"{b}"}',
    ]
    for text in texts:
        for accept in (JSON, GRAPHQL):
            reply = await api.nobody.call(
                "POST", "/graphql", data=text, Content_Type=JSON, Accept=accept
            )
            assert (reply.status, code(reply)) == (400, "BAD_USER_INPUT"), text[:40]
            assert reply.headers["Content-Type"] == f"{accept}; charset=utf-8"
            assert "data" not in reply.body
            assert reply.body["errors"][0]["extensions"]["requestId"]


async def test_only_json_is_read(api: RestApi) -> None:
    text = json.dumps(QUERY).encode()
    for kind in (
        "", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x",
        "application/graphql", "application/json; charset=utf-16", "application/jsonx",
    ):  # fmt: skip
        headers = {"Content_Type": kind} if kind else {}
        for accept in (JSON, GRAPHQL):
            reply = await api.nobody.call("POST", "/graphql", data=text, Accept=accept, **headers)
            assert (reply.status, code(reply)) == (415, "BAD_USER_INPUT"), kind
    zipped = await api.nobody.call(
        "POST", "/graphql", data=text, Content_Type=JSON, Content_Encoding="gzip"
    )
    assert zipped.status == 415


@pytest.mark.parametrize("db_url", ["sqlite"], indirect=True)
async def test_what_clients_leave_empty_is_absent(shop: Shop) -> None:
    """As urql, Apollo, Relay and editors write it (GraphQL over HTTP, sections 5.3 and 5.4)."""
    bodies: tuple[dict[str, Any], ...] = (
        {"operationName": ""}, {"operationName": None}, {"variables": ""}, {"variables": None},
        {"extensions": ""}, {"extensions": {}}, {"operationName": "", "variables": {}},
    )  # fmt: skip
    for more in bodies:
        answer = await shop.api.nobody.post("/graphql", {**QUERY, **more})
        assert (answer.status, list(answer.body)) == (200, ["data"]), more
    for text in ("operationName=", "variables=", "extensions=", "variables=null", "variables={}",
                 "operationName=&variables=&extensions="):  # fmt: skip
        answer = await shop.api.nobody.get(f"/graphql?query={{__typename}}&{text}")
        assert (answer.status, list(answer.body)) == (200, ["data"]), text
    # In a query string this is a name.
    named = "/graphql?query=query null {__typename}&operationName=null"
    assert list((await shop.api.nobody.get(named)).body) == ["data"]
    for query in ("", None):
        sent = {"query": query, "extensions": {"persistedQuery": {"sha256Hash": "0" * 64}}}
        answer = await shop.api.nobody.post("/graphql", sent)
        assert code(answer) == "PERSISTED_QUERY_NOT_SUPPORTED"


async def test_get_runs_queries_only(shop: Shop) -> None:
    get = shop.api.nobody.get
    assert (await get(f"/graphql?query={STORE}")).body["data"]["store"]["name"] == "Coffee Shop"
    text = "query ($h: String!) { store(hostname: $h) { name } }"
    variables = json.dumps({"h": "shop.example"})
    found = await get(f"/graphql?query={text}&variables={variables}")
    assert found.body["data"]["store"]["name"] == "Coffee Shop"
    mutation = (
        'mutation { shoppingCartClear(input: {hostname: "shop.example"}) { clientMutationId } }'
    )
    refused = await get(f"/graphql?query={mutation}")
    assert (refused.status, refused.headers["Allow"]) == (405, "POST")
    both = f"query A {{ __typename }} {mutation.replace('mutation', 'mutation B', 1)}"
    assert (await get(f"/graphql?query={both}&operationName=A")).status == 200
    assert (await get(f"/graphql?query={both}&operationName=B")).status == 405
    assert (await get("/graphql")).status == 400
    assert (await get("/graphql?query={__typename}&variables=x")).status == 400


async def test_other_methods_are_refused_in_the_form_of_graphql(api: RestApi) -> None:
    for method in ("PUT", "PATCH", "DELETE"):
        reply = await api.nobody.call(method, "/graphql")
        assert (reply.status, code(reply)) == (405, "METHOD_NOT_ALLOWED")
        assert reply.headers["Allow"] == "GET, HEAD, OPTIONS, POST"
    missing = await api.nobody.get("/graphql/none")
    assert (missing.status, code(missing)) == (404, "NOT_FOUND")


async def test_errors_of_a_document_have_the_status_of_the_media_type(shop: Shop) -> None:
    cases: list[dict[str, Any]] = [
        {"query": "{"}, {"query": "{ unknown }"}, {"query": "query A { a } query B { b }"},
        {"query": "query A { __typename }", "operationName": "B"},
        {"query": "query ($h: String!) { store(hostname: $h) { id } }"},
        {"query": "{ " + "a " * 2_000 + "}"},
    ]  # fmt: skip
    for body in cases:
        for accept, status in ((JSON, 200), (GRAPHQL, 400)):
            reply = await shop.api.nobody.post("/graphql", body, Accept=accept)
            assert reply.status == status
            assert "data" not in reply.body
            assert code(reply) in ("BAD_USER_INPUT", "QUERY_TOO_COMPLEX")
    # A field that fails is no error of the request.
    failed = await shop.api.nobody.post(
        "/graphql", {"query": '{ store(hostname: "none") { id } }'}, Accept=GRAPHQL
    )
    assert (failed.status, failed.body["data"]) == (200, {"store": None})


async def test_an_internal_fault_is_masked_and_logged(shop: Shop, lines: Lines) -> None:
    # The directory of stores fails as no code of ours should.
    shop.api.site.app[DIRECTORY].find = broken  # type: ignore[method-assign]
    answer = await shop.browser().send(STORE, X_Request_Id="fault-1")
    assert (answer.status, answer.code) == (200, "INTERNAL_SERVER_ERROR")
    assert answer.error["extensions"]["requestId"] == "fault-1"
    assert "secret" not in str(answer.body)
    logged = b"".join(lines.raw).decode()
    assert "a secret detail" in logged
    assert "fault-1" in logged


async def test_an_operation_ends_at_its_deadline(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(execution, "SECONDS", 0.05)
    shop.api.site.app[DIRECTORY].find = forever  # type: ignore[method-assign]
    answer = await shop.browser().send(STORE)
    assert (answer.status, answer.code) == (200, "EXECUTION_TIMEOUT")
    assert answer.body["data"] is None


async def test_a_long_response_counts_as_several_requests(still: Database) -> None:
    query = """query ($h: String!, $n: Int!) { products(hostname: $h, first: $n) {
      nodes { id title slug price sku stock currency available description createdAt
        reviews(first: 3) { nodes { id stars text author } } } } }"""
    async with opened(still, Config(limits=Limits(storefront_per_minute=10))) as shop:
        browser = shop.browser()
        sent: Any = {"h": shop.hostname, "n": 10}
        short = await browser.send(query, sent)
        assert short.headers["RateLimit"].startswith('"storefront";r=9')
        long = await browser.send(query, sent | {"n": 100})
        assert long.headers["RateLimit"].startswith('"storefront";r=6')
        for _ in range(2):
            assert (await browser.send(query, sent | {"n": 100})).status == 200
        refused = await browser.send(query, sent)
        assert (refused.status, refused.code) == (429, "RATE_LIMITED")


async def test_a_document_that_is_not_valid_counts_as_several_requests(still: Database) -> None:
    async with opened(still, Config(limits=Limits(storefront_per_minute=10))) as shop:
        browser = shop.browser()
        for rest in (5, 0):
            refused = await browser.send("{ unknown }")
            assert refused.headers["RateLimit"].startswith(f'"storefront";r={rest}')
        assert (await browser.send("{ unknown }")).status == 429


async def test_operations_are_counted_by_their_outcome(shop: Shop) -> None:
    browser = shop.browser()
    metrics = shop.api.site.app[METRICS].registry

    def counted(kind: str, outcome: str) -> float:
        labels = {"type": kind, "outcome": outcome}
        return metrics.get_sample_value("graphql_operations_total", labels) or 0.0

    clear = 'mutation { shoppingCartClear(input: {hostname: "none"}) { clientMutationId } }'
    for text, kind, outcome in (
        ("{ __typename }", "query", "ok"),
        (clear, "mutation", "error"),
        ("{", "unknown", "rejected_parse"),
        ("{ unknown }", "unknown", "rejected_parse"),
        ("{ " + "a " * 2_000 + "}", "unknown", "rejected_tokens"),
        ("{ a " * 50 + "}" * 50, "unknown", "rejected_depth"),
        ("{ " + "a " * 101 + "}", "unknown", "rejected_cost"),
    ):
        before = counted(kind, outcome)
        await browser.send(text)
        assert counted(kind, outcome) == before + 1, text[:20]


async def test_a_persisted_query_is_declined_as_clients_expect(shop: Shop) -> None:
    digest = {"persistedQuery": {"version": 1, "sha256Hash": "0" * 64}}
    query = "{ __typename }"
    path = f"{shop.api.site.url}/graphql"
    async with aiohttp.ClientSession() as session:
        for accept in ("application/json", "application/graphql-response+json"):
            headers = {"Accept": accept}
            async with session.post(path, json={"extensions": digest}, headers=headers) as reply:
                [error] = (await reply.json(content_type=None))["errors"]
                assert (reply.status, error["message"]) == (200, "PersistedQueryNotSupported")
                assert error["extensions"]["code"] == "PERSISTED_QUERY_NOT_SUPPORTED"
        sent = {"extensions": json.dumps(digest)}
        async with session.get(path, params=sent) as reply:
            [error] = (await reply.json())["errors"]
            assert (reply.status, error["message"]) == (200, "PersistedQueryNotSupported")
        # As clients send it again.
        async with session.post(path, json={"query": query, "extensions": digest}) as reply:
            assert await reply.json() == {"data": {"__typename": "Query"}}
        async with session.post(path, json={"extensions": {"persistedQuery": None}}) as reply:
            assert (await reply.json())["errors"][0]["extensions"]["code"] == "BAD_USER_INPUT"
