"""Builds the REST handlers of a resource, which convert between HTTP and `actions`."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from aiohttp import web

from gateway.domain.catalogue import Change, Create, Delete
from gateway.records import actions, idempotency, list_versions
from gateway.records.audit import Actor
from gateway.records.cursors import text_of
from gateway.records.idempotency import Outcomes
from gateway.records.query import MOST, costly
from gateway.records.record import Draft, Record
from gateway.records.resource import Form, Resource
from gateway.rest import first_pages, lists, selections
from gateway.rest.auth import authenticate
from gateway.rest.body import (
    answer,
    draft_of,
    ignored,
    keep,
    quoted,
    read_body,
    readable,
    restore,
    shown,
    written,
)
from gateway.rest.document import describe, shapes
from gateway.rest.document.operations import Operation, path_of
from gateway.rest.document.schema_parts import title_of
from gateway.rest.errors import JSON
from gateway.rest.first_pages import First
from gateway.rest.params import expected_of, lines_of, once_of, query_of
from gateway.rest.scans import scan
from gateway.rest.selections import selection_of
from gateway.server.app_keys import DB
from gateway.server.http import bodies
from gateway.server.http.rate_limits import LIMITS
from outbox.database.transaction import Tx, brief

Verb = Callable[[Tx, Actor, str], Awaitable[Record]]
VerbWith = Callable[[Tx, Actor, str, Draft], Awaitable[Record]]
Ready = Callable[[web.Request, Draft], None]


def create(resource: Resource, unit: Create) -> Operation:
    """Return POST on the collection: 201 with the new record."""
    unit, path = brief(unit), path_of(resource)

    async def handle(request: web.Request) -> web.Response:
        caller = await authenticate(request)
        body = await read_body(request)
        draft = draft_of(request, resource, body, creating=True)

        def response(record: Record) -> web.Response:
            headers = {"Location": f"{path}/{record.id}", **ignored(draft)}
            return written(record, 201, headers)

        return await _once(request, caller, body, response, unit, draft)

    return describe.create(resource)(handle)


def read(resource: Resource) -> Operation:
    """Return GET of one record: 200, or 304 when the client has the current state."""

    async def handle(request: web.Request) -> web.StreamResponse:
        caller = await authenticate(request)
        record_id = request.match_info["id"]
        selection = selection_of(request, resource) if _selects(request) else None
        if selection is not None and selection.includes:
            return await selections.one(request, caller, resource, record_id, selection)
        record = await request.app[DB].read(actions.read, caller, resource, record_id)
        show_some = shown if selection is None else selection.shown
        [members] = show_some(resource, [record])
        return show(request, members, quoted(record.etag))

    return describe.read(resource)(handle)


def change(resource: Resource, unit: Change, refusals: Sequence[str] = ()) -> Operation:
    """Return PUT and PATCH of one record: 200 after a merge patch (RFC 7396)."""
    unit = brief(unit)

    async def handle(request: web.Request) -> web.Response:
        caller = await authenticate(request)
        draft = draft_of(request, resource, await read_body(request), creating=False)
        changed = await request.app[DB].write(
            unit, caller, request.match_info["id"], draft,
            expected_of(lines_of(request, "If-Match")),
        )  # fmt: skip
        return readable(caller, written(changed, headers=ignored(draft)))

    return describe.change(resource, refusals)(handle)


def remove(resource: Resource, unit: Delete | None = None) -> Operation:
    """Return DELETE of one record: 200 with a message and its id."""

    async def plain(tx: Tx, actor: Actor, record_id: str, expected: frozenset[str] | None) -> None:
        await actions.remove(tx, actor, resource, record_id, expected)

    async def handle(request: web.Request) -> web.Response:
        caller = await authenticate(request)
        record_id = request.match_info["id"]
        expected = expected_of(lines_of(request, "If-Match"))
        await request.app[DB].write(unit or plain, caller, record_id, expected)
        body = {"message": shapes.delete_message(resource), "id": record_id.lower()}
        return answer(body)

    return describe.remove(resource)(handle)


def verb(resource: Resource, unit: Verb, summary: str, refusals: Sequence[str] = ()) -> Operation:
    """Return POST of a verb without a body, named after its unit: 200 with the record."""
    unit = brief(unit)

    async def handle(request: web.Request) -> web.Response:
        caller = await authenticate(request)

        # The handler ignores the body, so any body is valid.
        body = await bodies.read(request)
        return await _once(request, caller, body, written, unit, request.match_info["id"])

    return describe.verb(resource, _word(unit), summary, refusals=refusals)(handle)


def verb_with(
    resource: Resource,
    takes: Sequence[str],
    unit: VerbWith,
    summary: str,
    *,
    makes: Resource | None = None,
    form: Form | None = None,
    ready: Ready = lambda request, draft: None,
    refusals: Sequence[str] = (),
) -> Operation:
    """Return POST of a verb with an optional body: 200, or 201 for a record that it `makes`.

    The body takes the fields `takes` of `form`, else of the record in the response. The verb is
    named after its unit. `ready` adds to the draft why this server cannot do it.
    """
    unit, result = brief(unit), makes or resource
    fields = form or result

    async def handle(request: web.Request) -> web.Response:
        caller = await authenticate(request)
        body = await read_body(request)
        draft = draft_of(request, fields, body or b"{}", takes=takes)
        ready(request, draft)

        def response(done: Record) -> web.Response:
            headers = ignored(draft)
            if makes is None:
                return written(done, headers=headers)
            return written(done, 201, {**headers, "Location": f"{path_of(makes)}/{done.id}"})

        arguments = (request.match_info["id"], draft)
        return await _once(request, caller, body, response, unit, *arguments)

    word = _word(unit)
    body_shape = shapes.some(fields, takes, f"{title_of(resource)}{word.capitalize()}")
    return describe.verb(resource, word, summary, body=body_shape, makes=makes, refusals=refusals)(
        handle
    )


def page(resource: Resource, **of: str) -> Operation:
    """Return GET of the collection: one page of the caller's own records.

    `of` names filters with their value in the path: filter=path parameter.
    """

    async def handle(request: web.Request) -> web.StreamResponse:
        caller = await authenticate(request)
        fixed = {name: request.match_info[parameter] for name, parameter in of.items()}
        query = query_of(resource, {**request.query, **fixed} if of else request.query)
        if query.ids is not None and len(query.ids) > MOST:
            # Each hundred after the first costs as much as a page.
            request.app[LIMITS].read_more(caller.owner_id, (len(query.ids) - 1) // MOST)
        selection = selection_of(request, resource) if _selects(request) else None
        if selection is not None:
            content, included = await selections.read(request, caller, resource, query, selection)
            cursor = text_of(resource, query, content.onward)
            envelope = lists.envelope(content, query.page, query.limit, cursor)
            link = lists.link(request, cursor)
            if not selection.includes:
                return lists.page(
                    request, caller, resource, content, envelope, headers=link, show=selection.shown
                )
            records = lists.pieces(request, caller, resource, content, selection.shown)
            head = lists.flow(records, envelope)
            return selections.page(request, caller, head, link, included)
        kind = costly(resource, query)
        if kind is not None:
            content = await scan(request, caller, kind, actions.page, resource, list_query=query)
        elif list_versions.has(query):
            first = await first_pages.read(request, caller, resource, query)
            if isinstance(first, First):
                headers = {"Content-Type": JSON, **lists.link(request, first.cursor)}
                return web.Response(body=first.body, headers=headers)
            content = first
        else:
            content = await lists.read(request, actions.page, caller, resource, query)
        cursor = text_of(resource, query, content.onward)
        beside = lists.envelope(content, query.page, query.limit, cursor)
        link = lists.link(request, cursor)
        return lists.page(request, caller, resource, content, beside, headers=link)

    return describe.page(resource, **of)(handle)


def _selects(request: web.Request) -> bool:
    """Return whether a request selects fields or references."""
    if not request.query_string:
        return False
    query = request.query
    return "fields" in query or "include" in query


async def _once(
    request: web.Request,
    caller: Actor,
    body: bytes,
    response: Callable[[Record], web.Response],
    unit: Callable[..., Awaitable[Record]],
    *args: Any,
) -> web.Response:
    """Return the response to a POST, whose unit runs once for each Idempotency-Key."""
    db = request.app[DB]
    if "Idempotency-Key" not in request.headers:
        return readable(caller, response(await db.write(unit, caller, *args)))
    use = once_of(caller, request, body)
    outcomes = Outcomes(response, keep, restore)
    return readable(caller, await idempotency.write(db, use, outcomes, unit, caller, *args))


def show(request: web.Request, members: Any, etag: str) -> web.Response:
    """Return 200 with the members, or 304 when the client has the current state."""
    headers = {"ETag": etag}
    if _is_known(etag, lines_of(request, "If-None-Match")):
        return web.Response(status=304, headers=headers)
    return answer(members, headers=headers)


def _word(unit: Any) -> str:
    """Return the verb of a unit: its name."""
    word: str = unit.__name__
    return word


def _is_known(etag: str, if_none_match: str | None) -> bool:
    """Return whether If-None-Match contains the ETag by weak comparison (RFC 9110 13.1.2)."""
    if if_none_match is None:
        return False
    tags = {tag.strip().removeprefix("W/") for tag in if_none_match.split(",")}
    return etag in tags or "*" in tags
