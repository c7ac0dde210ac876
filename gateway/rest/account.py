"""Handlers of accounts: tokens for passwords, who am I, API keys, the listing of webhooks."""

from typing import Any

import msgspec
from aiohttp import web

from gateway import dates
from gateway.access import Caller
from gateway.appkeys import CLIENT, CONFIG, CREDENTIALS, DB, IDS, LIMITS, PASSWORDS
from gateway.auth import authenticate, presented
from gateway.catalogue import EVENT_NAMES
from gateway.errors import Fault, Refusal
from gateway.passwords import LONGEST
from gateway.proxies import share_of
from gateway.resources.account import keys, tokens, users, webhooks
from gateway.rest.handlers import read_body
from gateway.strictjson import InvalidJson, decode
from outbox.database import Row
from outbox.ids import is_id

JSON = "application/json"
LONGEST_NAME = 100
SCOPES = ("read", "write")
PRIVATE = {"Cache-Control": "no-store"}


async def create_token(request: web.Request) -> web.Response:
    """POST /api/auth/token: a bearer token for an e-mail address and a password."""
    request.app[LIMITS].sign_in(share_of(request[CLIENT].address))
    body = await _object(request)
    email = _text(body, "email", 254)
    password = _text(body, "password", LONGEST)
    db = request.app[DB]
    user = await db.read(users.by_email, email)
    stored = None if user is None or user["disabled_at"] is not None else user["password_hash"]
    if not await request.app[PASSWORDS].verify(stored, password) or user is None:
        raise Refusal(
            "unauthenticated",
            "The e-mail address or the password is wrong.",
            headers={"WWW-Authenticate": "Bearer, ApiKey"},
        )
    lifetime = request.app[CONFIG].auth.token_hours * 3600
    issued = await db.write(
        tokens.add, owner_id=user["id"], text=tokens.make(request.app[IDS]), lifetime=lifetime
    )
    return _answer(
        {
            "token": issued.text,
            "tokenType": "Bearer",
            "expiresIn": lifetime,
            "expiresAt": dates.show(issued.expires_at),
        }
    )


async def delete_token(request: web.Request) -> web.Response:
    """DELETE /api/auth/token: end the token that this request carries."""
    await authenticate(request)
    text = presented(request, "bearer") or ""
    if not text.startswith(tokens.PREFIX):
        raise Refusal("forbidden", "Send the token to be ended as Authorization: Bearer.")
    await request.app[DB].write(tokens.revoke, keys.digest_of(text))
    request.app[CREDENTIALS].forget()
    return _answer({"message": "The token was ended."})


async def me(request: web.Request) -> web.Response:
    """GET /api/me: the user behind the credential, and what the credential may do."""
    caller = await authenticate(request)
    user = await request.app[DB].read(users.one, caller.user_id)
    if user is None:
        raise Refusal("not_found", "There is no such user.")
    answer: dict[str, Any] = {
        "id": user["id"],
        "email": user["email"],
        "name": user["name"],
        "timezone": user["timezone"],
        "createdAt": dates.show(user["created_at"]),
        "scopes": sorted(caller.scopes),
    }
    if caller.key_id is not None:
        answer["keyId"] = caller.key_id
    return _answer(answer)


async def list_webhooks(request: web.Request) -> web.Response:
    """GET /api/webhooks: the caller's webhooks, and all events that one may subscribe to."""
    caller = await authenticate(request)
    found = await request.app[DB].read(webhooks.listed, caller)
    return _answer(
        {
            "data": [webhooks.record(webhook) for webhook in found],
            "availableEvents": list(EVENT_NAMES),
        }
    )


async def list_keys(request: web.Request) -> web.Response:
    """GET /api/keys: the caller's keys, without their secret part."""
    caller = await _with_token(request)
    rows = await request.app[DB].read(keys.listed, caller.user_id)
    return _answer({"data": [_key(row) for row in rows]})


async def create_key(request: web.Request) -> web.Response:
    """POST /api/keys: a new key, shown in this answer and never again."""
    caller = await _with_token(request)
    body = await _object(request)
    name = _text(body, "name", LONGEST_NAME)
    scopes = body.get("scopes", list(SCOPES))
    if not isinstance(scopes, list) or not scopes or not all(s in SCOPES for s in scopes):
        raise _invalid("scopes", "not_allowed", "Send a list of: read, write.")
    db = request.app[DB]
    text = keys.make(request.app[IDS])
    row = await db.write(
        keys.add, owner_id=caller.user_id, name=name, text=text, scopes=scopes,
        expires_at=_expiry(body.get("expiresAt"), db.clock.wall()),
    )  # fmt: skip
    return _answer(_key(row) | {"key": text}, status=201)


async def delete_key(request: web.Request) -> web.Response:
    """DELETE /api/keys/{id}: revoke a key; it stops within a second on every node."""
    caller = await _with_token(request)
    key_id = request.match_info["id"].lower()
    row = await request.app[DB].read(keys.one, key_id) if is_id(key_id) else None
    if row is None:
        raise Refusal("not_found", "There is no such API key.")
    if row["owner_id"] != caller.user_id:
        raise Refusal("forbidden", "This API key belongs to another user.")
    await request.app[DB].write(keys.revoke, caller.user_id, key_id)
    request.app[CREDENTIALS].forget()
    return _answer({"message": "The API key was revoked.", "id": key_id})


async def _with_token(request: web.Request) -> Caller:
    """The caller by password token: a key must not be able to make or end keys."""
    caller = await authenticate(request)
    if caller.via != "bearer":
        raise Refusal(
            "forbidden",
            "API keys are managed with a token from POST /api/auth/token, or in the console.",
        )
    return caller


def _key(row: Row) -> dict[str, Any]:
    """A key as it may be shown again and again."""
    record: dict[str, Any] = {
        "id": row["id"],
        "name": row["name"],
        "prefix": row["visible"],
        "scopes": sorted(keys.scopes_of(row)),
        "createdAt": dates.show(row["created_at"]),
    }
    for member, column in (("expiresAt", "expires_at"), ("lastUsedAt", "last_used_at")):
        if row[column] is not None:
            record[member] = dates.show(row[column])
    return record


async def _object(request: web.Request) -> dict[str, Any]:
    try:
        body = decode(await read_body(request))
    except InvalidJson as wrong:
        raise Refusal("invalid_json", str(wrong)) from None
    if not isinstance(body, dict):
        raise Refusal("validation_error", "The body must be a JSON object.")
    return body


def _text(body: dict[str, Any], field: str, most: int) -> str:
    value = body.get(field)
    if not isinstance(value, str) or not value.strip() or len(value) > most or "\0" in value:
        raise _invalid(field, "required", f"Send {field} as text of 1 to {most} characters.")
    return value


def _expiry(value: Any, now: int) -> int | None:
    if value is None:
        return None
    instant = dates.parse(value) if isinstance(value, str) else None
    if instant is None or instant <= now:
        raise _invalid("expiresAt", "not_a_date", "Send an instant ahead, such as 2030-01-31.")
    return instant


def _invalid(field: str, code: str, message: str) -> Refusal:
    return Refusal("validation_error", message, faults=[Fault(field, code, message)])


def _answer(body: dict[str, Any], status: int = 200) -> web.Response:
    headers = {"Content-Type": JSON} | PRIVATE
    return web.Response(status=status, body=msgspec.json.encode(body), headers=headers)
