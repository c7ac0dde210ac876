"""Handles API keys."""

from typing import Any

import msgspec
from aiohttp import web
from msgspec import UNSET, Struct, UnsetType

from gateway.domain.accounts import api_keys, tokens
from gateway.domain.accounts.api_keys import KEY
from gateway.records.audit import Actor
from gateway.records.errors import Fault, Refusal
from gateway.records.record import refusal
from gateway.records.values import dates
from gateway.records.values.schemas import Id, Instant
from gateway.rest.auth import ORDER, authenticate, must_present_token, presented
from gateway.rest.body import read_draft, respond
from gateway.rest.document import shapes
from gateway.rest.document.describe import id_of
from gateway.rest.document.operations import operation
from gateway.server.app_keys import CELLS, CREDENTIALS, DB, IDS
from gateway.server.installation import ACCOUNT_RULES
from outbox.database.transaction import Row
from outbox.ids import is_id


class Key(Struct, frozen=True, rename="camel"):
    """An API key without its secret part."""

    id: Id
    name: str
    prefix: str
    scopes: list[str]
    created_at: Instant
    expires_at: Instant | UnsetType = UNSET
    last_used_at: Instant | UnsetType = UNSET
    resources: list[str] | UnsetType = UNSET


class NewKey(Key, frozen=True, kw_only=True, rename="camel"):
    """An API key with its secret part, shown once."""

    key: str


class Keys(Struct, frozen=True):
    """The API keys of a user without revoked ones, newest first."""

    data: list[Key]


class Revoked(Struct, frozen=True):
    """The message of a revocation, and the id of the key."""

    message: str
    id: Id


KEY_EXAMPLE = Key(
    shapes.example_id("key"), "Zapier", "crt_4fZk2TqW", ["read"], shapes.NOW,
    "2030-02-01T02:59:59.999Z",
)  # fmt: skip


@operation(
    "listKeys", "Account", "List API keys", shapes.struct(Keys([KEY_EXAMPLE])), credential="token"
)
async def list_keys(request: web.Request) -> web.Response:
    """GET /api/keys: list the caller's keys, without their secret part."""
    caller = await _with_token(request)
    rows = await request.app[DB].read(api_keys.listed, caller.owner_id)
    return respond(Keys([Key(*_key(row)) for row in rows]))


@operation(
    "createKey", "Account", "Create an API key",
    shapes.struct(NewKey(*msgspec.structs.astuple(KEY_EXAMPLE), key="crt_4fZk2TqW_0pL7sJd2")),
    description="An account has at most 50 keys by default.",
    status=201, headers=("X-Ignored-Fields",), credential="token", body=shapes.new(KEY),
    refusals=("conflict",),
)  # fmt: skip
async def create_key(request: web.Request) -> web.Response:
    """POST /api/keys: create a key, whose secret part only this response shows."""
    caller = await _with_token(request)
    draft = await read_draft(request, KEY)
    db = request.app[DB]
    expires_at = draft.values.get("expires_at")
    if isinstance(expires_at, dates.Day):
        expires_at = expires_at.ends(caller.zone)
    if expires_at is not None and expires_at <= db.clock.wall():
        message = "expiresAt must be in the future."
        raise refusal([Fault("expiresAt", "out_of_range", message)])
    text = request.app[CELLS].marked(api_keys.make(request.app[IDS]), caller.owner_id)
    key = api_keys.KeyDraft(
        name=draft.values["name"],
        text=text,
        scopes=draft.values.get("scopes") or api_keys.SCOPES,
        expires_at=expires_at,
        resources=draft.values.get("resources"),
    )
    most = request.app[ACCOUNT_RULES].most_keys
    row = await db.write(
        tokens.while_live, caller.owner_id, _token_of(request), api_keys.add, caller.owner_id, key,
        most=most, actor=caller,
    )  # fmt: skip
    return respond(NewKey(*_key(row), key=text), 201, draft)


@operation(
    "deleteKey", "Account", "Revoke an API key",
    shapes.struct(Revoked("The API key was revoked.", shapes.example_id("key"))),
    description="The key stops working within a second on every node.", credential="token",
    parameters=(id_of("key"),),
)  # fmt: skip
async def delete_key(request: web.Request) -> web.Response:
    """DELETE /api/keys/{id}: revoke a key; it stops working within a second on every node."""
    caller = await _with_token(request)
    key_id = request.match_info["id"].lower()
    row = await request.app[DB].read(api_keys.one, key_id) if is_id(key_id) else None
    if row is None:
        raise Refusal("not_found", "There is no API key with this id.")
    if row["owner_id"] != caller.owner_id:
        raise Refusal("forbidden", "This API key belongs to another user.")
    await request.app[DB].write(api_keys.revoke, caller.owner_id, key_id, caller)
    request.app[CREDENTIALS].forget()
    return respond(Revoked("The API key was revoked.", key_id))


async def _with_token(request: web.Request) -> Actor:
    """Return the caller of a bearer token; a key must not create or revoke keys."""
    caller = await authenticate(request)
    must_present_token(request)
    if caller.via != "bearer":
        raise Refusal(
            "forbidden",
            "Manage API keys with a token from POST /api/auth/token, or in the console.",
        )
    return caller


def _token_of(request: web.Request) -> str:
    """Return the token of a caller who has one, in whichever header it is."""
    sent = [presented(request, scheme) or "" for scheme in ORDER]
    return next((text for text in sent if text.startswith(tokens.PREFIX)), "")


def _key(row: Row) -> tuple[Any, ...]:
    """Return the values of a Key."""
    ends = (row["expires_at"], row["last_used_at"])
    only = api_keys.resources_of(row)
    return (
        row["id"], row["name"], row["visible"], sorted(api_keys.scopes_of(row)),
        dates.show(row["created_at"]), *(UNSET if at is None else dates.show(at) for at in ends),
        UNSET if only is None else sorted(only),
    )  # fmt: skip
