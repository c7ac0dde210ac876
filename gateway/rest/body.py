"""Reads request bodies and checks them into drafts; writes structs as response bodies."""

import asyncio
import re
from collections.abc import Sequence

import msgspec
from aiohttp import web
from msgspec import Struct

from gateway.records.errors import Refusal
from gateway.records.record import STRICT, Draft, check
from gateway.records.resource import Form
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
