"""Builds the responses of the door: results, and refusals of the request itself.

The header Accept chooses their media type.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import msgspec
from aiohttp import web

from gateway.graphql.errors import extensions
from gateway.records.errors import Refusal
from gateway.server.app_keys import REQUEST_ID

JSON = "application/json"
GRAPHQL = "application/graphql-response+json"
HTML = "text/html"
HEADERS: web.RequestKey[dict[str, str]] = web.RequestKey("GRAPHQL_HEADERS")
"""The headers that every response to this request has, set while it is examined."""
STATUS: Mapping[str, int] = {
    "persisted_query_not_supported": 200,
    "origin_not_allowed": 403,
    "not_found": 404,
    "method_not_allowed": 405,
    "payload_too_large": 413,
    "unsupported_media_type": 415,
    "rate_limited": 429,
    "internal_error": 500,
    "unavailable": 503,
    "outcome_unknown": 503,
    "moving": 503,
    "misdirected": 421,
}
"""The statuses of refusals of the request itself; 400 for all others."""
FACTS: Mapping[str, str] = {
    "retry_after": "Retry-After",
    "allow": "Allow",
    "cell": "X-Carteiro-Cell",
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


@lru_cache(maxsize=256)
def chosen(accept: str, *, html: bool = False) -> str:
    """Return the media type that an Accept header prefers; JSON when it accepts none of ours.

    `html` also offers text/html, to clients that name it.
    """
    offered = (JSON, GRAPHQL, HTML) if html else (JSON, GRAPHQL)
    best, chosen_type = 0.0, JSON
    for kind in offered:
        quality = _quality(accept, kind)
        # On a tie the type that the client names first wins; JSON when it names none.
        if quality > best or (
            quality == best > 0 and 0 <= accept.lower().find(kind) < _place(accept, chosen_type)
        ):
            best, chosen_type = quality, kind
    return chosen_type


def _place(accept: str, kind: str) -> int:
    place = accept.lower().find(kind)
    return len(accept) if place < 0 else place


def _quality(accept: str, kind: str) -> float:
    """Return the quality of a media type: that of the most specific range that holds it."""
    ranges = {kind: 2, f"{kind.partition('/')[0]}/*": 1, "*/*": 0}
    if kind == HTML:
        # Programs send */*; only browsers name the page's type.
        ranges = {kind: 2}
    specific, quality = -1, 0.0
    for part in (accept or "*/*").lower().split(","):
        name, *parameters = (word.strip() for word in part.split(";"))
        if ranges.get(name, -1) > specific:
            specific, quality = ranges[name], _weight(parameters)
    return quality


def _weight(parameters: list[str]) -> float:
    for parameter in parameters:
        if parameter.startswith("q="):
            try:
                return min(max(float(parameter[2:]), 0.0), 1.0)
            except ValueError:
                return 0.0
    return 1.0
