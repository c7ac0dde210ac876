"""Reads what a request asks for: a document, its variables and the name of its operation."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from gateway.graphql.responses import JSON
from gateway.records.errors import Fault, Refusal
from gateway.records.values.strictjson import Digits, InvalidJson, decode
from gateway.server.http import bodies
from gateway.server.http.bodies import READING

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
        async with request.app[READING]:
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
