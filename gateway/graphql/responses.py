"""Builds the responses of the door: results, and refusals of the request itself."""

from collections.abc import Mapping
from typing import Any

import msgspec
from aiohttp import web

from gateway.graphql.errors import extensions
from gateway.graphql.negotiation import chosen
from gateway.records.errors import Refusal
from gateway.server.app_keys import REQUEST_ID

HEADERS: web.RequestKey[dict[str, str]] = web.RequestKey("GRAPHQL_HEADERS")
"""The headers that every response to this request has, set while it is examined."""
STATUS: Mapping[str, int] = {
    "origin_not_allowed": 403,
    "not_found": 404,
    "method_not_allowed": 405,
    "payload_too_large": 413,
    "unsupported_media_type": 415,
    "rate_limited": 429,
    "internal_error": 500,
    "unavailable": 503,
    "outcome_unknown": 503,
}
"""The statuses of refusals of the request itself; 400 for all others."""
FACTS: Mapping[str, str] = {
    "retry_after": "Retry-After",
    "allow": "Allow",
    "accept_encoding": "Accept-Encoding",
    "rate_limit": "RateLimit",
    "rate_limit_policy": "RateLimit-Policy",
}
NO_STORE = "no-store"


def respond(request: web.Request, members: Mapping[str, Any], status: int = 200) -> web.Response:
    """Return a result in the media type that the client accepts."""
    kind = chosen(request.headers.get("Accept", ""))
    return web.Response(
        body=msgspec.json.encode(members), status=status,
        headers={
            "Content-Type": f"{kind}; charset=utf-8", "Cache-Control": NO_STORE,
            **request.get(HEADERS, {}),
        },
    )  # fmt: skip


def refuse(refusal: Refusal, request: web.Request, status: int | None = None) -> web.Response:
    """Return the response of a refusal by the transport: its status is the same in both types."""
    member = {"message": refusal.message, "extensions": extensions(refusal, request[REQUEST_ID])}
    response = respond(request, {"errors": [member]}, status or STATUS.get(refusal.code, 400))
    for fact, header in FACTS.items():
        if fact in refusal.facts:
            response.headers[header] = str(refusal.facts[fact])
    return response
