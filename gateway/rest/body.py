"""Reads request bodies into drafts, and writes records and structs as response bodies."""

import asyncio
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import Any

import msgspec
from aiohttp import web
from msgspec import UNSET, Struct

from gateway.records.audit import Actor
from gateway.records.errors import Refusal
from gateway.records.record import CREATED_AT, ID, STRICT, UPDATED_AT, Draft, Record, check
from gateway.records.resource import SYSTEM_COLUMNS, Form, Resource
from gateway.records.values import dates
from gateway.records.values.strictjson import InvalidJson, decode
from gateway.rest.errors import JSON
from gateway.rest.preferences import APPLIED, is_strict, unasked
from gateway.server.http import bodies
from gateway.server.http.account_turns import PARSING, turn

_HEADER_NAME = re.compile(r"[A-Za-z0-9_.\[\]-]{1,64}", re.ASCII)
PRIVATE = {"Content-Type": JSON, "Cache-Control": "no-store"}
"""The headers of a response that caches must not store."""
IGNORED_SHOWN = 10
IN_TURN_BYTES = 8_192
"""A body from this size on is parsed in turn: it may take as long as a hundred small ones."""


async def read_body(request: web.Request) -> bytes:
    """Return the body's bytes. Raises unsupported_media_type for a Content-Type other than JSON."""
    kind = request.headers.get("Content-Type")
    if kind is not None and not _is_json(kind):
        raise Refusal("unsupported_media_type", "Send the body as application/json, in UTF-8.")
    body = await bodies.read(request)
    if len(body) >= IN_TURN_BYTES:
        # The loop serves other requests between two large bodies; then this one is parsed.
        async with turn(request, PARSING):
            await asyncio.sleep(0)
    return body


def draft_of(
    request: web.Request,
    form: Form,
    body: bytes,
    *,
    creating: bool = False,
    takes: Sequence[str] | None = None,
) -> Draft:
    """Return the draft of a request with this body; see gateway.records.record.check."""
    try:
        sent = decode(body)
    except InvalidJson as error:
        return Draft(unreadable=Refusal("invalid_json", str(error)))
    if not isinstance(sent, dict):
        return Draft(unreadable=Refusal("validation_error", "Send a JSON object as the body."))
    draft = check(form, sent, from_json=True, creating=creating, takes=takes)
    draft.strict = "Prefer" in request.headers and is_strict(request)
    if draft.strict:
        draft.ignored += unasked(request)
    return draft


async def read_draft(request: web.Request, form: Form) -> Draft:
    """Return the draft of a request's body. Raises the faults of the draft."""
    draft = draft_of(request, form, await read_body(request), creating=True)
    draft.must_hold()
    return draft


def ignored(draft: Draft) -> dict[str, str]:
    """Return the header X-Ignored-Fields, if any, which contains only safe names.

    A strict draft has none: its header says that it was strict.
    """
    if draft.strict:
        return {APPLIED: STRICT}
    return {"X-Ignored-Fields": safe_names(draft.ignored)} if draft.ignored else {}


def safe_names(names: Sequence[str]) -> str:
    """Return the first names for a header; one with other characters, and the rest, as …"""
    safe = [name if _HEADER_NAME.fullmatch(name) else "…" for name in names[:IGNORED_SHOWN]]
    return ", ".join(safe + ["…"] * (len(names) > IGNORED_SHOWN))


def _is_json(kind: str) -> bool:
    name, charset = bodies.media_type(kind)
    return (name == JSON or name.endswith("+json")) and charset in ("utf-8", "utf8", "us-ascii")


def respond(body: Struct, status: int = 200, draft: Draft | None = None) -> web.Response:
    """Return the response with `body` and the names of ignored fields of `draft`."""
    headers = PRIVATE | ({} if draft is None else ignored(draft))
    return web.Response(status=status, body=msgspec.json.encode(body), headers=headers)


_FIRST = len(SYSTEM_COLUMNS)
_encode = msgspec.json.Encoder().encode
NONE: Mapping[str, str] = MappingProxyType({})


@lru_cache(maxsize=256)
def shape(resource: Resource) -> type[Struct]:
    """Return the struct of a record's JSON members; its encoder omits members with the default."""
    members: list[tuple[str, Any, Any]] = [("id", Any, None)]
    # Null differs from the default of a field that is always shown.
    members += [(f.name, Any, UNSET if f.always else None) for f in resource.fields]
    members += [(d.name, Any, UNSET) for d in resource.derived if d.name not in resource.named]
    members += [("createdAt", Any, None), ("updatedAt", Any, None)]
    return msgspec.defstruct(resource.noun.capitalize(), members, omit_defaults=True, frozen=True)


def quoted(etag: str) -> str:
    """Return a tag in the form of the header ETag."""
    return f'"{etag}"'


def shown(resource: Resource, records: Sequence[Record]) -> list[Struct]:
    """Return the JSON members of each record, without unset fields except `always` ones."""
    make, shows, end = shape(resource), resource.shows, _FIRST + len(resource.fields)
    derives = resource.derives
    members = []
    for record in records:
        row = record.row
        fields = list(row[_FIRST:end])
        for place, show in shows:
            if (value := fields[place]) is not None:
                fields[place] = show(value)
        if derives:
            for derived_place, value in zip(derives, record.derived, strict=True):
                if derived_place is None:
                    fields.append(value)
                else:
                    fields[derived_place] = value
        updated_at = row[UPDATED_AT]
        members.append(
            make(
                row[ID],
                *fields,
                dates.show(row[CREATED_AT]),
                None if updated_at is None else dates.show(updated_at),
            )
        )
    return members


def members_of(record: Record) -> dict[str, Any]:
    """Return the JSON members of a record by name, without unset ones."""
    [one] = shown(record.resource, [record])
    members: dict[str, Any] = msgspec.json.decode(_encode(one))
    return members


def written(record: Record, status: int = 200, headers: Mapping[str, str] = NONE) -> web.Response:
    """Return the response to a write: its record."""
    [members] = shown(record.resource, [record])
    return answer(members, status, {"ETag": quoted(record.etag), **headers})


def answer(members: Any, status: int = 200, headers: Mapping[str, str] = NONE) -> web.Response:
    """Return the response with these members."""
    headers = {"Content-Type": JSON, **headers}
    return web.Response(status=status, body=_encode(members), headers=headers)


def readable(caller: Actor, response: web.Response) -> web.Response:
    """Return the response to a write for its caller: without the scope `read` the id alone.

    The kept response is complete; each repeat shows what its own credential can read.
    """
    if "read" not in caller.scopes and isinstance(response.body, bytes):
        whole: dict[str, Any] = msgspec.json.decode(response.body)
        response.body = _encode({k: v for k, v in whole.items() if k == "id"})
    return response


def keep(response: web.Response) -> str:
    """Return a response as text for a repeated Idempotency-Key."""
    assert isinstance(response.body, bytes)
    return _encode((response.status, dict(response.headers), response.body.decode())).decode()


def restore(text: str) -> web.Response:
    """Return the response of a repeated request, which says that it is a repeat."""
    status, headers, body = msgspec.json.decode(text, type=tuple[int, dict[str, str], str])
    headers = {"Content-Type": JSON, **headers, "Idempotent-Replayed": "true"}
    return web.Response(status=status, body=body.encode(), headers=headers)
