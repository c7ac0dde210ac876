"""Serves the OpenAPI document and a Swagger UI page from local files."""

import hashlib
from functools import cache
from pathlib import Path

import msgspec
from aiohttp import web

from gateway.records.errors import Refusal
from gateway.rest.auth import charge_address
from gateway.rest.document import openapi
from gateway.rest.document.operations import Operation, Shape, operation

ROUTE_TABLE: web.AppKey[tuple[tuple[str, str, Operation], ...]] = web.AppKey("ROUTE_TABLE")
FOLDER = Path(__file__).parent / "static"
ASSETS = "/api/docs/assets/{name}"
TYPES = {".js": "text/javascript", ".css": "text/css", ".html": "text/html"}
# The page loads only from this server; Swagger UI's style sheet contains images as data: URLs.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
GUARDED = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}
ANY_OBJECT = Shape({"type": "object"}, {"openapi": "3.1.0"})
HTML = Shape({"type": "string"}, "<!doctype html>")


@operation(
    "getDocument", "Documentation", "Read this document", ANY_OBJECT, headers=("ETag",),
    credential="none", refusals=("rate_limited",),
)  # fmt: skip
async def document(request: web.Request) -> web.Response:
    """GET /api/openapi.json: return the OpenAPI document of the route table."""
    charge_address(request)
    body, tag = rendered(request.app[ROUTE_TABLE])
    headers = {"ETag": tag, "Cache-Control": "no-cache"}
    if tag in request.headers.get("If-None-Match", ""):
        return web.Response(status=304, headers=headers)
    return web.Response(body=body, headers={"Content-Type": "application/json"} | headers)


@operation(
    "showDocument", "Documentation", "Show this document in a browser", HTML,
    credential="none", media_type="text/html", refusals=("rate_limited",),
)  # fmt: skip
async def page(request: web.Request) -> web.Response:
    """GET /api/docs: return the Swagger UI page."""
    charge_address(request)
    return _file("docs.html")


async def asset(request: web.Request) -> web.Response:
    """Return a file of the page by its name."""
    charge_address(request)
    return _file(request.match_info["name"])


@cache
def rendered(routes: tuple[tuple[str, str, Operation], ...]) -> tuple[bytes, str]:
    """Return the document of a route table as bytes, and its ETag."""
    body = msgspec.json.encode(openapi.document(routes))
    return body, f'"{hashlib.sha256(body).hexdigest()[:16]}"'


def add_assets(router: web.UrlDispatcher) -> None:
    """Add the routes of the page's files."""
    router.add_get(ASSETS, asset)


@cache
def _files() -> dict[str, bytes]:
    """Return the page's files by name, read once, so that a request never opens a file."""
    return {p.name: p.read_bytes() for p in FOLDER.rglob("*") if p.suffix in TYPES}


def _file(name: str) -> web.Response:
    body = _files().get(name)
    if body is None:
        raise Refusal("not_found", "This address does not exist.")
    kind = f"{TYPES[Path(name).suffix]}; charset=utf-8"
    age = "no-cache" if name.endswith(".html") else "public, max-age=86400"
    return web.Response(body=body, headers={"Content-Type": kind, "Cache-Control": age} | GUARDED)
