"""Handles sign-in by password for a token, and GET /api/me."""

from aiohttp import web
from msgspec import UNSET, Struct, UnsetType

from gateway.domain.accounts import tokens, two_factor, users
from gateway.domain.accounts.users import SIGN_IN as SIGN_IN_FIELDS
from gateway.domain.accounts.users import CheckedAccount
from gateway.records.audit import Actor
from gateway.records.errors import Fault, Refusal, rate_limited
from gateway.records.values import dates
from gateway.records.values.emails import fold_email
from gateway.records.values.schemas import Id, Instant
from gateway.rest.auth import authenticate, must_present_token
from gateway.rest.body import read_draft, respond
from gateway.rest.document import shapes
from gateway.rest.document.operations import operation
from gateway.server.app_keys import CELLS, CREDENTIALS, DB, IDS, KEYRING, SIGN_IN
from gateway.server.http.client_address import CLIENT
from gateway.server.http.rate_limits import LIMITS
from gateway.server.installation import ACCOUNT_RULES
from outbox.database.transaction import Row
from outbox.ids import digest_of

ENROL = "This server requires two-factor authentication; set it up in the console first."
LATER = "2030-01-31T00:00:00.000Z"


class Token(Struct, frozen=True, rename="camel"):
    """A bearer token, shown once; `expiresIn` is in seconds."""

    token: str
    token_type: str
    expires_in: int
    expires_at: Instant


class Me(Struct, frozen=True, rename="camel"):
    """The account of a credential and the credential's scopes; `keyId` when it is a key."""

    id: Id
    email: str
    name: str
    timezone: str
    language: str | None
    created_at: Instant
    scopes: list[str]
    key_id: Id | UnsetType = UNSET


class Done(Struct, frozen=True):
    """The message of a successful action."""

    message: str


ME_EXAMPLE = Me(
    id=shapes.example_id("user"),
    email="maria@example.com",
    name="Maria Silva",
    timezone="America/Sao_Paulo",
    language="pt-BR",
    created_at=shapes.NOW,
    scopes=["read", "write"],
    key_id=shapes.example_id("key"),
)


@operation(
    "createToken", "Account", "Create a bearer token with e-mail and password",
    shapes.struct(Token("cst_dPy5vVnh0kQ3mC8r", "Bearer", 43_200, LATER)),
    credential="none", body=shapes.new(SIGN_IN_FIELDS),
    description="An account with two-factor authentication also sends `code`; without it the 401 "
    "has a detail of this field.",
    refusals=("unauthenticated", "forbidden", "rate_limited"),
)  # fmt: skip
async def create_token(request: web.Request) -> web.Response:
    """POST /api/auth/token: create a bearer token for an e-mail address and a password."""
    address = request[CLIENT].address
    request.app[LIMITS].sign_in(address)
    values = (await read_draft(request, SIGN_IN_FIELDS)).values
    user = await request.app[SIGN_IN].check(values["email"], values["password"], address)
    cells = request.app[CELLS]
    if user is None:
        refusal = await cells.of_name("email", fold_email(values["email"]))
        raise refusal or Refusal("unauthenticated", "Incorrect email or password.")
    account = users.as_checked(user)
    if account.two_factor_at is not None:
        await _check_code(request, account, values.get("code") or "", address)
    elif request.app[ACCOUNT_RULES].require_two_factor:
        raise Refusal("forbidden", ENROL)
    lifetime = request.app[ACCOUNT_RULES].token_seconds
    text = cells.marked(tokens.make(request.app[IDS]), account.id)
    issued = await request.app[DB].write(tokens.add, account, text=text, lifetime=lifetime)
    return respond(Token(issued.text, "Bearer", lifetime, dates.show(issued.expires_at)))


async def _check_code(
    request: web.Request, account: CheckedAccount, code: str, address: str
) -> None:
    """Raise unauthenticated or rate_limited unless the code of an account is right."""
    if not code:
        raise _no_code("required", "This account has two-factor authentication; send its code.")
    checked = await request.app[DB].write(
        two_factor.check, request.app[KEYRING], account.id, code, {"address": address}, account,
    )  # fmt: skip
    if checked.result == "wait":
        raise rate_limited(
            "Too many wrong codes; wait before you try again, or send a recovery code.",
            checked.seconds,
        )
    if checked.result != "right":
        raise _no_code("invalid", "The code is wrong or was used; send the app's next one.")


def _no_code(code: str, text: str) -> Refusal:
    return Refusal("unauthenticated", text, faults=[Fault("code", code, text)])


@operation(
    "deleteToken", "Account", "Revoke the token of this request",
    shapes.struct(Done("The token was revoked.")), credential="token",
)  # fmt: skip
async def delete_token(request: web.Request) -> web.Response:
    """DELETE /api/auth/token: revoke the token of this request."""
    await authenticate(request)
    text = must_present_token(request)
    if not text.startswith(tokens.PREFIX):
        raise Refusal("forbidden", "Send the token to revoke as Authorization: Bearer.")
    await request.app[DB].write(tokens.revoke, digest_of(text))
    request.app[CREDENTIALS].forget()
    return respond(Done("The token was revoked."))


@operation("getMe", "Account", "Read your account", shapes.struct(ME_EXAMPLE))
async def me(request: web.Request) -> web.Response:
    """GET /api/me: read the account of the credential and the credential's scopes."""
    caller = await authenticate(request)
    user = await request.app[DB].read(users.one, caller.owner_id)
    if user is None:
        raise Refusal("not_found", "This account does not exist.")
    return respond(me_of(user, caller))


def me_of(user: Row, caller: Actor) -> Me:
    """Return the account of a user with the scopes of the caller's credential."""
    return Me(
        id=user["id"],
        email=user["email"],
        name=user["name"],
        timezone=user["timezone"],
        language=user["language"],
        created_at=dates.show(user["created_at"]),
        scopes=sorted(caller.scopes),
        key_id=caller.key_id or UNSET,
    )
