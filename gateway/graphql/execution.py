"""Executes an operation of a document within a time limit."""

import asyncio
import inspect
from dataclasses import dataclass
from typing import Any

from graphql import ExecutionResult, GraphQLError, OperationDefinitionNode, OperationType

from gateway.graphql.admission import count
from gateway.graphql.documents import Documents, Invalid, Known, of_refusal
from gateway.graphql.errors import ADVICE
from gateway.graphql.executor import Executor, is_awaitable
from gateway.graphql.operation_request import OperationRequest
from gateway.graphql.visit import Visit
from gateway.records.errors import Refusal

SECONDS = 5.0
REFUSED_WEIGHT = 5
"""The requests that a document counts as that is not valid: each time it is checked anew."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a request."""

    result: ExecutionResult
    executed: bool
    """Whether the operation was executed; if not, the response has no data."""
    kind: str
    """`query` or `mutation`; `unknown` when the document has no such operation."""
    outcome: str
    """`ok`, `error` or the step that rejected the document."""
    deprecated: str = ""
    """The deprecated fields of the document."""


async def run(
    documents: Documents, visit: Visit, request: OperationRequest, *, reads_only: bool
) -> Outcome:
    """Execute an operation.

    Raises method_not_allowed for a mutation when `reads_only`, and rate_limited.
    """
    try:
        known = documents.read(request.query, request.variables)
    except Invalid as invalid:
        count(visit.request, REFUSED_WEIGHT - 1)
        return _rejected(invalid.errors, invalid.outcome)
    operation = known.operation(request.operation)
    kind = "unknown" if operation is None else operation.operation.value
    if operation is not None:
        if reads_only and operation.operation is not OperationType.QUERY:
            raise Refusal(
                "method_not_allowed", "Send mutations with POST.", facts={"allow": "POST"}
            )
        try:
            weight = known.weight(operation, request.variables)
        except Refusal as refusal:
            return _rejected([of_refusal(refusal)], "rejected_cost", kind)
        if weight > 1:
            count(visit.request, weight - 1)
    try:
        async with asyncio.timeout(SECONDS):
            result = await _execute(documents, known, operation, visit, request)
    except TimeoutError:
        result = ExecutionResult(None, [of_refusal(_late(kind, visit))])
    if isinstance(result, list):
        return _rejected(result, "rejected_parse", kind)
    return Outcome(result, True, kind, "error" if result.errors else "ok", known.deprecated)


def _late(kind: str, visit: Visit) -> Refusal:
    """Return the refusal of an operation that takes too long."""
    message = f"The operation took longer than {SECONDS:g} seconds."
    if kind != OperationType.MUTATION.value or not visit.wrote:
        return Refusal("execution_timeout", message)
    message = f"{message} It may have been written. {ADVICE}"
    return Refusal("outcome_unknown", message, facts={"retry_after": 1})


def _rejected(errors: list[GraphQLError], outcome: str, kind: str = "unknown") -> Outcome:
    return Outcome(ExecutionResult(None, errors), False, kind, outcome)


async def _execute(
    documents: Documents,
    known: Known,
    operation: OperationDefinitionNode | None,
    visit: Visit,
    request: OperationRequest,
) -> ExecutionResult | list[GraphQLError]:
    """Return the result, or the errors of the variables or of the operation's name."""
    executor = Executor.build(
        known.schema, known.document, None, visit, request.variables, request.operation,
        is_awaitable=is_awaitable, hide_suggestions=True,
    )  # fmt: skip
    if isinstance(executor, list):
        return executor
    if operation is not None and known.introspects(operation):
        # A thread computes it, because it takes long; the loop serves others meanwhile.
        async with documents.introspecting:
            result: Any = await asyncio.to_thread(executor.execute_operation)
    else:
        result = executor.execute_operation()
    if inspect.isawaitable(result):
        result = await result
    assert isinstance(result, ExecutionResult)
    return result
