"""Describes the error responses of operations: their statuses and bodies."""

from collections.abc import Callable, Sequence
from http import HTTPStatus
from typing import Any

from gateway.rest.document.describe import IDEMPOTENCY_KEY, IF_MATCH, IF_NONE_MATCH
from gateway.rest.document.operations import Operation, Shape
from gateway.rest.document.schema_parts import reference
from gateway.rest.errors import STATUS

CALLER = (
    "unauthenticated", "conflicting_credentials", "forbidden", "misdirected", "rate_limited",
    "unavailable",
)  # fmt: skip
BODY = ("invalid_json", "validation_error", "unsupported_media_type", "payload_too_large")
REPEAT = (
    "idempotency_in_progress",
    "idempotency_mismatch",
    "payload_too_large",
    "unsupported_media_type",
)
"""The body, which is part of the repeated request, is read also where it means nothing."""
HEADERS = {
    400: ("Preference-Applied",),
    401: ("WWW-Authenticate",),
    421: ("X-Carteiro-Cell",),
    429: ("Retry-After",),
    503: ("Retry-After",),
}
EXAMPLES: dict[int, tuple[str, str]] = {
    400: ("validation_error", "name is required."),
    401: ("unauthenticated", "The API key is invalid, revoked or expired."),
    403: ("forbidden", "This contact belongs to another user."),
    404: ("not_found", "There is no contact with this id."),
    409: ("conflict", "This quote is accepted; it can be changed while it is draft."),
    412: (
        "precondition_failed",
        "The record has changed since you read it; read it again and repeat your change.",
    ),
    413: ("payload_too_large", "The body is too large."),
    415: ("unsupported_media_type", "Send the body as application/json, in UTF-8."),
    421: (
        "misdirected",
        "This account is in the cell two; send the request to https://two.example.com.",
    ),
    422: (
        "idempotency_mismatch",
        "This Idempotency-Key was used with a different body; use a new key for a new request.",
    ),
    429: ("rate_limited", "The limit is 50 writes per second; try again after 1 s."),
    503: ("unavailable", "The database is unavailable; try again."),
}
UNKNOWN = (
    "outcome_unknown",
    "It may have been written. Repeat it with the same Idempotency-Key, or look before repeating.",
)
MOVING = ("moving", "Your data is moving to another installation; try again.")
MEANINGS: dict[int, str] = {
    503: "Nothing was written (`unavailable`, `moving`); or the write may have been made"
    " (`outcome_unknown`), which a repeat with the same Idempotency-Key tells."
}
"""What the codes of a status mean, where they ask for different things."""

ERROR = Shape(
    {
        "type": "object",
        "description": "Why a request was refused.",
        "properties": {
            "error": {"type": "string", "description": "A message for developers."},
            "code": reference("ErrorCode"),
            "details": {
                "type": "array",
                "description": "All errors of the request, each with its field.",
                "items": reference("ErrorDetail"),
            },
            "ignored": {
                "type": "array",
                "description": "With 400: the unknown fields of the body, at most ten.",
                "items": {"type": "string"},
            },
            "allowed": {
                "type": "array",
                "description": "With invalid_transition: the allowed next states.",
                "items": {"type": "string"},
            },
            "url": {
                "type": "string",
                "description": "With misdirected: the address of the cell that has the account.",
            },
            "requestId": {"type": "string"},
        },
        "required": ["error", "code", "requestId"],
    },
    None,
    "Error",
    {
        "ErrorCode": {
            "type": "string",
            "enum": list(STATUS),
            "description": "What is wrong; each code has one status.",
        },
        "ErrorDetail": {
            "type": "object",
            "description": "One error: its field, its code and a message.",
            "properties": {
                "field": {"type": "string"},
                "code": {"type": "string"},
                "message": {"type": "string"},
            },
            "required": ["field", "code", "message"],
        },
    },
)
"""The one body of all errors: a schema for each status would be a model for each operation."""


def statuses(path: str, operation: Operation) -> list[int]:
    """Return the statuses of an operation besides success."""
    # The HTTP parser can refuse any request.
    codes = {"validation_error", *operation.refusals}
    if operation.credential != "none":
        codes.update(CALLER)
    if "{id}" in path:
        codes.add("not_found")
    if operation.body is not None:
        codes.update(BODY)
    if IDEMPOTENCY_KEY in operation.parameters:
        codes.update(REPEAT)
    if IF_MATCH in operation.parameters:
        codes.add("precondition_failed")
    statuses = {STATUS[code] for code in codes}
    return sorted(statuses | ({304} if IF_NONE_MATCH in operation.parameters else set()))


def response(
    status: int,
    use: Callable[[Shape], dict[str, Any]],
    headers: Callable[[Sequence[str]], dict[str, Any]],
) -> dict[str, Any]:
    """Return the component for all operations with this status."""
    codes = [code for code, its in STATUS.items() if its == status]
    content: dict[str, Any] = {"example": _example(*EXAMPLES[status])}
    if status == 503:
        all_ = (EXAMPLES[status], UNKNOWN, MOVING)
        content = {"examples": {code: {"value": _example(code, text)} for code, text in all_}}
    means = MEANINGS.get(status, HTTPStatus(status).phrase).rstrip(".")
    return {
        "description": f"{means}. Codes: {', '.join(f'`{code}`' for code in codes)}.",
        "headers": headers(("X-Request-Id", *HEADERS.get(status, ()))),
        "content": {"application/json": {"schema": use(ERROR), **content}},
    }


def _example(code: str, text: str) -> dict[str, Any]:
    example: dict[str, Any] = {"error": text, "code": code}
    if code == "validation_error":
        fault = {"field": "name", "code": "required", "message": "name is required."}
        example["details"] = [fault]
    return {**example, "requestId": "5b1c7e02"}
