"""Serves /graphql: reads the request, executes its document, writes the response."""

import inspect
from typing import Any

from aiohttp import web
from graphql import ExecutionResult, GraphQLError, parse, validate
from graphql.execution.executor_throwing_on_incremental import ExecutorThrowingOnIncremental
from graphql.language import OperationType
from graphql.utilities import get_operation_ast

from gateway.graphql import asked
from gateway.graphql.asked import Asked
from gateway.graphql.errors import render
from gateway.graphql.negotiation import GRAPHQL, chosen
from gateway.graphql.responses import respond
from gateway.graphql.schema import schema
from gateway.graphql.visit import Visit
from gateway.records.errors import Refusal


async def post(request: web.Request) -> web.Response:
    """Return the result of the document in the body."""
    return await _answer(request, await asked.from_body(request))


async def get(request: web.Request) -> web.Response:
    """Return the result of the query in the query string."""
    return await _answer(request, asked.from_query(request.query))


async def _answer(request: web.Request, wanted: Asked) -> web.Response:
    visit = Visit(request)
    result, executed = await _result(visit, wanted, reads_only=request.method != "POST")
    members: dict[str, Any] = {}
    if result.errors:
        members["errors"] = [render(error, visit.request_id) for error in result.errors]
    if executed:
        members["data"] = result.data
    accepts = chosen(request.headers.get("Accept", ""))
    response = respond(request, members, 400 if not executed and accepts == GRAPHQL else 200)
    visit.cookies.write(response)
    return response


async def _result(visit: Visit, wanted: Asked, *, reads_only: bool) -> tuple[ExecutionResult, bool]:
    """Return the result, and whether the operation was executed."""
    try:
        document = parse(wanted.query, max_tokens=1_000)
    except GraphQLError as error:
        return ExecutionResult(None, [error]), False
    faults = validate(schema(), document, hide_suggestions=True)
    if faults:
        return ExecutionResult(None, faults), False
    operation = get_operation_ast(document, wanted.operation)
    if reads_only and operation is not None and operation.operation is not OperationType.QUERY:
        raise Refusal("method_not_allowed", "Send mutations with POST.", facts={"allow": "POST"})
    executor = ExecutorThrowingOnIncremental.build(
        schema(), document, None, visit, wanted.variables, wanted.operation,
        hide_suggestions=True,
    )  # fmt: skip
    if isinstance(executor, list):
        return ExecutionResult(None, executor), False
    found = executor.execute_operation()
    result = await found if inspect.isawaitable(found) else found
    assert isinstance(result, ExecutionResult)
    return result, True
