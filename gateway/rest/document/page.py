"""The document of this API, and the page that shows it: Swagger UI from our own files alone."""

import hashlib
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import msgspec
from aiohttp import web

from gateway.records.errors import Refusal
from gateway.rest.document import openapi
from gateway.rest.document.operations import Operation, Shape, operation

ROUTE_TABLE: web.AppKey[tuple[tuple[str, str, Operation], ...]] = web.AppKey("ROUTE_TABLE")
FOLDER = Path(__file__).parent / "static"
ASSETS = "/api/docs/assets/{name}"
TYPES = {".js": "text/javascript", ".css": "text/css", ".html": "text/html"}
# All comes from us and goes to us; the pictures that Swagger UI's style sheet holds are data:.
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
    credential="none",
)  # fmt: skip
async def document(request: web.Request) -> web.Response:
    """GET /api/openapi.json: the OpenAPI document of the route table."""
    body, tag = rendered(request.app[ROUTE_TABLE])
    headers = {"ETag": tag, "Cache-Control": "no-cache"}
    if tag in request.headers.get("If-None-Match", ""):
        return web.Response(status=304, headers=headers)
    return web.Response(body=body, headers={"Content-Type": "application/json"} | headers)


@operation(
    "showDocument", "Documentation", "Look at this document in a browser", HTML,
    credential="none", media_type="text/html",
)  # fmt: skip
async def page(request: web.Request) -> web.Response:
    """GET /api/docs: the page around the document."""
    return _file("docs.html")


async def asset(request: web.Request) -> web.Response:
    """A file of the page, by its name."""
    return _file(request.match_info["name"])


@cache
def rendered(routes: tuple[tuple[str, str, Operation], ...]) -> tuple[bytes, str]:
    """The document of a route table as bytes, and its ETag."""
    body = msgspec.json.encode(openapi.document(routes))
    return body, f'"{hashlib.sha256(body).hexdigest()[:16]}"'


def add_assets(app: web.Application, routes: Iterable[tuple[str, str, Operation]]) -> None:
    """Hang the files of the page on `app`, and keep the table that the document is made of."""
    app[ROUTE_TABLE] = tuple(routes)
    app.router.add_get(ASSETS, asset)


@cache
def _files() -> dict[str, bytes]:
    """The page's files by name. Read once: whoever asks must not reach the file system."""
    return {p.name: p.read_bytes() for p in FOLDER.rglob("*") if p.suffix in TYPES}


def _file(name: str) -> web.Response:
    body = _files().get(name)
    if body is None:
        raise Refusal("not_found", "There is nothing at this address.")
    kind = f"{TYPES[Path(name).suffix]}; charset=utf-8"
    age = "no-cache" if name.endswith(".html") else "public, max-age=86400"
    return web.Response(body=body, headers={"Content-Type": kind, "Cache-Control": age} | GUARDED)
