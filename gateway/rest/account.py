"""Handlers of accounts: tokens for passwords, who am I, API keys, the listing of webhooks."""

from typing import Any

import msgspec
from aiohttp import web
from msgspec import UNSET, Struct, UnsetType

from gateway import dates
from gateway.access import Actor
from gateway.appkeys import CLIENT, CONFIG, CREDENTIALS, DB, IDS, LIMITS, SIGN_IN
from gateway.auth import authenticate, presented
from gateway.catalogue import EVENT_NAMES
from gateway.draft import Draft, refusal
from gateway.errors import Fault, Refusal
from gateway.resource import Form
from gateway.resources.account import keys, tokens, users, webhooks
from gateway.resources.account.keys import KEY
from gateway.resources.account.users import SIGN_IN as SIGN_IN_FIELDS
from gateway.resources.account.webhooks import Record
from gateway.rest import shapes
from gateway.rest.body import draft, ignored, read_body
from gateway.rest.entries import id_of
from gateway.rest.errors import JSON
from gateway.rest.operations import operation
from gateway.schemas import Id, Instant
from outbox.database.transaction import Row
from outbox.ids import is_id

PRIVATE = {"Cache-Control": "no-store"}
LATER = "2030-01-31T00:00:00.000Z"


class Token(Struct, frozen=True, rename="camel"):
    """A bearer token, shown once; `expiresIn` is in seconds."""

    token: str
    token_type: str
    expires_in: int
    expires_at: Instant


class Me(Struct, frozen=True, rename="camel"):
    """The user behind a credential, and what the credential may do; `keyId` when it is a key."""

    id: Id
    email: str
    name: str
    timezone: str
    created_at: Instant
    scopes: list[str]
    key_id: Id | UnsetType = UNSET


class Key(Struct, frozen=True, rename="camel"):
    """An API key as it may be shown again and again."""

    id: Id
    name: str
    prefix: str
    scopes: list[str]
    created_at: Instant
    expires_at: Instant | UnsetType = UNSET
    last_used_at: Instant | UnsetType = UNSET


class NewKey(Key, frozen=True, kw_only=True, rename="camel"):
    """An API key with its secret part, shown once."""

    key: str


class Keys(Struct, frozen=True):
    """The API keys of a user that were not revoked, newest first."""

    data: list[Key]


class Webhooks(Struct, frozen=True, rename="camel"):
    """The webhooks of a user, and all events that one may subscribe to."""

    data: list[Record]
    available_events: list[str]


class Done(Struct, frozen=True):
    """What was done."""

    message: str


class Revoked(Struct, frozen=True):
    """What was done, and to which key."""

    message: str
    id: Id


ME_EXAMPLE = Me(
    shapes.example_id("user"), "maria@example.com", "Maria Silva", "America/Sao_Paulo",
    shapes.NOW, ["read", "write"], shapes.example_id("key"),
)  # fmt: skip
KEY_EXAMPLE = Key(
    shapes.example_id("key"), "Zapier", "crt_4fZk2TqW", ["read"], shapes.NOW,
    "2030-02-01T02:59:59.999Z",
)  # fmt: skip
WEBHOOK_EXAMPLE = Record(
    shapes.example_id("webhook"), "https://hooks.example.com/carteiro",
    ["contact.created", "deal.updated"], True, shapes.NOW, shapes.NOW,
)  # fmt: skip


@operation(
    "createToken", "Account", "Get a bearer token for a password",
    shapes.struct(Token("cst_dPy5vVnh0kQ3mC8r", "Bearer", 43_200, LATER)),
    credential="none", body=shapes.new(SIGN_IN_FIELDS), refusals=("unauthenticated",),
)  # fmt: skip
async def create_token(request: web.Request) -> web.Response:
    """POST /api/auth/token: a bearer token for an e-mail address and a password."""
    address = request[CLIENT].address
    request.app[LIMITS].sign_in(address)
    asked = (await _asked(request, SIGN_IN_FIELDS)).values
    user_id = await request.app[SIGN_IN].check(asked["email"], asked["password"], address)
    if user_id is None:
        raise Refusal(
            "unauthenticated",
            "The e-mail address or the password is wrong.",
        )
    lifetime = request.app[CONFIG].auth.token_hours * 3600
    issued = await request.app[DB].write(
        tokens.add, owner_id=user_id, text=tokens.make(request.app[IDS]), lifetime=lifetime
    )
    return _answer(Token(issued.text, "Bearer", lifetime, dates.show(issued.expires_at)))


@operation(
    "deleteToken", "Account", "End the token that the request carries",
    shapes.struct(Done("The token was ended.")), credential="token",
)  # fmt: skip
async def delete_token(request: web.Request) -> web.Response:
    """DELETE /api/auth/token: end the token that this request carries."""
    await authenticate(request)
    text = presented(request, "bearer") or ""
    if not text.startswith(tokens.PREFIX):
        raise Refusal("forbidden", "Send the token to be ended as Authorization: Bearer.")
    await request.app[DB].write(tokens.revoke, keys.digest_of(text))
    request.app[CREDENTIALS].forget()
    return _answer(Done("The token was ended."))


@operation("getMe", "Account", "Read who is calling", shapes.struct(ME_EXAMPLE))
async def me(request: web.Request) -> web.Response:
    """GET /api/me: the user behind the credential, and what the credential may do."""
    caller = await authenticate(request)
    user = await request.app[DB].read(users.one, caller.owner_id)
    if user is None:
        raise Refusal("not_found", "There is no such user.")
    return _answer(me_of(user, caller))


@operation(
    "listWebhooks", "Webhooks", "List webhooks and all events",
    shapes.struct(Webhooks([WEBHOOK_EXAMPLE], list(EVENT_NAMES))),
    description="Webhooks are created, changed and deleted in the console.",
)  # fmt: skip
async def list_webhooks(request: web.Request) -> web.Response:
    """GET /api/webhooks: the caller's webhooks, and all events that one may subscribe to."""
    caller = await authenticate(request)
    found = await request.app[DB].read(webhooks.listed, caller)
    return _answer(Webhooks([webhooks.record(one) for one in found], list(EVENT_NAMES)))


@operation(
    "listKeys", "Account", "List API keys", shapes.struct(Keys([KEY_EXAMPLE])), credential="token"
)
async def list_keys(request: web.Request) -> web.Response:
    """GET /api/keys: the caller's keys, without their secret part."""
    caller = await _with_token(request)
    rows = await request.app[DB].read(keys.listed, caller.owner_id)
    return _answer(Keys([Key(*_key(row)) for row in rows]))


@operation(
    "createKey", "Account", "Create an API key",
    shapes.struct(NewKey(*msgspec.structs.astuple(KEY_EXAMPLE), key="crt_4fZk2TqW_0pL7sJd2")),
    description="An account has 50 keys at most, unless its installation allows more.",
    status=201, headers=("X-Ignored-Fields",), credential="token", body=shapes.new(KEY),
    refusals=("conflict",),
)  # fmt: skip
async def create_key(request: web.Request) -> web.Response:
    """POST /api/keys: a new key, shown in this answer and never again."""
    caller = await _with_token(request)
    asked = await _asked(request, KEY)
    db = request.app[DB]
    expires_at = asked.values.get("expires_at")
    if isinstance(expires_at, dates.Day):
        expires_at = expires_at.ends(caller.zone)
    if expires_at is not None and expires_at <= db.clock.wall():
        raise refusal([Fault("expiresAt", "out_of_range", "Send an instant ahead.")])
    text = keys.make(request.app[IDS])
    row = await db.write(
        keys.add, owner_id=caller.owner_id, name=asked.values["name"], text=text,
        scopes=asked.values.get("scopes") or keys.SCOPES, expires_at=expires_at,
        most=request.app[CONFIG].limits.keys_per_owner,
    )  # fmt: skip
    return _answer(NewKey(*_key(row), key=text), 201, asked)


@operation(
    "deleteKey", "Account", "Revoke an API key",
    shapes.struct(Revoked("The API key was revoked.", shapes.example_id("key"))),
    description="It stops within a second on every node.", credential="token",
    parameters=(id_of("key"),),
)  # fmt: skip
async def delete_key(request: web.Request) -> web.Response:
    """DELETE /api/keys/{id}: revoke a key; it stops within a second on every node."""
    caller = await _with_token(request)
    key_id = request.match_info["id"].lower()
    row = await request.app[DB].read(keys.one, key_id) if is_id(key_id) else None
    if row is None:
        raise Refusal("not_found", "There is no such API key.")
    if row["owner_id"] != caller.owner_id:
        raise Refusal("forbidden", "This API key belongs to another user.")
    await request.app[DB].write(keys.revoke, caller.owner_id, key_id)
    request.app[CREDENTIALS].forget()
    return _answer(Revoked("The API key was revoked.", key_id))


def me_of(user: Row, caller: Actor) -> Me:
    """A user as one of their credentials sees them."""
    return Me(
        user["id"], user["email"], user["name"], user["timezone"],
        dates.show(user["created_at"]), sorted(caller.scopes), caller.key_id or UNSET,
    )  # fmt: skip


async def _with_token(request: web.Request) -> Actor:
    """The caller by password token: a key must not be able to make or end keys."""
    caller = await authenticate(request)
    if caller.via != "bearer":
        raise Refusal(
            "forbidden",
            "API keys are managed with a token from POST /api/auth/token, or in the console.",
        )
    return caller


def _key(row: Row) -> tuple[Any, ...]:
    """The values of a Key."""
    ends = (row["expires_at"], row["last_used_at"])
    return (
        row["id"], row["name"], row["visible"], sorted(keys.scopes_of(row)),
        dates.show(row["created_at"]), *(UNSET if at is None else dates.show(at) for at in ends),
    )  # fmt: skip


async def _asked(request: web.Request, of: Form) -> Draft:
    asked = draft(of, await read_body(request), creating=True)
    asked.must_hold()
    return asked


def _answer(body: Struct, status: int = 200, asked: Draft | None = None) -> web.Response:
    headers = {"Content-Type": JSON} | PRIVATE | ({} if asked is None else ignored(asked))
    return web.Response(status=status, body=msgspec.json.encode(body), headers=headers)
