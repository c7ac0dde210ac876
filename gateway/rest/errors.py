"""Renders refusals as REST responses: status, headers and error body."""

from collections.abc import Mapping
from typing import Any

import msgspec
from aiohttp import web

from gateway.records.errors import Refusal
from gateway.server.app_keys import REQUEST_ID

JSON = "application/json"
STATUS: Mapping[str, int] = {
    "invalid_json": 400,
    "validation_error": 400,
    "invalid_reference": 400,
    "invalid_cnpj": 400,
    "unauthenticated": 401,
    "conflicting_credentials": 401,
    "forbidden": 403,
    "not_found": 404,
    "method_not_allowed": 405,
    "conflict": 409,
    "invalid_transition": 409,
    "idempotency_in_progress": 409,
    "precondition_failed": 412,
    "payload_too_large": 413,
    "unsupported_media_type": 415,
    "idempotency_mismatch": 422,
    "rate_limited": 429,
    "internal_error": 500,
    "unavailable": 503,
    "outcome_unknown": 503,
    "moving": 503,
    "misdirected": 421,
}
HEADERS: Mapping[str, str] = {
    "retry_after": "Retry-After",
    "etag": "ETag",
    "allow": "Allow",
    "cell": "X-Carteiro-Cell",
    "accept_encoding": "Accept-Encoding",
    "preference_applied": "Preference-Applied",
    "rate_limit": "RateLimit",
    "rate_limit_policy": "RateLimit-Policy",
}
"""The facts of a refusal that become headers; all others are in the body."""
CHALLENGE = "Bearer, ApiKey"


def refuse(refusal: Refusal, request: web.Request, status: int | None = None) -> web.Response:
    """Return the response of a refusal; `status` replaces the status of its code."""
    body: dict[str, Any] = {"error": refusal.message, "code": refusal.code}
    if refusal.faults:
        body["details"] = [
            {"field": f.field, "code": f.code, "message": f.message} for f in refusal.faults
        ]
    headers = {"Content-Type": JSON}
    for fact, value in refusal.facts.items():
        header = HEADERS.get(fact)
        if header is None:
            body[fact] = value
        else:
            headers[header] = f'"{value}"' if fact == "etag" else str(value)
    if STATUS[refusal.code] == 401:
        headers["WWW-Authenticate"] = CHALLENGE
    body["requestId"] = request[REQUEST_ID]
    return web.Response(
        body=msgspec.json.encode(body), status=status or STATUS[refusal.code], headers=headers
    )
