"""Serves /graphql: examines the request, executes its document, writes the response."""

from typing import Any

from aiohttp import web

from gateway.graphql import graphiql
from gateway.graphql.errors import misdirection, render
from gateway.graphql.execution import OperationRequest, from_body, from_query, run
from gateway.graphql.parsed_documents import Documents
from gateway.graphql.request_checks import METHODS, VARY, admit, must_be_allowed
from gateway.graphql.request_context import RequestContext
from gateway.graphql.responses import GRAPHQL, HEADERS, chosen, refuse, respond
from gateway.graphql.store_language import language_of, say_of
from gateway.records.errors import Refusal
from gateway.server.app_keys import DIRECTORY
from gateway.server.http import cors
from gateway.server.telemetry.metrics import METRICS

DOCUMENTS = web.AppKey("DOCUMENTS", Documents)
ALLOW = "GET, HEAD, OPTIONS, POST"


async def post(request: web.Request) -> web.Response:
    """Return the result of the document in the body."""
    await admit(request)
    return await _answer(request, await from_body(request))


async def get(request: web.Request) -> web.Response:
    """Return the result of the query in the query string; GraphiQL for a browser."""
    if graphiql.wants_page(request):
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
        code = await language_of(
            visit.stores, request.app[DIRECTORY], operation.query, operation.variables or {}
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
