"""Authenticates the caller of a REST request and charges the rate limit."""

from dataclasses import replace
from typing import Final

from aiohttp import web

from gateway.domain.accounts.credentials import Scheme
from gateway.domain.accounts.networks import share_of
from gateway.records.audit import Actor
from gateway.records.errors import Refusal
from gateway.rest.api_areas import must_reach
from gateway.server.app_keys import CALLER, CELLS, CREDENTIALS
from gateway.server.http.answers import must_have_room
from gateway.server.http.client_address import CLIENT
from gateway.server.http.rate_limits import CHARGED, LIMITS, RATE_LIMIT, Kind
from outbox.database.transaction import belongs_to

# Credentials are checked in this order; every credential of a request must be valid.
ORDER: Final[tuple[Scheme, ...]] = ("api_key", "bearer")

READS = frozenset({"GET", "HEAD", "OPTIONS"})


async def authenticate(request: web.Request) -> Actor:
    """Return the caller of `request` and charge the rate limit.

    Raises unauthenticated, misdirected, conflicting_credentials or rate_limited. It does not check
    scopes, because not_found takes precedence over a missing scope.
    """
    caller: Actor | None = None
    credentials = request.app[CREDENTIALS]
    for scheme in ORDER:
        text = presented(request, scheme)
        if text is None:
            continue
        actor = credentials.remembered(text, scheme)
        if actor is None:
            actor = await credentials.recognise(text, scheme)
        if actor is None:
            elsewhere = await request.app[CELLS].of_credential(text)
            raise elsewhere or _refused(f"The {_NAMES[scheme]} is invalid, revoked or expired.")
        if caller is not None and caller.owner_id != actor.owner_id:
            raise Refusal(
                "conflicting_credentials",
                "The X-API-Key and the bearer credential belong to different users; send only one.",
            )
        caller = actor if caller is None else _both(caller, actor)
    if caller is None:
        raise _refused(
            "Send an API key in the header X-API-Key, or a key or token as Authorization: Bearer."
        )
    if caller.resources is not None:
        must_reach(request, caller)
    request[CALLER] = caller
    belongs_to(caller.owner_id)
    charge(request, caller)
    must_have_room(request, caller.owner_id)
    return caller


def charge(request: web.Request, caller: Actor, tokens: int = 1) -> None:
    """Take tokens from the bucket that all credentials of an account share. Raises rate_limited.

    Its size is the limit of one key, so each single key stays within that limit too.
    """
    kind: Kind = "read" if request.method in READS else "write"
    limits = request.app[LIMITS]
    try:
        limit = limits.call(kind, caller.owner_id, tokens)
    except Refusal:
        # Else a client that asks again at once would never have the tokens of a costly request.
        limits.return_call(kind, caller.owner_id, request.get(CHARGED, 0))
        raise
    if limit is not None:
        request[CHARGED] = request.get(CHARGED, 0) + tokens
        request[RATE_LIMIT] = (limit, limits.policies[kind])


def charge_address(request: web.Request) -> None:
    """Take a read of a caller without a credential from its address. Raises rate_limited."""
    request.app[LIMITS].call("read", share_of(request[CLIENT].address))


def presented(request: web.Request, scheme: Scheme) -> str | None:
    """Return the request's credential of this scheme, or None; other schemes are ignored.

    A repeated header becomes one list (RFC 9110, 5.3) and so an invalid credential, because a proxy
    may have checked a different line of it.
    """
    if scheme == "api_key":
        lines = request.headers.getall("X-API-Key", None)
        return None if lines is None else ", ".join(lines)
    lines = request.headers.getall("Authorization", None)
    if lines is None:
        return None
    word, _, rest = ", ".join(lines).partition(" ")
    return rest.strip() if word.lower() == "bearer" else None


def must_present_token(request: web.Request) -> str:
    """Return the bearer credential of a caller. Raises unauthenticated when there is only a key."""
    text = presented(request, "bearer")
    if text is None:
        raise _refused("Send a token from POST /api/auth/token as Authorization: Bearer.")
    return text


def _both(one: Actor, other: Actor) -> Actor:
    """Return the caller with two credentials of one user and the scopes of both."""
    for caller in (one, other):
        if caller.key_id is None:
            # A token has all permissions of its user, including keys.
            return caller
    if one.resources != other.resources:
        text = "The two API keys are for different resources; send only one."
        raise Refusal("conflicting_credentials", text)
    return replace(one, scopes=one.scopes | other.scopes)


_NAMES = {"api_key": "API key", "bearer": "bearer credential"}


def _refused(text: str) -> Refusal:
    return Refusal("unauthenticated", text)
