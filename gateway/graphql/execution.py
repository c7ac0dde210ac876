"""Reads the operation that a request asks for, and executes it within a time limit.

It executes as graphql-core does, but completes long lists in parts, between which the event loop
serves others.
It is one module because a request's operation is read for its execution alone.
"""

import asyncio
import inspect
from collections.abc import Iterable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any

from aiohttp import web
from graphql import (
    ExecutionResult,
    GraphQLError,
    GraphQLObjectType,
    GraphQLOutputType,
    GraphQLResolveInfo,
    OperationDefinitionNode,
    OperationType,
)
from graphql.execution.collect_fields import FieldDetailsList, GroupedFieldSet
from graphql.execution.executor_throwing_on_incremental import ExecutorThrowingOnIncremental
from graphql.pyutils import AwaitableOrValue, Path

from gateway.graphql.costs import COMPLETED, WEIGHED, weight_of
from gateway.graphql.errors import ADVICE, too_complex
from gateway.graphql.parsed_documents import Documents, Invalid, Known, of_refusal
from gateway.graphql.request_checks import count, owe
from gateway.graphql.request_context import PART, Pace, RequestContext
from gateway.records.errors import Fault, Refusal
from gateway.records.values.strictjson import Digits, InvalidJson, decode
from gateway.server.http import bodies
from gateway.server.http.account_turns import EXECUTING, PARSING, turn
from outbox.database.fair_limit import Crowded, Place
from outbox.database.transaction import asker

JSON = "application/json"
IN_TURN_BYTES = 8_192
"""A body from this size on is parsed in turn, so that the loop is free between any two of them."""


@dataclass(frozen=True, slots=True)
class OperationRequest:
    """The parameters of a GraphQL request."""

    query: str
    variables: dict[str, Any] | None
    operation: str | None


async def from_body(request: web.Request) -> OperationRequest:
    """Return the parameters in the body of a POST.

    Raises unsupported_media_type, payload_too_large, invalid_json, validation_error or
    persisted_query_not_supported.
    """
    name, charset = bodies.media_type(request.headers.get("Content-Type", ""))
    if name != JSON or charset not in ("utf-8", "utf8", "us-ascii"):
        raise Refusal("unsupported_media_type", "Send the body as application/json, in UTF-8.")
    body = await bodies.whole(request)
    if len(body) >= IN_TURN_BYTES:
        async with turn(request, PARSING):
            await asyncio.sleep(0)
            return _asked(_decoded(body))
    return _asked(_decoded(body))


def from_query(query: Mapping[str, str]) -> OperationRequest:
    """Return the parameters in the query string of a GET. Raises as `from_body`."""
    members: dict[str, Any] = {
        name: query[name] for name in ("query", "operationName") if name in query
    }
    for name in ("variables", "extensions"):
        if query.get(name):
            members[name] = _decoded(query[name].encode("utf-8", "replace"))
    return _asked(members)


def _decoded(data: bytes) -> Any:
    try:
        return decode(data)
    except InvalidJson as error:
        raise Refusal("invalid_json", str(error)) from None


def _asked(sent: Any) -> OperationRequest:
    if not isinstance(sent, dict):
        raise Refusal(
            "validation_error", "Send one JSON object as the body; batches are not supported."
        )
    query, extensions = sent.get("query"), _given(sent, "extensions")
    variables, operation = _given(sent, "variables"), _given(sent, "operationName")
    if not query and _is_persisted(extensions):
        # Clients know this very message, and send the document then.
        raise Refusal("persisted_query_not_supported", "PersistedQueryNotSupported")
    if not isinstance(query, str):
        raise _wrong("query", "Send the GraphQL document as a string.")
    if variables is not None and not isinstance(variables, dict):
        raise _wrong("variables", "Send an object, or null.")
    if operation is not None and not isinstance(operation, str):
        raise _wrong("operationName", "Send a string, or null.")
    if not isinstance(extensions, dict | None):
        raise _wrong("extensions", "Send an object, or null.")
    return OperationRequest(query, variables and _plain(variables), operation)


def _given(sent: Mapping[str, Any], name: str) -> Any:
    """Return an optional parameter; clients write "" for one that they leave out."""
    value = sent.get(name)
    return None if value == "" else value


def _is_persisted(extensions: Any) -> bool:
    """Return whether a request names a document by its hash (Apollo's persisted queries)."""
    return isinstance(extensions, dict) and extensions.get("persistedQuery") is not None


def _plain(value: Any) -> Any:
    """Return a value with floats in place of numbers that keep their text."""
    if isinstance(value, dict):
        return {name: _plain(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    return float(value) if isinstance(value, Digits) else value


def _wrong(field: str, message: str) -> Refusal:
    return Refusal(
        "validation_error", f"{field}: {message}", faults=[Fault(field, "invalid_type", message)]
    )


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
    documents: Documents, visit: RequestContext, request: OperationRequest, *, reads_only: bool
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
    kind, weight = "unknown" if operation is None else operation.operation.value, 1
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
            visit.in_parts()
    async with Course(visit, kind, weight) as course:
        try:
            async with course.deadline:
                result = await _execute(documents, known, operation, course, request)
        except TimeoutError:
            result = ExecutionResult(None, [of_refusal(course.late())])
    if isinstance(result, list):
        return _rejected(result, "rejected_parse", kind)
    return Outcome(result, True, kind, "error" if result.errors else "ok", known.deprecated)


class Course:
    """The execution of an operation, whose response may become larger than its document tells.

    Only an object knows the size of a list without pages, such as the images of a product.
    """

    def __init__(self, visit: RequestContext, kind: str, weight: int) -> None:
        """`weight`: the requests that the operation has counted as."""
        self.visit = visit
        self.pace = Pace(self._go_on)
        self.deadline: asyncio.Timeout
        self._kind = kind
        self._weight = weight
        # The address: later the request belongs to the owner of its store.
        self._asker = asker()
        self._held = AsyncExitStack()
        self._ended_by: Refusal | Crowded | None = None

    async def __aenter__(self) -> "Course":
        if self.visit.paced:
            await self._held.enter_async_context(self._place())
        self.deadline = asyncio.timeout(SECONDS)
        return self

    async def __aexit__(self, *_: object) -> None:
        try:
            await self.pace.end()
        finally:
            await self._held.aclose()
        self._count(self.pace.values)

    def late(self) -> Refusal:
        """Return the refusal of an operation that was ended. Raises Crowded."""
        if isinstance(self._ended_by, Crowded):
            raise self._ended_by
        refusal = self._ended_by or Refusal(
            "execution_timeout", f"The operation took longer than {SECONDS:g} seconds."
        )
        if self._kind != OperationType.MUTATION.value or not self.visit.wrote:
            return refusal
        message = f"{refusal.message} It may have been written. {ADVICE}"
        return Refusal("outcome_unknown", message, facts={"retry_after": 1})

    async def _go_on(self, values: int) -> None:
        """Count what has been completed, and wait for a turn when it is much."""
        self._count(values)
        now, deadline = asyncio.get_running_loop().time, self.deadline
        try:
            if values > COMPLETED:
                raise too_complex(
                    "cost",
                    f"The response holds more than {COMPLETED} values. "
                    "Ask for smaller pages or fewer fields.",
                )
            # A mutation that has written waits for no turn any more.
            if self._weight > 1 and not self.visit.paced and not self.visit.wrote:
                self.visit.in_parts()
                rest = (deadline.when() or now()) - now()
                deadline.reschedule(None)
                await self._held.enter_async_context(self._place())
                deadline.reschedule(now() + rest)
        except (Refusal, Crowded) as error:
            self._ended_by = error
            deadline.reschedule(now())
            await asyncio.Event().wait()

    def _place(self) -> Place:
        """Return a block with one of the turns at large responses."""
        return self.visit.request.app[EXECUTING].place(self._asker)

    def _count(self, values: int) -> None:
        """Count the requests beyond those that the operation has counted as."""
        if values > self._weight * WEIGHED:
            weight = weight_of(values)
            owe(self.visit.request, weight - self._weight)
            self._weight = weight


def _rejected(errors: list[GraphQLError], outcome: str, kind: str = "unknown") -> Outcome:
    return Outcome(ExecutionResult(None, errors), False, kind, outcome)


async def _execute(
    documents: Documents,
    known: Known,
    operation: OperationDefinitionNode | None,
    course: Course,
    request: OperationRequest,
) -> ExecutionResult | list[GraphQLError]:
    """Return the result, or the errors of the variables or of the operation's name."""
    introspects = operation is not None and known.introspects(operation)
    executor = Executor.build(
        known.schema, known.document, None, course.visit, request.variables, request.operation,
        hide_suggestions=True, pace=None if introspects else course.pace,
    )  # fmt: skip
    if isinstance(executor, list):
        return executor
    if introspects:
        # A thread computes it, because it takes long; the loop serves others meanwhile.
        async with documents.introspecting:
            result: Any = await asyncio.to_thread(executor.execute_operation)
    else:
        result = executor.execute_operation()
    if inspect.isawaitable(result):
        result = await result
    assert isinstance(result, ExecutionResult)
    return result


class From(Path):
    """The path of a part of a list."""

    first = 0

    def item(self, first: int) -> "From":
        """Return the path of the part that begins with this item."""
        self.first = first
        return self

    def add_key(self, key: str | int, typename: str | None = None) -> Path:
        return super().add_key(key + self.first if isinstance(key, int) else key, typename)


class Executor(ExecutorThrowingOnIncremental):
    """The executor of this door; its result does not differ from the library's."""

    def __init__(self, *args: Any, pace: Pace | None, **kwargs: Any) -> None:
        """`pace`: None for an operation that a thread executes."""
        super().__init__(*args, **kwargs)
        self._pace = pace

    def execute_fields(
        self,
        parent_type: GraphQLObjectType,
        source_value: Any,
        path: Path | None,
        grouped_field_set: GroupedFieldSet,
        position_context: None,
    ) -> AwaitableOrValue[dict[str, Any]]:
        """Complete the fields of an object, and count their values."""
        if self._pace is not None:
            self._pace.values += len(grouped_field_set)
        return super().execute_fields(
            parent_type, source_value, path, grouped_field_set, position_context
        )

    def complete_iterable_value(
        self,
        item_type: GraphQLOutputType,
        field_details_list: FieldDetailsList,
        info: GraphQLResolveInfo[Any],
        path: Path,
        items: Iterable[Any],
        position_context: None,
    ) -> AwaitableOrValue[list[Any]]:
        """Complete a list, at once or in the turns that its operation has for it."""
        whole, pace = super().complete_iterable_value, self._pace
        objects = items if isinstance(items, list) else [*items]
        if pace is None or pace.take(len(objects)):
            return whole(item_type, field_details_list, info, path, objects, position_context)

        async def parts() -> list[Any]:
            completed: list[Any] = []
            for first in range(0, len(objects), PART):
                some = objects[first : first + PART]
                await pace.wait(len(some))
                part = whole(
                    item_type, field_details_list, info, From(*path).item(first), some,
                    position_context,
                )  # fmt: skip
                completed += await part if inspect.isawaitable(part) else part
            return completed

        return parts()
