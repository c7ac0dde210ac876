"""Serves MCP over HTTP: one message in each POST, one JSON object as its response."""

from typing import Any
from urllib.parse import urlsplit

import msgspec
from aiohttp import web

from gateway.mcp import messages, methods
from gateway.mcp.calls import reader
from gateway.mcp.messages import MODERN, ProtocolError
from gateway.records.errors import Refusal
from gateway.rest import errors as rest
from gateway.rest.body import read_body
from gateway.server.installation import SITE
from gateway.server.telemetry.metrics import METRICS
from gateway.server.web_origins import spelled

OPEN = "/api/me"
"""A path that each credential may reach."""
HERE = frozenset({"localhost", "127.0.0.1", "::1"})
_encode = msgspec.json.Encoder().encode


async def answer(request: web.Request) -> web.Response:
    """Return the response to a message: its result, 202 for a notification, or an error."""
    try:
        _must_be_allowed(request)
        await reader(request, OPEN)
        message = messages.parse(await read_body(request))
        if message.id is None:
            # `notifications/cancelled` is for stdio: here a client closes its connection.
            return web.Response(status=202)
        revision = messages.revision_of(message, request.headers)
        try:
            members = await methods.run(request, message, revision)
        except ProtocolError as error:
            if revision != MODERN:
                # Clients of earlier revisions read errors only in responses with 200.
                error.status = 200
            raise
        return _respond(200, messages.result(message, revision, members))
    except ProtocolError as error:
        request.app[METRICS].rejected("mcp", "bad_request")
        return _respond(error.status, messages.error(error))


def refuse(refusal: Refusal, request: web.Request, status: int | None = None) -> web.Response:
    """Return the response of a refusal before a message was understood, or of an error in it."""
    response = rest.refuse(refusal, request, status)
    status, text = response.status, refusal.message
    if status == 401:
        response.headers["WWW-Authenticate"] = "Bearer"
        site = request.app[SITE].public_url
        text += (
            f" Make a key in the console at {site}/console/keys, or with `carteiro key add`, and "
            "send it as Authorization: Bearer."
        )
    code = messages.INTERNAL_ERROR if status >= 500 else status
    data: dict[str, Any] = {"code": refusal.code} | refusal.facts
    response.body = _encode(messages.error(ProtocolError(code, text, data)))
    return response


def _respond(status: int, body: dict[str, Any]) -> web.Response:
    headers = {"Content-Type": "application/json", "Cache-Control": "no-store"}
    return web.Response(status=status, body=_encode(body), headers=headers)


def _must_be_allowed(request: web.Request) -> None:
    """Refuse pages of other origins, also those that have made their name one of this machine.

    The header Host says nothing then, so the origin must be one of the configuration, or this
    machine.
    """
    origin = request.headers.get("Origin")
    if origin is None:
        return
    name, site = spelled(origin), request.app[SITE]
    if name in (spelled(site.public_url), *site.page_origins):
        return
    if not site.public_url and _is_here(name):
        return
    raise Refusal(
        "forbidden",
        f"Pages of {origin[:200]!r} may not call this server; add the origin to "
        "[server] cors_origins.",
    )


def _is_here(origin: str) -> bool:
    try:
        return urlsplit(origin).hostname in HERE
    except ValueError:
        # Brackets without an address of IPv6 in them.
        return False
