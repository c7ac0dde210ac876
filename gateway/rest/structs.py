"""Renders structs as JSON responses that caches must not store."""

import msgspec
from aiohttp import web
from msgspec import Struct

from gateway.records.draft import Draft
from gateway.rest.body import ignored
from gateway.rest.errors import JSON

PRIVATE = {"Content-Type": JSON, "Cache-Control": "no-store"}


def respond(body: Struct, status: int = 200, draft: Draft | None = None) -> web.Response:
    """Return the response with `body` and the names of ignored fields of `draft`."""
    headers = PRIVATE | ({} if draft is None else ignored(draft))
    return web.Response(status=status, body=msgspec.json.encode(body), headers=headers)
