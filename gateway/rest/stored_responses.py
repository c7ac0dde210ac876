"""Keeps the response to a write, and replays it for a repeated Idempotency-Key."""

from dataclasses import dataclass, replace
from typing import Any

import msgspec
from aiohttp import web

from gateway.records.access import Actor
from gateway.rest.errors import JSON


@dataclass(frozen=True, slots=True)
class Response:
    """The complete response to a write."""

    status: int
    headers: dict[str, str]
    body: bytes
    replayed: bool = False


def keep(response: Response) -> str:
    """Return a response as text: JSON of status, headers and body."""
    members = (response.status, response.headers, response.body.decode())
    return msgspec.json.encode(members).decode()


def restore(text: str) -> Response:
    """Return the response of a repeated request."""
    status, headers, body = msgspec.json.decode(text, type=tuple[int, dict[str, str], str])
    return Response(status, headers, body.encode(), replayed=True)


def respond_to_write(caller: Actor, response: Response) -> web.Response:
    """Return the response to a write; without the scope `read` its body is the id alone.

    The kept response is complete; each repeat shows what its own credential can read.
    """
    if "read" in caller.scopes:
        return respond(response)
    whole: dict[str, Any] = msgspec.json.decode(response.body)
    shown = {k: v for k, v in whole.items() if k == "id"}
    return respond(replace(response, body=msgspec.json.encode(shown)))


def respond(response: Response) -> web.Response:
    """Return the HTTP response, with Idempotent-Replayed when it is a repeat."""
    headers = {"Content-Type": JSON, **response.headers}
    if response.replayed:
        headers["Idempotent-Replayed"] = "true"
    return web.Response(status=response.status, body=response.body, headers=headers)
