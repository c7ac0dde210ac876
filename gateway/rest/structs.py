"""Responses that are structs: what an account may see of itself, which no cache keeps."""

import msgspec
from aiohttp import web
from msgspec import Struct

from gateway.records.draft import Draft
from gateway.rest.body import ignored
from gateway.rest.errors import JSON

PRIVATE = {"Content-Type": JSON, "Cache-Control": "no-store"}


def answer(body: Struct, status: int = 200, asked: Draft | None = None) -> web.Response:
    """The response that holds `body`, with the names of what was ignored of `asked`."""
    headers = PRIVATE | ({} if asked is None else ignored(asked))
    return web.Response(status=status, body=msgspec.json.encode(body), headers=headers)
