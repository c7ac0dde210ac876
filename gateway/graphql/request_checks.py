"""Examines a request before anything of it is read: its page, its version and its rate.

Its page: a request with cookies must come from a page that a store allows, or from no page at all;
the header Origin names the page, and Sec-Fetch-Site says when there is one. Programs send neither.
Its version: the header X-API-Version, a date that selects the behaviour of the API; a request with
one gets every change up to that date, without one it gets all.
"""

import hashlib
import re
from datetime import date

from aiohttp import web
from multidict import MultiMapping

from gateway.domain.accounts.networks import share_of
from gateway.domain.storefront.stores import store_origins
from gateway.domain.storefront.stores.store_directory import Directory, is_hostname_of
from gateway.records.errors import Fault, Refusal
from gateway.records.record import Record
from gateway.server.app_keys import DIRECTORY
from gateway.server.http import cors
from gateway.server.http.answers import visitor_must_have_room
from gateway.server.http.client_address import CLIENT, Client
from gateway.server.http.rate_limits import LIMITS, RATE_LIMIT
from gateway.server.installation import SITE
from gateway.server.web_origins import spelled

HEADERS: web.RequestKey[dict[str, str]] = web.RequestKey("GRAPHQL_HEADERS")
"""The headers that every response to this request has, set while it is examined."""


async def admit(request: web.Request) -> None:
    """Set the headers of every response to the request.

    Raises origin_not_allowed, invalid_api_version or rate_limited.
    """
    # A browser hides a response without CORS headers, an error too.
    headers = request[HEADERS] = dict(VARY)
    try:
        count(request)
        # Before the work: the response to a write is not refused.
        visitor_must_have_room(request)
    except Refusal:
        headers.update(await known(request))
        raise
    headers.update(await must_be_allowed(request))
    headers[VERSION_HEADER] = effective_version(request.headers)


def count(request: web.Request, requests: int = 1) -> None:
    """Count requests of this session or address. Raises rate_limited."""
    limit = request.app[LIMITS].visit(*_visitor_of(request), requests)
    if limit is not None:
        request[RATE_LIMIT] = limit


def owe(request: web.Request, requests: int) -> None:
    """Count what a response turns out to be; the requests that follow pay for it."""
    request.app[LIMITS].visit_more(*_visitor_of(request), requests)


def _visitor_of(request: web.Request) -> tuple[str | None, str]:
    """Return the session, None without one, and the address."""
    cookies = cookies_of(request)
    token = cookies.bearer or cookies.auth or next(iter(cookies.carts), None)
    # A digest, because a client chooses the length of its token.
    session = token and hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()[:32]
    return session, share_of(request[CLIENT].address)


# A change of behaviour that the schema cannot express gets a date in RELEASES.
VERSION_HEADER = "X-API-Version"
RELEASES = ("2026-01-01", "2026-11-01")
"""The dates of behaviour, in order; the first is the baseline.

2026-11-01: a cart limits a quantity above the stock and warns; before, it refuses the quantity.
"""
_SHAPE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)


def effective_version(headers: MultiMapping[str]) -> str:
    """Return the release that a request selects: the newest one up to its version.

    The newest of all without the header, the oldest for an earlier date. Raises
    invalid_api_version.
    """
    if VERSION_HEADER not in headers:
        return RELEASES[-1]
    # A repeated header is one list (RFC 9110, 5.3), which is not a date.
    version = ", ".join(headers.getall(VERSION_HEADER)).strip()
    if not _SHAPE.fullmatch(version) or not _exists(version):
        message = "Send a date such as 2026-11-01, or omit the header for the newest behaviour."
        raise Refusal(
            "invalid_api_version",
            f"{VERSION_HEADER}: {message}",
            faults=[Fault(VERSION_HEADER, "invalid_date", message)],
        )
    return max((release for release in RELEASES if release <= version), default=RELEASES[0])


def _exists(day: str) -> bool:
    try:
        date.fromisoformat(day)
    except ValueError:
        return False
    return True


AUTH = "authJwtClient"
CART = "cartSession"
CART_HEADER = "X-Cart-Session"
COOKIE_SECONDS = 30 * 86_400


class Cookies:
    """The tokens that the request presents, and the changes for its response."""

    def __init__(self, request: web.Request) -> None:
        cookies = request.cookies
        word, _, rest = request.headers.get("Authorization", "").partition(" ")
        bearer = rest.strip() or None if word.lower() == "bearer" else None
        self.bearer: str | None = bearer
        """The customer's token of Authorization: Bearer, which precedes the cookie."""
        self.auth: str | None = cookies.get(AUTH)
        """The customer's token of the cookie."""
        carts = (cookies.get(CART), request.headers.get(CART_HEADER))
        self.carts: tuple[str, ...] = tuple(filter(None, carts))
        """The tokens of carts, of any store: the cookie, then the header X-Cart-Session."""
        self._secure = request[CLIENT].scheme == "https"
        self._set: dict[str, tuple[str, bool]] = {}

    def set_auth(self, token: str | None, same_site: str) -> None:
        """Set the customer's token for the browser; None deletes it. `same_site`: lax or none."""
        self.auth, self.bearer = token, None
        self._set[AUTH] = (token or "", same_site == "none")

    def set_cart(self, token: str | None, same_site: str) -> None:
        """Set the cart's token for the browser; None deletes it."""
        self.carts = () if token is None else (token,)
        self._set[CART] = (token or "", same_site == "none")

    def write(self, response: web.StreamResponse) -> None:
        """Add the Set-Cookie headers of the changes, and the cart's token as a header."""
        for name, (value, cross_site) in self._set.items():
            response.set_cookie(
                name, value, path="/", httponly=True, secure=self._secure,
                max_age=COOKIE_SECONDS if value else 0,
                # SameSite=None needs Secure, so plain http gets Lax.
                samesite="None" if cross_site and self._secure else "Lax",
            )  # fmt: skip
        if CART in self._set:
            response.headers[CART_HEADER] = self._set[CART][0]


COOKIES = web.RequestKey("COOKIES", Cookies)


def cookies_of(request: web.Request) -> Cookies:
    """Return the cookies of a request, which are read once."""
    cookies = request.get(COOKIES)
    if cookies is None:
        cookies = request[COOKIES] = Cookies(request)
    return cookies


VARY = {"Vary": "Origin"}
METHODS = "GET, POST"
FROM_ELSEWHERE = frozenset({"cross-site", "same-site"})


async def must_be_allowed(request: web.Request) -> dict[str, str]:
    """Return the CORS headers of the response. Raises origin_not_allowed.

    It judges by the origins of all stores, because the store is known only to the fields.
    """
    origin = request.headers.get("Origin")
    if origin is None:
        if request.headers.get("Sec-Fetch-Site", "").lower() in FROM_ELSEWHERE:
            raise Refusal(
                "origin_not_allowed", "A page on another site must send the header Origin."
            )
        return VARY
    directory = request.app[DIRECTORY]
    name = spelled(origin)
    if not (
        own(request, name)
        or await directory.allows(name)
        or await _is_hostname(directory, name, request[CLIENT])
    ):
        raise Refusal(
            "origin_not_allowed",
            f"No store allows the origin {origin[:200]!r}; add it to the allowedOrigins of its "
            "store: PUT /api/stores/{id}.",
        )
    return _headers(origin)


async def known(request: web.Request) -> dict[str, str]:
    """Return the CORS headers for an origin that a store lists, or none.

    A client beyond its rate must not cost a query for each origin that it invents: hostnames are
    not looked up for it, and no more than a few origins.
    """
    origin = request.headers.get("Origin")
    if origin is None:
        return VARY
    name = spelled(origin)
    allowed = own(request, name) or await request.app[DIRECTORY].allows_at_last(name)
    return _headers(origin) if allowed else VARY


def _headers(origin: str) -> dict[str, str]:
    return {
        **VARY,
        # The browser compares this with its own spelling of the origin.
        "Access-Control-Allow-Origin": origin,
        "Access-Control-Allow-Credentials": "true",
        "Access-Control-Expose-Headers": cors.EXPOSED,
    }


async def must_be_allowed_by(request: web.Request, store: Record) -> None:
    """Raise origin_not_allowed when the page of a request is not one of this store's."""
    origin = request.headers.get("Origin")
    if origin is None:
        return
    name = spelled(origin)
    if name in store_origins.of(store) or (
        _is_secure_enough(name, request[CLIENT]) and is_hostname_of(store, _host(name))
    ):
        return
    # This server's own pages, such as GraphiQL, may call it unless a store has the hostname.
    if own(request, name) and not await _is_hostname(request.app[DIRECTORY], name, request[CLIENT]):
        return
    raise Refusal(
        "origin_not_allowed",
        f"The store {store['hostname']!r} does not allow the origin {origin[:200]!r}; add it to "
        f"the allowedOrigins of the store: PUT /api/stores/{store.id}.",
    )


def own(request: web.Request, name: str) -> bool:
    """Return whether an origin is that of this server."""
    client = request[CLIENT]
    public_url = request.app[SITE].public_url
    if public_url and name == public_url:
        return True
    scheme = name.partition("://")[0]
    return _is_secure_enough(name, client) and name == spelled(f"{scheme}://{client.host}")


async def _is_hostname(directory: Directory, name: str, client: Client) -> bool:
    """Return whether an origin is the hostname of a store."""
    if not _is_secure_enough(name, client):
        return False
    try:
        await directory.find(_host(name))
    except Refusal:
        return False
    return True


def _is_secure_enough(name: str, client: Client) -> bool:
    """Return whether an origin is https, or the request is http too, as in development."""
    return name.startswith("https://") or (name.startswith("http://") and client.scheme == "http")


def _host(name: str) -> str:
    return name.partition("://")[2]
