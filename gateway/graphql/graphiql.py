"""Serves GraphiQL from local files, and the text of the schema."""

import hashlib
from functools import cache
from pathlib import Path

from aiohttp import web

from gateway.graphql.schema import sdl
from gateway.records.errors import Refusal

FOLDER = Path(__file__).parent / "static"
ASSETS = "/graphql/assets/{name}"
SCHEMA = "/graphql/schema.graphql"
TYPES = {".js": "text/javascript", ".css": "text/css", ".html": "text/html"}
# The page loads only from this server; its style sheet contains fonts and images as data: URLs.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self' data:; font-src data:; connect-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'"
)
GUARDED = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}

GRAPHIQL = web.AppKey("GRAPHIQL", bool)
"""Whether the page is switched on."""


def graphiql() -> web.Response:
    """Return the page."""
    return _file("graphiql.html")


async def asset(request: web.Request) -> web.Response:
    """Return a file of the page by its name."""
    if not request.app[GRAPHIQL]:
        raise _missing()
    return _file(request.match_info["name"])


async def schema_text(request: web.Request) -> web.Response:
    """Return the schema, for programs that generate code from it. Any page may read it."""
    body, tag = _schema()
    headers = {"ETag": tag, "Cache-Control": "no-cache", "Access-Control-Allow-Origin": "*"}
    if tag in request.headers.get("If-None-Match", ""):
        return web.Response(status=304, headers=headers)
    return web.Response(body=body, headers={"Content-Type": "text/plain; charset=utf-8", **headers})


@cache
def _schema() -> tuple[bytes, str]:
    body = sdl().encode()
    return body, f'"{hashlib.sha256(body).hexdigest()[:16]}"'


@cache
def _files() -> dict[str, bytes]:
    """Return the page's files by name, read once, so that a request never opens a file."""
    return {p.name: p.read_bytes() for p in FOLDER.rglob("*") if p.suffix in TYPES}


def _file(name: str) -> web.Response:
    body = _files().get(name)
    if body is None:
        raise _missing()
    kind = f"{TYPES[Path(name).suffix]}; charset=utf-8"
    age = "no-cache" if name.endswith(".html") else "public, max-age=86400"
    return web.Response(
        body=body,
        headers={"Content-Type": kind, "Cache-Control": age, "Vary": "Accept", **GUARDED},
    )


def _missing() -> Refusal:
    return Refusal("not_found", "This address does not exist.")
