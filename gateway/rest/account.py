"""Handlers of tokens for passwords, and of who is calling."""

from aiohttp import web
from msgspec import UNSET, Struct, UnsetType

from gateway.domain.accounts import keys, tokens, users
from gateway.domain.accounts.users import SIGN_IN as SIGN_IN_FIELDS
from gateway.records.access import Actor
from gateway.records.errors import Refusal
from gateway.records.values import dates
from gateway.records.values.schemas import Id, Instant
from gateway.rest.auth import authenticate, presented
from gateway.rest.body import asked_of
from gateway.rest.document import shapes
from gateway.rest.document.operations import operation
from gateway.rest.structs import answer
from gateway.server.keys import CLIENT, CONFIG, CREDENTIALS, DB, IDS, LIMITS, SIGN_IN
from outbox.database.transaction import Row

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


class Done(Struct, frozen=True):
    """What was done."""

    message: str


ME_EXAMPLE = Me(
    shapes.example_id("user"), "maria@example.com", "Maria Silva", "America/Sao_Paulo",
    shapes.NOW, ["read", "write"], shapes.example_id("key"),
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
    asked = (await asked_of(request, SIGN_IN_FIELDS)).values
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
    return answer(Token(issued.text, "Bearer", lifetime, dates.show(issued.expires_at)))


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
    return answer(Done("The token was ended."))


@operation("getMe", "Account", "Read who is calling", shapes.struct(ME_EXAMPLE))
async def me(request: web.Request) -> web.Response:
    """GET /api/me: the user behind the credential, and what the credential may do."""
    caller = await authenticate(request)
    user = await request.app[DB].read(users.one, caller.owner_id)
    if user is None:
        raise Refusal("not_found", "There is no such user.")
    return answer(me_of(user, caller))


def me_of(user: Row, caller: Actor) -> Me:
    """A user as one of their credentials sees them."""
    return Me(
        user["id"], user["email"], user["name"], user["timezone"],
        dates.show(user["created_at"]), sorted(caller.scopes), caller.key_id or UNSET,
    )  # fmt: skip
