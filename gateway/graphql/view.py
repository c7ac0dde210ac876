"""Serves POST /graphql: reads the request, executes its document, writes the response."""

import inspect
from typing import Any

import msgspec
from aiohttp import web
from graphql import ExecutionResult, GraphQLError, execute, parse, validate

from gateway.graphql.errors import render
from gateway.graphql.schema import schema
from gateway.graphql.visit import Visit
from gateway.records.errors import Refusal
from gateway.records.values.strictjson import InvalidJson, decode
from gateway.server import bodies

JSON = "application/json; charset=utf-8"


async def post(request: web.Request) -> web.Response:
    """Return the result of the document in the body."""
    try:
        sent = decode(await bodies.plain(request))
    except InvalidJson as error:
        raise Refusal("invalid_json", str(error)) from None
    visit = Visit(request)
    result = await _result(visit, sent)
    members: dict[str, Any] = {}
    if result.errors:
        members["errors"] = [render(error, visit.request_id) for error in result.errors]
    if result.data is not None:
        members["data"] = result.data
    response = web.Response(body=msgspec.json.encode(members), headers={"Content-Type": JSON})
    visit.cookies.write(response)
    return response


async def _result(visit: Visit, sent: Any) -> ExecutionResult:
    try:
        document = parse(sent["query"], max_tokens=1_000)
    except GraphQLError as error:
        return ExecutionResult(None, [error])
    faults = validate(schema(), document)
    if faults:
        return ExecutionResult(None, faults)
    found = execute(
        schema(), document, None, visit, sent.get("variables"), sent.get("operationName")
    )
    return await found if inspect.isawaitable(found) else found
