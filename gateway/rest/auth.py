"""Who is calling the REST API: reads the request's credentials and charges its rate limit."""

from dataclasses import replace
from typing import Final

from aiohttp import web

from gateway.domain.accounts.credentials import Scheme
from gateway.records.access import Actor
from gateway.records.errors import Refusal
from gateway.server.answers import must_have_room
from gateway.server.keys import CALLER, CREDENTIALS, LIMITS, RATE_LIMIT
from gateway.server.limits import Kind

# Actors are recognised in this order; every credential that is presented must be good.
ORDER: Final[tuple[Scheme, ...]] = ("api_key", "bearer")

READS = frozenset({"GET", "HEAD", "OPTIONS"})


async def authenticate(request: web.Request) -> Actor:
    """The caller of `request`, counted against the rate limit.

    Raises unauthenticated, conflicting_credentials or rate_limited. Scopes are not judged here:
    a record that does not exist is not_found even for a key that could not touch it.
    """
    caller: Actor | None = None
    for scheme in ORDER:
        text = presented(request, scheme)
        if text is None:
            continue
        found = await request.app[CREDENTIALS].recognise(text, scheme)
        if found is None:
            raise _refused(f"The {_NAMES[scheme]} is not valid, was revoked or has expired.")
        if caller is not None and caller.owner_id != found.owner_id:
            raise Refusal(
                "conflicting_credentials",
                "The X-API-Key and the bearer credential belong to different users; send one.",
            )
        caller = found if caller is None else _both(caller, found)
    if caller is None:
        raise _refused(
            "Send an API key in the header X-API-Key, or a key or token as Authorization: Bearer."
        )
    request[CALLER] = caller
    charge(request, caller)
    must_have_room(request, caller.owner_id)
    return caller


def charge(request: web.Request, caller: Actor, tokens: int = 1) -> None:
    """Take tokens from the one bucket of all keys and tokens of an account. Raises rate_limited.

    Its figures are those of a key, so that it holds each single key to them too.
    """
    kind: Kind = "read" if request.method in READS else "write"
    limits = request.app[LIMITS]
    left = limits.call(kind, caller.owner_id, tokens)
    if left is not None:
        request[RATE_LIMIT] = (left, limits.policies[kind])


def presented(request: web.Request, scheme: Scheme) -> str | None:
    """The credential of this scheme that the request carries; other schemes are ignored.

    A header that is given twice is the one list of RFC 9110, 5.3, and so no credential: a proxy
    may have judged another line of it than we would.
    """
    if scheme == "api_key":
        lines = request.headers.getall("X-API-Key", ())
        return ", ".join(lines) if lines else None
    word, _, rest = ", ".join(request.headers.getall("Authorization", ())).partition(" ")
    return rest.strip() if word.lower() == "bearer" else None


def _both(one: Actor, other: Actor) -> Actor:
    """Two credentials of one user: neither takes away what the other may do."""
    for caller in (one, other):
        if caller.key_id is None:
            # A token may all that its user may, keys included.
            return caller
    return replace(one, scopes=one.scopes | other.scopes)


_NAMES = {"api_key": "API key", "bearer": "bearer credential"}


def _refused(text: str) -> Refusal:
    return Refusal("unauthenticated", text)
