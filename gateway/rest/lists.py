"""Writes lists as JSON bytes: complete pages, and lists without pages up to 4 MiB.

A page with many or long records is read from the database while the client reads it, so that it
never fills the memory of the server.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing
from typing import Any, Concatenate

import msgspec
from aiohttp import web

from gateway.records import actions
from gateway.records.access import Actor
from gateway.records.errors import Refusal
from gateway.records.query import Page
from gateway.records.resource import Resource
from gateway.rest.errors import JSON
from gateway.rest.record_json import shown, view
from gateway.server.app_keys import DB
from gateway.server.http.answers import BUILDING, Flow
from outbox.database.transaction import P, T, Tx

AT_ONCE = 50
"""Records that a streamed page reads together."""
GATHERED = 32_768
"""Bytes of short records that are written together."""
MOST_BYTES = 4_194_304
"""Most bytes of a list without pages."""
_encode = msgspec.json.Encoder().encode


async def read(
    request: web.Request,
    unit: Callable[Concatenate[Tx, P], Awaitable[T]],
    *args: P.args,
    **kwargs: P.kwargs,
) -> T:
    """Read a list; few run at a time, because memory limits count only finished responses."""
    async with request.app[BUILDING]:
        return await request.app[DB].read(unit, *args, **kwargs)


def page(
    request: web.Request,
    caller: Actor,
    resource: Resource,
    content: Page,
    envelope: Mapping[str, Any],
    headers: Mapping[str, str],
) -> web.StreamResponse:
    """Return the response with a page; `envelope` has its members besides the records."""
    headers = {"Content-Type": JSON, **headers}
    if not content.long and not content.rest:
        data = shown(resource, content.records)
        return web.Response(body=_encode({"data": data, **envelope}), headers=headers)
    return Flow(_flow(_bytes(request, caller, resource, content), envelope), headers)


def envelope(content: Page, page: int, limit: int, cursor: str | None = None) -> dict[str, Any]:
    """Return the members of a page besides its records; `cursor` is that of the next page."""
    beside: dict[str, Any] = {"total": content.total, "page": page, "limit": limit}
    return beside if cursor is None else {**beside, "nextCursor": cursor}


def unpaged(
    request: web.Request, caller: Actor, resource: Resource, content: Page
) -> web.StreamResponse:
    """Return the response with a list without pages; `truncated` when it is cut."""
    if not content.long and not content.rest:
        body = _encode({"data": shown(resource, content.records)})
        if len(body) <= MOST_BYTES:
            return web.Response(body=body, headers={"Content-Type": JSON})
    return Flow(_flow(_bytes(request, caller, resource, content), None), {"Content-Type": JSON})


async def _flow(
    records: AsyncGenerator[bytes, None], envelope: Mapping[str, Any] | None
) -> AsyncGenerator[bytes, None]:
    """Yield the pieces of a list; one without an envelope is cut at MOST_BYTES."""
    waiting, comma, size = bytearray(b'{"data":['), b"", 0
    end = b"]}" if envelope is None else b"]," + _encode(envelope)[1:]
    async with aclosing(records):
        async for record in records:
            size += len(record) + 1
            if envelope is None and size > MOST_BYTES:
                end = b'],"truncated":true}'
                break
            waiting += comma
            waiting += record
            comma = b","
            if len(waiting) >= GATHERED:
                yield bytes(waiting)
                waiting.clear()
    yield bytes(waiting) + end


async def _bytes(
    request: web.Request, caller: Actor, resource: Resource, content: Page
) -> AsyncGenerator[bytes, None]:
    """Yield each record as JSON, without records that are deleted meanwhile."""
    db, rest = request.app[DB], content.rest
    while True:
        for record, members in zip(content.records, shown(resource, content.records), strict=True):
            if record.id not in content.long:
                yield _encode(members)
                continue
            try:
                alone = await db.read(actions.read, caller, resource, record.id)
            except Refusal:
                continue
            yield _encode(view(alone).shown)
        if not rest:
            return
        content = await db.read(actions.some, caller, resource, rest[:AT_ONCE])
        rest = rest[AT_ONCE:]
