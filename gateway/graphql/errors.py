"""Renders errors as `errors[]` members with `extensions`: code, field, requestId."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from graphql import GraphQLError

from gateway.graphql.store_language import Say, english
from gateway.records.errors import Refusal, of_database
from gateway.server.telemetry.logs import logger
from outbox.database.transaction import Commits
from outbox.errors import DatabaseUnavailable

CODES: Mapping[str, str] = {
    "invalid_json": "BAD_USER_INPUT",
    "validation_error": "BAD_USER_INPUT",
    "invalid_reference": "BAD_USER_INPUT",
    "invalid_cnpj": "BAD_USER_INPUT",
    "payload_too_large": "BAD_USER_INPUT",
    "unsupported_media_type": "BAD_USER_INPUT",
    "idempotency_mismatch": "BAD_USER_INPUT",
    "internal_error": "INTERNAL_SERVER_ERROR",
}
"""The codes of `extensions` that are not the refusal's own code in upper case."""
ADVICE = "Repeat a checkout with the same idempotencyKey; look before you repeat another mutation."
"""What to do when the outcome of a mutation is unknown."""
INTERNAL = "Internal server error; report it with the requestId."
NOTHING: Mapping[str | int, Commits] = {}
LONGEST = 500
LONGEST_FIELD = 100
"""Characters of a field's name in an error: a client may send a name of any length."""
_FIELDS = (
    re.compile(r"^Variable '\$\w+' has invalid value at \.?([\w.\[\]]+):"),
    re.compile(r"required field '(\w+)'"),
    re.compile(r"unknown field '(\w+)'"),
    re.compile(r"^(?:Argument|Variable) '(?:\w+\.\w+\()?\$?(\w+)"),
)
"""The places of the field's name in messages of the library."""
_SENT = re.compile(r", found: .*|(?<= value): .*", re.DOTALL)
"""What was sent, such as a password: pages keep errors in their logs."""


def too_complex(limit: str, message: str) -> Refusal:
    """Return the refusal of a document beyond a limit."""
    return Refusal("query_too_complex", message, facts={"limit": limit})


def refusal_of(error: BaseException | None, noted: Commits | None = None) -> Refusal | None:
    """Return the refusal behind an error of a resolver, or None for an internal fault.

    `noted` are the commits of its mutation.
    """
    if isinstance(error, Refusal):
        return error
    if isinstance(error, DatabaseUnavailable):
        return of_database(error, noted, ADVICE)
    return None


def extensions(refusal: Refusal, request_id: str, say: Say = english) -> dict[str, Any]:
    """Return the `extensions` of a refusal; `say` says its messages."""
    extensions: dict[str, Any] = {"code": CODES.get(refusal.code, refusal.code.upper())}
    if refusal.faults:
        extensions["field"] = refusal.faults[0].field
        if len(refusal.faults) > 1:
            extensions["fields"] = [
                {"field": f.field, "code": f.code, "message": say(f.message)}
                for f in refusal.faults
            ]
    if "retry_after" in refusal.facts:
        extensions["retryAfter"] = refusal.facts["retry_after"]
    if "url" in refusal.facts:
        extensions["url"] = refusal.facts["url"]
    if "shopping_cart" in refusal.facts:
        extensions["shoppingCart"] = refusal.facts["shopping_cart"]
    return {**extensions, "requestId": request_id}


def render(
    error: GraphQLError,
    request_id: str,
    noted: Mapping[str | int, Commits] = NOTHING,
    say: Say = english,
) -> dict[str, Any]:
    """Return the member of `errors[]` for an error; internal faults show no detail.

    `noted` are the commits of each mutation, by its key in the response; `say` says messages in the
    language of the store. Those of the library, about the document itself, are for developers.
    """
    member: dict[str, Any] = {"message": shortened(error.message)}
    if error.locations:
        member["locations"] = [{"line": at.line, "column": at.column} for at in error.locations]
    if error.path:
        member["path"] = list(error.path)
    original = _original(error)
    refusal = refusal_of(original, noted.get(error.path[0]) if error.path else None)
    if refusal is not None:
        member["message"] = say(refusal.message)
        member["extensions"] = extensions(refusal, request_id, say)
        _log_unavailable(original, request_id)
    elif original is None and (error.path is None or error.message.startswith("Argument ")):
        # Errors of the document, its variables or its arguments are those of the client.
        field = _field_of(error.message)
        member["extensions"] = {
            "code": "BAD_USER_INPUT",
            **({"field": field} if field else {}),
            "requestId": request_id,
        }
    else:
        _log_fault(original or error, request_id)
        member["message"] = say(INTERNAL)
        member["extensions"] = {"code": "INTERNAL_SERVER_ERROR", "requestId": request_id}
    return member


def misdirection(errors: Sequence[GraphQLError] | None) -> Refusal | None:
    """Return the refusal of a document for a store that another cell has."""
    for error in errors or ():
        refusal = refusal_of(_original(error))
        if refusal is not None and refusal.code == "misdirected":
            return refusal
    return None


def _original(error: GraphQLError) -> BaseException | None:
    """Return what a resolver raised; None for an error of the document."""
    original: BaseException | None = error
    while isinstance(original, GraphQLError):
        original = original.original_error
    return original


def shortened(message: str) -> str:
    """Return a message of the library, without Python's names, sent values and with an end."""
    message = message.replace("not to be None.", "not to be null.")
    message = _SENT.sub(".", message)
    return message if len(message) <= LONGEST else f"{message[:LONGEST]}…"


def _field_of(message: str) -> str | None:
    """Return the field that an error of a variable or an argument names."""
    for pattern in _FIELDS:
        match = pattern.search(message)
        if match is not None:
            return match[1][:LONGEST_FIELD]
    return None


def _log_unavailable(error: BaseException | None, request_id: str) -> None:
    if isinstance(error, DatabaseUnavailable):
        logger().warning("graphql", error_kind=f"db_{error.kinds[-1]}", request_id=request_id)


def _log_fault(error: BaseException, request_id: str) -> None:
    # The text of an exception may contain data of a client, so only the log gets it.
    logger().error(
        "graphql", error_kind=type(error).__name__, exc_info=error, request_id=request_id
    )
