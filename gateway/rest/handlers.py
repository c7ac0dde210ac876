"""Handlers of the REST door, generic over a resource. They know HTTP and call `actions`."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

import msgspec
from aiohttp import web

from gateway import actions, bodies, idempotency, listing
from gateway.access import Caller
from gateway.appkeys import DB
from gateway.auth import authenticate
from gateway.errors import Refusal
from gateway.idempotency import Answer
from gateway.resource import Resource
from gateway.rest import entries, lists, shapes
from gateway.rest.operations import Operation
from gateway.rest.scans import scan
from gateway.validation import Draft, draft
from gateway.views import View
from outbox.database.transaction import Tx

Create = Callable[[Tx, Caller, Resource, Draft], Awaitable[View]]
Change = Callable[[Tx, Caller, Resource, str, Draft, str | None], Awaitable[View]]
Verb = Callable[[Tx, Caller, str], Awaitable[View]]
VerbWith = Callable[[Tx, Caller, str, Draft], Awaitable[View]]

JSON = "application/json"
_encode = msgspec.json.Encoder().encode


def create(resource: Resource, unit: Create = actions.create) -> Operation:
    """POST on the collection: 201 with the new record."""

    async def handle(request: web.Request) -> web.Response:
        caller = await authenticate(request)
        body = await read_body(request)
        asked = draft(resource, body, creating=True)

        def answer(made: View) -> Answer:
            location = f"{resource.path}/{made.record_id}"
            headers = {"ETag": made.etag, "Location": location} | _ignored(asked)
            return Answer(201, _encode(made.shown), headers)

        use = idempotency.ticket(
            caller, request.headers.get("Idempotency-Key"), "POST", request.path, body
        )
        db = request.app[DB]
        return told(caller, await idempotency.write(db, use, answer, unit, caller, resource, asked))

    return entries.create(resource)(handle)


def read(resource: Resource) -> Operation:
    """GET one record: 200, or 304 when the client has this state already."""

    async def handle(request: web.Request) -> web.Response:
        caller = await authenticate(request)
        record_id = request.match_info["id"]
        return show(request, await request.app[DB].read(actions.read, caller, resource, record_id))

    return entries.read(resource)(handle)


def change(
    resource: Resource, unit: Change = actions.change, refusals: Sequence[str] = ()
) -> Operation:
    """PUT and PATCH one record: what is sent is written over it (RFC 7396)."""

    async def handle(request: web.Request) -> web.Response:
        caller = await authenticate(request)
        asked = draft(resource, await read_body(request), creating=False)
        changed = await request.app[DB].write(
            unit, caller, resource, request.match_info["id"], asked,
            request.headers.get("If-Match"),
        )  # fmt: skip
        return show_change(caller, changed, asked)

    return entries.change(resource, refusals)(handle)


def remove(resource: Resource) -> Operation:
    """DELETE one record: 200 with a message and its id."""

    async def handle(request: web.Request) -> web.Response:
        caller = await authenticate(request)
        record_id = request.match_info["id"]
        await request.app[DB].write(
            actions.remove, caller, resource, record_id, request.headers.get("If-Match")
        )
        body = {"message": shapes.said_of_delete(resource), "id": record_id.lower()}
        return respond(Answer(200, _encode(body), {}))

    return entries.remove(resource)(handle)


def verb(resource: Resource, unit: Verb, summary: str, refusals: Sequence[str] = ()) -> Operation:
    """POST a verb without a body on one record: 200 with the record. Named after its unit."""

    async def handle(request: web.Request) -> web.Response:
        caller = await authenticate(request)

        def answer(done: View) -> Answer:
            return Answer(200, _encode(done.shown), {"ETag": done.etag})

        # Nothing is read of a body, so it may be anything.
        body = await bodies.read(request)
        use = idempotency.ticket(
            caller, request.headers.get("Idempotency-Key"), "POST", request.path, body
        )
        db = request.app[DB]
        return told(
            caller,
            await idempotency.write(db, use, answer, unit, caller, request.match_info["id"]),
        )

    return entries.verb(resource, _word(unit), summary, refusals=refusals)(handle)


def verb_with(
    resource: Resource,
    takes: Sequence[str],
    unit: VerbWith,
    summary: str,
    *,
    makes: Resource | None = None,
    refusals: Sequence[str] = (),
) -> Operation:
    """POST a verb on one record, with a body or none: 200, or 201 for the record that it `makes`.

    The body takes the fields `takes` of the record that is answered. Named after its unit.
    """
    result = makes or resource

    async def handle(request: web.Request) -> web.Response:
        caller = await authenticate(request)
        body = await read_body(request)
        asked = draft(result, body or b"{}", takes=takes)

        def answer(done: View) -> Answer:
            headers = {"ETag": done.etag} | _ignored(asked)
            if makes is not None:
                headers["Location"] = f"{makes.path}/{done.record_id}"
            return Answer(200 if makes is None else 201, _encode(done.shown), headers)

        use = idempotency.ticket(
            caller, request.headers.get("Idempotency-Key"), "POST", request.path, body
        )
        db = request.app[DB]
        return told(
            caller,
            await idempotency.write(db, use, answer, unit, caller, request.match_info["id"], asked),
        )

    return entries.verb(
        resource, _word(unit), summary, body=shapes.some(result, takes), makes=makes,
        refusals=refusals,
    )(handle)  # fmt: skip


def page(resource: Resource, **of: str) -> Operation:
    """GET the collection: one page of the caller's own records.

    `of` names filters whose value stands in the path: filter=path parameter.
    """

    async def handle(request: web.Request) -> web.StreamResponse:
        caller = await authenticate(request)
        fixed = {name: request.match_info[parameter] for name, parameter in of.items()}
        wanted = listing.plan(resource, {**request.query, **fixed} if of else request.query)
        if wanted.costly is None:
            found = await lists.read(request, actions.page, caller, resource, wanted)
        else:
            found = await scan(
                request, caller, wanted.costly, actions.page, caller, resource, wanted
            )
        beside: dict[str, Any] = {
            "total": found.total,
            "page": wanted.page,
            "limit": wanted.limit,
        }
        headers: dict[str, str] = {}
        if found.cursor is not None:
            beside["nextCursor"] = found.cursor
            query = [(k, v) for k, v in request.query.items() if k not in ("page", "cursor")]
            onward = urlencode([*query, ("cursor", found.cursor)], errors="replace")
            headers["Link"] = f'<{request.rel_url.raw_path}?{onward}>; rel="next"'
        return lists.page(request, caller, resource, found.records, beside, headers)

    return entries.page(resource, **of)(handle)


async def read_body(request: web.Request) -> bytes:
    """The body's bytes. Raises unsupported_media_type unless it is JSON or says nothing."""
    kind = request.headers.get("Content-Type")
    if kind is not None and not _is_json(kind):
        raise Refusal("unsupported_media_type", "Send the body as application/json, in UTF-8.")
    return await bodies.read(request)


def show(request: web.Request, found: View) -> web.Response:
    """What was read: 200, or 304 when the client has this state already."""
    headers = {"ETag": found.etag}
    if _is_known(found.etag, request.headers.get("If-None-Match")):
        return web.Response(status=304, headers=headers)
    headers["Content-Type"] = JSON
    return web.Response(body=_encode(found.shown), headers=headers)


def show_change(caller: Caller, changed: View, asked: Draft) -> web.Response:
    """What a change made: 200, with the names of what it ignored."""
    headers = {"ETag": changed.etag} | _ignored(asked)
    return told(caller, Answer(200, _encode(changed.shown), headers))


def told(caller: Caller, answer: Answer) -> web.Response:
    """The answer to a write, as far as its caller may read: without that scope, the id alone.

    What is stored for a repeat is whole; each who repeats gets what they may see.
    """
    if "read" in caller.scopes:
        return respond(answer)
    whole: dict[str, Any] = msgspec.json.decode(answer.body)
    return respond(replace(answer, body=_encode({k: v for k, v in whole.items() if k == "id"})))


def respond(answer: Answer) -> web.Response:
    """An answer as a response, marked when it is a repeat."""
    headers = {"Content-Type": JSON, **answer.headers}
    if answer.replayed:
        headers["Idempotent-Replayed"] = "true"
    return web.Response(status=answer.status, body=answer.body, headers=headers)


def _word(unit: Any) -> str:
    """The verb that a unit does."""
    word: str = unit.__name__
    return word


def _ignored(asked: Draft) -> dict[str, str]:
    return {"X-Ignored-Fields": asked.ignored_header} if asked.ignored else {}


def _is_json(kind: str) -> bool:
    name, charset = bodies.media_type(kind)
    return (name == JSON or name.endswith("+json")) and charset in ("utf-8", "utf8", "us-ascii")


def _is_known(etag: str, if_none_match: str | None) -> bool:
    """RFC 9110 13.1.2: weak comparison."""
    if if_none_match is None:
        return False
    tags = {tag.strip().removeprefix("W/") for tag in if_none_match.split(",")}
    return etag in tags or "*" in tags
