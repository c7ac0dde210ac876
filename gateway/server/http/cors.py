"""Tells browsers which requests a page on another origin may send, and what it may read (CORS).

Both APIs use these lists. The REST API allows pages only if `[server] cors_origins` lists origins,
and never cookies: it accepts only keys and tokens. The storefront allows the pages of its stores.
"""

import re
from collections.abc import Mapping, Sequence

from multidict import CIMultiDict

from gateway.server.web_origins import spelled

EXPOSED = (
    "Content-Disposition, ETag, Idempotent-Replayed, Link, Location, RateLimit, RateLimit-Policy, "
    "Retry-After, X-API-Deprecated-Fields, X-API-Version, X-Carteiro-Cell, X-Cart-Session, "
    "X-Created, X-Ignored-Fields, X-Ignored-Parameters, X-Request-Id"
)
ACCEPTED = (
    "authorization", "content-type", "Idempotency-Key", "If-Match", "If-None-Match",
    "X-API-Key", "x-api-version", "x-cart-session", "x-request-id",
    # Tracing and clients send these without being asked.
    "apollo-require-preflight", "apollographql-client-name", "apollographql-client-version",
    "baggage", "cache-control", "pragma", "sentry-trace", "traceparent", "tracestate",
    "x-apollo-operation-id", "x-apollo-operation-name", "x-requested-with",
)  # fmt: skip
"""Headers that a page may send, besides those that it asks for."""
METHODS = "GET, HEAD, POST, PUT, PATCH, DELETE"
SECONDS = "600"
VARY = "Origin, Access-Control-Request-Headers, Access-Control-Request-Private-Network"
MOST_ASKED = 50
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9a-z-]{1,100}", re.ASCII)


def allow(origin: str | None, path: str, headers: CIMultiDict[str], origins: Sequence[str]) -> None:
    """Add the CORS headers of a response to `headers` if `origin` is in `origins`.

    `origins` have their normal spelling (gateway.server.web_origins).
    """
    if not path.startswith(("/api/", "/mcp")):
        return
    vary = headers.get("Vary", "")
    if "Origin" not in vary.split(", "):
        headers["Vary"] = f"{vary}, Origin" if vary else "Origin"
    if origin is not None and spelled(origin) in origins:
        headers["Access-Control-Allow-Origin"] = origin
        headers["Access-Control-Expose-Headers"] = EXPOSED


def preflight(headers: Mapping[str, str], methods: str = METHODS) -> dict[str, str]:
    """Return the headers of a preflight response besides those that allow the origin.

    They allow whatever headers the page asks for: it matters only to an origin that is allowed.
    """
    if "Access-Control-Request-Method" not in headers:
        return {}
    asked = headers.get("Access-Control-Request-Headers", "").lower().split(",", MOST_ASKED)
    more = filter(_TOKEN.fullmatch, map(str.strip, asked))
    names = {name.lower(): name for name in (*more, *ACCEPTED)}
    allowed = {
        "Access-Control-Allow-Methods": methods,
        "Access-Control-Allow-Headers": ", ".join(names.values()),
        "Access-Control-Max-Age": SECONDS,
        "Vary": VARY,
    }
    # Chrome asks before a public page calls a server on a private network or on this machine.
    if headers.get("Access-Control-Request-Private-Network", "").lower() == "true":
        allowed["Access-Control-Allow-Private-Network"] = "true"
    return allowed
