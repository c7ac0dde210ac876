"""Handles sign-up, and changes of an account's name, time zone and language."""

from dataclasses import replace

from aiohttp import web
from msgspec import Struct

from gateway import texts
from gateway.domain.accounts import users
from gateway.domain.accounts.networks import share_of
from gateway.domain.accounts.passwords import weakness_of
from gateway.domain.accounts.users import PROFILE, SIGN_UP
from gateway.domain.sales import new_accounts
from gateway.records.errors import Refusal
from gateway.records.record import refusal
from gateway.records.values import dates, zones
from gateway.records.values.schemas import Id, Instant
from gateway.rest.account import ME_EXAMPLE, me_of
from gateway.rest.auth import authenticate
from gateway.rest.body import draft_of, read_body, respond
from gateway.rest.document import shapes
from gateway.rest.document.operations import operation
from gateway.server.app_keys import CREDENTIALS, DB, PASSWORDS
from gateway.server.http.client_address import CLIENT
from gateway.server.http.rate_limits import LIMITS
from gateway.server.installation import ACCOUNT_RULES
from outbox.database.transaction import Row

CLOSED = "Sign-up is closed on this server; ask its administrator for an account."


class User(Struct, frozen=True, rename="camel"):
    """An account."""

    id: Id
    email: str
    name: str
    timezone: str
    created_at: Instant


@operation(
    "signUp", "Account", "Create an account",
    shapes.struct(
        User(
            shapes.example_id("user"), "maria@example.com", "Maria Silva", zones.DEFAULT, shapes.NOW
        )
    ),
    status=201, headers=("X-Ignored-Fields",), credential="none", body=shapes.new(SIGN_UP),
    description="Sign-up is closed by default; the setting [auth] signup opens it.",
    refusals=("forbidden", "conflict", "rate_limited", "unavailable"),
)  # fmt: skip
async def sign_up(request: web.Request) -> web.Response:
    """POST /api/auth/signup: create an account; it signs in at POST /api/auth/token."""
    if not request.app[ACCOUNT_RULES].open_sign_up:
        raise Refusal("forbidden", CLOSED)
    address = request[CLIENT].address
    share = share_of(address)
    request.app[LIMITS].sign_in(address)
    request.app[LIMITS].count("form", share)
    draft = draft_of(request, SIGN_UP, await read_body(request), creating=True)
    draft.must_hold()
    values = draft.values
    weakness = weakness_of(values["password"], values["email"])
    if weakness is not None:
        code = "invalid_characters" if weakness.code == "password_character" else "too_common"
        raise refusal([replace(fault, code=code) for fault in weakness.faults("password")])
    hashed = await request.app[PASSWORDS].hash(values["password"], share)
    language = values.get("language")
    spoken = language or texts.asked(request.headers.get("Accept-Language", ""))
    user = await request.app[DB].write(
        new_accounts.create, spoken, via="session", email=values["email"], name=values["name"],
        password_hash=hashed, timezone=values["timezone"], language=language,
    )  # fmt: skip
    return respond(_user(user), 201, draft)


@operation(
    "updateMe", "Account", "Change your name, time zone and language", shapes.struct(ME_EXAMPLE),
    headers=("X-Ignored-Fields",), body=shapes.changes(PROFILE),
)  # fmt: skip
async def change_me(request: web.Request) -> web.Response:
    """PATCH /api/me: change the fields of the body."""
    caller = await authenticate(request)
    caller.must("write")
    draft = draft_of(request, PROFILE, await read_body(request))
    draft.must_hold()
    user = await request.app[DB].write(users.change, caller.owner_id, draft.values, caller)
    # The cached callers include their time zones.
    request.app[CREDENTIALS].forget()
    return respond(me_of(user, caller), 200, draft)


def _user(user: Row) -> User:
    return User(
        user["id"], user["email"], user["name"], user["timezone"], dates.show(user["created_at"])
    )
