"""Calls operations of the REST door within a request of this one, with its credentials.

So a tool has the scopes, ownership, limits, audit and errors of the REST API, and none of its own.
"""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from decimal import Decimal
from typing import Any, NamedTuple

import msgspec
from aiohttp import StreamReader, web
from multidict import CIMultiDict
from yarl import URL

from gateway.records.audit import Actor
from gateway.records.errors import Refusal
from gateway.records.values.strictjson import dumps
from gateway.rest.auth import authenticate
from gateway.server.app_keys import CALLER
from gateway.server.http.answers import Flow
from gateway.server.http.rate_limits import CHARGED, RATE_LIMIT

MOST_BYTES = 1_048_576
"""Bytes of a response that are read; what is longer is asked for again in a smaller part."""
CREDENTIALS = ("X-API-Key", "Authorization")
Value = str | int | float | bool | Decimal | Sequence[str]
Query = Mapping[str, Value]


class TooLong(Exception):
    """A response of more than MOST_BYTES."""


class Answer(NamedTuple):
    """The response of an operation."""

    status: int
    headers: Mapping[str, str]
    body: Any

    @property
    def etag(self) -> str | None:
        """The tag of the record's state, without quotes."""
        tag = self.headers.get("ETag")
        return None if tag is None else tag.strip('"')


async def call(
    request: web.Request,
    method: str,
    path: str,
    query: Query | None = None,
    body: Any = None,
    *,
    etag: str | None = None,
    once: str | None = None,
) -> Answer:
    """Return the response of an operation of the REST door. Raises its refusals, and TooLong.

    Unknown fields and parameters are refused. `once` is an Idempotency-Key, `etag` the state that
    the record must still have.
    """
    headers = {"If-Match": None if etag is None else f'"{etag}"', "Idempotency-Key": once}
    inner = _inner(request, method, path, query, body, headers)
    info = await request.app.router.resolve(inner)
    info.add_app(request.app)
    inner._match_info = info
    try:
        response = await info.handler(inner)
    finally:
        if RATE_LIMIT in inner:
            request[RATE_LIMIT] = inner[RATE_LIMIT]
    return Answer(response.status, response.headers, msgspec.json.decode(await _bytes(response)))


async def reader(request: web.Request, path: str) -> tuple[web.Request, Actor]:
    """Return a request to read with, and its caller, who pays one token. Raises refusals.

    A key for chosen resources must be allowed to reach `path`.
    """
    inner = _inner(request, "GET", path)
    caller = await authenticate(inner)
    request[CALLER] = caller
    if RATE_LIMIT in inner:
        request[RATE_LIMIT] = inner[RATE_LIMIT]
    return inner, caller


def _inner(
    request: web.Request,
    method: str,
    path: str,
    query: Query | None = None,
    body: Any = None,
    headers: Mapping[str, str | None] | None = None,
) -> web.Request:
    """Return a request like one of the REST door, on the same connection."""
    sent = CIMultiDict({"Prefer": "handling=strict"})
    for name in CREDENTIALS:
        for line in request.headers.getall(name, ()):
            # A clone encodes its headers; a byte that is no text is in no credential.
            sent.add(name, line.encode(errors="replace").decode())
    sent.update({name: text for name, text in (headers or {}).items() if text is not None})
    # Numbers keep the text that the client wrote.
    data = b"" if body is None else dumps(body).encode()
    if body is not None:
        sent["Content-Type"], sent["Content-Length"] = "application/json", str(len(data))
    url = URL.build(path=path, query={name: _text(value) for name, value in (query or {}).items()})
    inner = request.clone(method=method, rel_url=url, headers=sent)
    inner._state.pop(CHARGED, None)
    # The body of the outer request is read; aiohttp has no other way to give a request a new one.
    content = StreamReader(request.protocol, len(data) + 1, loop=asyncio.get_running_loop())
    if data:
        content.feed_data(data)
    content.feed_eof()
    inner._payload = content
    return inner


async def _bytes(response: web.StreamResponse) -> bytes:
    """Return the body of a response that is not sent. Raises TooLong."""
    if isinstance(response, Flow):
        body = bytearray()
        async with aclosing(response.pieces) as pieces:
            async for piece in pieces:
                body += piece
                if len(body) > MOST_BYTES:
                    raise TooLong
        return bytes(body)
    assert isinstance(response, web.Response)
    assert isinstance(response.body, bytes)
    return response.body


def _text(value: Value) -> str:
    """Return a value as the query of the REST API has it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int | float | Decimal):
        return str(value)
    return ",".join(value)


def too_long(name: str) -> Refusal:
    """Return the refusal of what has no smaller part to read."""
    return Refusal(
        "payload_too_large",
        f"This {name} is longer than {MOST_BYTES} bytes; choose some of its fields with `fields`.",
    )
