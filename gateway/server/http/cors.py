"""CORS for the REST API: off unless `[server] cors_origins` lists origins.

Cookies are never allowed: the API accepts only keys and tokens.
"""

from collections.abc import Mapping, Sequence

from multidict import CIMultiDict

from gateway.server.origins import spelled

EXPOSED = (
    "ETag, Idempotent-Replayed, Link, RateLimit, RateLimit-Policy, Retry-After, "
    "X-Ignored-Fields, X-Ignored-Parameters, X-Request-Id"
)
ACCEPTED = (
    "Authorization, Content-Type, Idempotency-Key, If-Match, If-None-Match, traceparent, "
    "X-API-Key, X-Request-Id"
)


def allow(origin: str | None, path: str, headers: CIMultiDict[str], origins: Sequence[str]) -> None:
    """Add the CORS headers of a response to `headers` if `origin` is in `origins`.

    `origins` have their normal spelling (gateway.server.origins).
    """
    if not path.startswith("/api/"):
        return
    headers["Vary"] = f"{headers['Vary']}, Origin" if "Vary" in headers else "Origin"
    if origin is not None and spelled(origin) in origins:
        headers["Access-Control-Allow-Origin"] = origin
        headers["Access-Control-Expose-Headers"] = EXPOSED


def preflight(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the headers of a preflight response besides `Allow`; `allow` decides the access."""
    if "Access-Control-Request-Method" not in headers:
        return {}
    return {
        "Access-Control-Allow-Methods": "GET, HEAD, POST, PUT, PATCH, DELETE",
        "Access-Control-Allow-Headers": ACCEPTED,
        "Access-Control-Max-Age": "600",
    }
