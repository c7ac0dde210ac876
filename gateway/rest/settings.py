"""Makes the handlers that read and change one row of settings of an account."""

from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar

from aiohttp import web
from msgspec import Struct

from gateway.records.audit import Actor
from gateway.records.record import Draft
from gateway.records.resource import Form
from gateway.rest.auth import authenticate
from gateway.rest.body import answer, draft_of, ignored, quoted, read_body, readable
from gateway.rest.document.operations import Handler
from gateway.rest.params import expected_of, lines_of
from gateway.rest.records import show
from gateway.server.app_keys import DB
from outbox.database.transaction import Tx


class Versioned(Protocol):
    """Settings with the number of their last change."""

    @property
    def version(self) -> int: ...


S = TypeVar("S", bound=Versioned)


def reads(unit: Callable[[Tx, Actor], Awaitable[S]], shape: Callable[[S], Struct]) -> Handler:
    """Return GET: 200 with the caller's settings as `shape` shows them, or 304."""

    async def handle(request: web.Request) -> web.StreamResponse:
        caller = await authenticate(request)
        settings = await request.app[DB].read(unit, caller)
        return show(request, shape(settings), _etag(settings))

    return handle


def changes(
    form: Form,
    unit: Callable[[Tx, Actor, Draft, frozenset[str] | None], Awaitable[S]],
    shape: Callable[[S], Struct],
) -> Handler:
    """Return PUT: set the fields of the body; null clears one."""

    async def handle(request: web.Request) -> web.StreamResponse:
        caller = await authenticate(request)
        draft = draft_of(request, form, await read_body(request), creating=False)
        expected = expected_of(lines_of(request, "If-Match"))
        changed = await request.app[DB].write(unit, caller, draft, expected)
        headers = {"ETag": _etag(changed), **ignored(draft)}
        return readable(caller, answer(shape(changed), headers=headers))

    return handle


def _etag(settings: Versioned) -> str:
    return quoted(str(settings.version))
