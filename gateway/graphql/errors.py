"""Renders errors as `errors[]` members with `extensions`: code, field, requestId."""

from collections.abc import Mapping
from typing import Any

from graphql import GraphQLError

from gateway.records.errors import Refusal
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
INTERNAL = "Internal server error; report it with the requestId."


def refusal_of(error: BaseException | None) -> Refusal | None:
    """Return the refusal behind an error of a resolver, or None for an internal fault."""
    if isinstance(error, Refusal):
        return error
    if isinstance(error, DatabaseUnavailable):
        text = "The database is unavailable; try again."
        return Refusal("unavailable", text, facts={"retry_after": 1})
    return None


def extensions(refusal: Refusal, request_id: str) -> dict[str, Any]:
    """Return the `extensions` of a refusal."""
    found: dict[str, Any] = {"code": CODES.get(refusal.code, refusal.code.upper())}
    if refusal.faults:
        found["field"] = refusal.faults[0].field
        if len(refusal.faults) > 1:
            found["fields"] = [
                {"field": f.field, "code": f.code, "message": f.message} for f in refusal.faults
            ]
    if "retry_after" in refusal.facts:
        found["retryAfter"] = refusal.facts["retry_after"]
    return {**found, "requestId": request_id}


def render(error: GraphQLError, request_id: str) -> dict[str, Any]:
    """Return the member of `errors[]` for an error; internal faults show no detail."""
    original = error.original_error
    member: dict[str, Any] = {"message": error.message}
    if error.locations:
        member["locations"] = [{"line": at.line, "column": at.column} for at in error.locations]
    if error.path:
        member["path"] = list(error.path)
    if original is None:
        code = (error.extensions or {}).get("code", "BAD_USER_INPUT")
        member["extensions"] = {"code": code, "requestId": request_id}
        return member
    refusal = refusal_of(original)
    if refusal is None:
        member["message"] = INTERNAL
        member["extensions"] = {"code": "INTERNAL_SERVER_ERROR", "requestId": request_id}
        return member
    member["message"] = refusal.message
    member["extensions"] = extensions(refusal, request_id)
    return member
