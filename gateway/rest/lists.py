"""Writes lists as JSON bytes: complete pages, and lists without pages up to 4 MiB.

A page with many or long records is read from the database while the client reads it, so that it
never fills the memory of the server.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from typing import Any, Concatenate
from urllib.parse import quote_plus

import msgspec
from aiohttp import web

from gateway.records import actions
from gateway.records.audit import Actor
from gateway.records.errors import Refusal
from gateway.records.query import Page
from gateway.records.record import Record
from gateway.records.resource import Resource
from gateway.rest.body import shown
from gateway.rest.errors import JSON
from gateway.server.app_keys import DB
from gateway.server.http.account_turns import BUILDING, turn
from gateway.server.http.answers import Flow
from outbox.database.transaction import P, T, Tx

PLACES = frozenset({"page", "cursor", "after"})
"""The parameters that select a page of a list."""
LONGEST_LINK = 4_096
AT_ONCE = 50
"""Records that a streamed page reads together."""
GATHERED = 32_768
"""Bytes of short records that are written together."""
MOST_BYTES = 4_194_304
"""Most bytes of a list without pages."""
_encode = msgspec.json.Encoder().encode
Show = Callable[[Resource, Sequence[Record]], Sequence[Any]]
"""Returns the JSON members of records."""


def link(request: web.Request, place: str | None, name: str = "cursor") -> dict[str, str]:
    """Return the header Link to the next page: this page's query with `place` as `name`.

    There is none without a place.
    """
    if place is None or len(request.rel_url.raw_query_string) > LONGEST_LINK:
        return {}
    onward = [
        f"{quote_plus(key, errors='replace')}={quote_plus(value, errors='replace')}&"
        for key, value in request.query.items()
        if key not in PLACES and key != name
    ]
    path = request.rel_url.raw_path
    header = f'<{path}?{"".join(onward)}{name}={place}>; rel="next"'
    # Clients and proxies refuse a response with a longer header; the body says the same.
    return {"Link": header} if len(header) <= LONGEST_LINK else {}


async def read(
    request: web.Request,
    unit: Callable[Concatenate[Tx, P], Awaitable[T]],
    *args: P.args,
    **kwargs: P.kwargs,
) -> T:
    """Read a list; few run at a time, because memory limits count only finished responses."""
    async with turn(request, BUILDING):
        return await request.app[DB].read(unit, *args, **kwargs)


def page(
    request: web.Request,
    caller: Actor,
    resource: Resource,
    content: Page,
    envelope: Mapping[str, Any],
    headers: Mapping[str, str],
    show: Show = shown,
) -> web.StreamResponse:
    """Return the response with a page; `envelope` has its members besides the records."""
    headers = {"Content-Type": JSON, **headers}
    if not content.long and not content.rest:
        data = show(resource, content.records)
        return web.Response(body=_encode({"data": data, **envelope}), headers=headers)
    return Flow(flow(pieces(request, caller, resource, content, show), envelope), headers)


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
    return Flow(flow(pieces(request, caller, resource, content), None), {"Content-Type": JSON})


async def flow(
    records: AsyncGenerator[bytes, None], envelope: Mapping[str, Any] | None
) -> AsyncGenerator[bytes, None]:
    """Yield the pieces of a list; one without an envelope is cut at MOST_BYTES."""
    size, start = 0, b'{"data":['
    end = b"]}" if envelope is None else b"]," + _encode(envelope)[1:]

    async def bounded() -> AsyncGenerator[bytes, None]:
        nonlocal size, end
        async with aclosing(records):
            async for record in records:
                size += len(record) + 1
                if envelope is None and size > MOST_BYTES:
                    end = b'],"truncated":true}'
                    return
                yield record

    async with aclosing(joined(bounded())) as all_pieces:
        async for piece in all_pieces:
            yield start + piece
            start = b""
    yield start + end


async def joined(records: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    """Yield records as items of a JSON array, with commas, short ones together."""
    waiting, comma = bytearray(), b""
    async with aclosing(records):
        async for record in records:
            waiting += comma
            waiting += record
            comma = b","
            if len(waiting) >= GATHERED:
                yield bytes(waiting)
                waiting.clear()
    if waiting:
        yield bytes(waiting)


async def pieces(
    request: web.Request, caller: Actor, resource: Resource, content: Page, show: Show = shown
) -> AsyncGenerator[bytes, None]:
    """Yield each record as JSON, without records that are deleted meanwhile."""
    db, rest = request.app[DB], content.rest
    while True:
        for record, members in zip(content.records, show(resource, content.records), strict=True):
            if record.id not in content.long:
                yield _encode(members)
                continue
            try:
                alone = await db.read(actions.read, caller, resource, record.id)
            except Refusal:
                continue
            [members] = show(resource, [alone])
            yield _encode(members)
        if not rest:
            return
        content = await db.read(actions.some, caller, resource, rest[:AT_ONCE])
        rest = rest[AT_ONCE:]
