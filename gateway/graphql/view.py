"""Serves /graphql: examines the request, executes its document, writes the response.

The header Accept chooses the media type of results, and of refusals of the request itself.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import msgspec
from aiohttp import web

from gateway.graphql import graphiql
from gateway.graphql.document_limits import CHARACTERS
from gateway.graphql.errors import extensions, misdirection, render
from gateway.graphql.execution import JSON, OperationRequest, from_body, from_query, run
from gateway.graphql.graphiql import GRAPHIQL
from gateway.graphql.parsed_documents import Documents
from gateway.graphql.request_checks import HEADERS, METHODS, VARY, admit, must_be_allowed
from gateway.graphql.request_context import RequestContext
from gateway.graphql.store_language import language_of, say_of
from gateway.records.errors import Refusal
from gateway.server.app_keys import DIRECTORY, REQUEST_ID
from gateway.server.http import cors
from gateway.server.telemetry.metrics import METRICS

DOCUMENTS = web.AppKey("DOCUMENTS", Documents)
PATH = "/graphql"
ALLOW = "GET, HEAD, OPTIONS, POST"
GRAPHQL = "application/graphql-response+json"
HTML = "text/html"
STATUS: Mapping[str, int] = {
    "persisted_query_not_supported": 200,
    "origin_not_allowed": 403,
    "not_found": 404,
    "method_not_allowed": 405,
    "payload_too_large": 413,
    "unsupported_media_type": 415,
    "rate_limited": 429,
    "internal_error": 500,
    "unavailable": 503,
    "outcome_unknown": 503,
    "moving": 503,
    "misdirected": 421,
}
"""The statuses of refusals of the request itself; 400 for all others."""
FACTS: Mapping[str, str] = {
    "retry_after": "Retry-After",
    "allow": "Allow",
    "cell": "X-Carteiro-Cell",
    "accept_encoding": "Accept-Encoding",
    "rate_limit": "RateLimit",
    "rate_limit_policy": "RateLimit-Policy",
}
NO_STORE = "no-store"


async def post(request: web.Request) -> web.Response:
    """Return the result of the document in the body."""
    await admit(request)
    return await _answer(request, await from_body(request))


async def get(request: web.Request) -> web.Response:
    """Return the result of the query in the query string; GraphiQL for a browser."""
    if request.app[GRAPHIQL] and chosen(request.headers.get("Accept", ""), html=True) == HTML:
        return graphiql.graphiql()
    await admit(request)
    return await _answer(request, from_query(request.query))


async def options(request: web.Request) -> web.Response:
    """Return the permission of a preflight request, or the allowed methods."""
    if "Access-Control-Request-Method" not in request.headers:
        return web.Response(status=204, headers={"Allow": ALLOW, **VARY})
    request[HEADERS] = dict(VARY)
    headers = await must_be_allowed(request)
    allowed = cors.preflight(request.headers, METHODS)
    return web.Response(status=204, headers={"Allow": ALLOW, **headers, **allowed})


async def refuse_method(request: web.Request) -> web.Response:
    """Refuse every other method."""
    request[HEADERS] = dict(VARY)
    request[HEADERS].update(await must_be_allowed(request))
    raise Refusal("method_not_allowed", "Send GET or POST.", facts={"allow": ALLOW})


async def _answer(request: web.Request, operation: OperationRequest) -> web.Response:
    visit = RequestContext(request)
    outcome = await run(
        request.app[DOCUMENTS], visit, operation, reads_only=request.method != "POST"
    )
    request.app[METRICS].operation(outcome.kind, outcome.outcome)
    members: dict[str, Any] = {}
    if outcome.result.errors:
        misdirected = misdirection(outcome.result.errors)
        if misdirected is not None:
            return refuse(misdirected, request)
        # Searching for a store must not cost more in a document that is refused as too long.
        query = operation.query[:CHARACTERS]
        code = await language_of(
            visit.stores, request.app[DIRECTORY], query, operation.variables or {}
        )
        members["errors"] = [
            render(error, visit.request_id, visit.commits, say_of(code))
            for error in outcome.result.errors
        ]
    if outcome.executed:
        members["data"] = outcome.result.data
    accepts = chosen(request.headers.get("Accept", ""))
    response = respond(
        request, members, 400 if not outcome.executed and accepts == GRAPHQL else 200
    )
    if outcome.deprecated:
        response.headers["X-API-Deprecated-Fields"] = outcome.deprecated
    visit.cookies.write(response)
    return response


def respond(request: web.Request, members: Mapping[str, Any], status: int = 200) -> web.Response:
    """Return a result in the media type that the client accepts."""
    kind = chosen(request.headers.get("Accept", ""))
    return web.Response(
        body=msgspec.json.encode(members),
        status=status,
        headers={
            "Content-Type": f"{kind}; charset=utf-8",
            "Cache-Control": NO_STORE,
            **request.get(HEADERS, {}),
        },
    )


def refuse(refusal: Refusal, request: web.Request, status: int | None = None) -> web.Response:
    """Return the response of a refusal by the transport: its status is the same in both types."""
    member = {"message": refusal.message, "extensions": extensions(refusal, request[REQUEST_ID])}
    response = respond(request, {"errors": [member]}, status or STATUS.get(refusal.code, 400))
    for fact, header in FACTS.items():
        if fact in refusal.facts:
            response.headers[header] = str(refusal.facts[fact])
    return response


@lru_cache(maxsize=256)
def chosen(accept: str, *, html: bool = False) -> str:
    """Return the media type that an Accept header prefers; JSON when it accepts none of ours.

    `html` also offers text/html, to clients that name it.
    """
    offered = (JSON, GRAPHQL, HTML) if html else (JSON, GRAPHQL)
    best, chosen_type = 0.0, JSON
    for kind in offered:
        quality = _quality(accept, kind)
        # On a tie the type that the client names first wins; JSON when it names none.
        if quality > best or (
            quality == best > 0 and 0 <= accept.lower().find(kind) < _place(accept, chosen_type)
        ):
            best, chosen_type = quality, kind
    return chosen_type


def _place(accept: str, kind: str) -> int:
    place = accept.lower().find(kind)
    return len(accept) if place < 0 else place


def _quality(accept: str, kind: str) -> float:
    """Return the quality of a media type: that of the most specific range that holds it."""
    ranges = {kind: 2, f"{kind.partition('/')[0]}/*": 1, "*/*": 0}
    if kind == HTML:
        # Programs send */*; only browsers name the page's type.
        ranges = {kind: 2}
    specific, quality = -1, 0.0
    for part in (accept or "*/*").lower().split(","):
        name, *parameters = (word.strip() for word in part.split(";"))
        if ranges.get(name, -1) > specific:
            specific, quality = ranges[name], _weight(parameters)
    return quality


def _weight(parameters: list[str]) -> float:
    for parameter in parameters:
        if parameter.startswith("q="):
            try:
                return min(max(float(parameter[2:]), 0.0), 1.0)
            except ValueError:
                return 0.0
    return 1.0


def add_graphql(router: web.UrlDispatcher) -> None:
    """Add the routes of the storefront."""
    router.add_get(PATH, get)
    router.add_post(PATH, post)
    router.add_options(PATH, options)
    router.add_get(graphiql.SCHEMA, graphiql.schema_text)
    router.add_get(graphiql.ASSETS, graphiql.asset)
    router.add_route("*", PATH, refuse_method)
