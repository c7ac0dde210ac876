"""Decides which web pages may call the storefront, and tells browsers so (CORS).

A request with cookies must come from a page that a store allows, or from no page at all: the header
Origin names the page, and Sec-Fetch-Site says when there is one. Programs send neither.
"""

from aiohttp import web

from gateway.domain.storefront.stores.directory import Directory, is_hostname_of, origins_of
from gateway.records.errors import Refusal
from gateway.records.record import Record
from gateway.server.app_keys import CONFIG, DIRECTORY
from gateway.server.http import cors
from gateway.server.http.proxies import CLIENT, Client
from gateway.server.origins import spelled

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
        or name in await directory.origins()
        or await _is_hostname(directory, name, request[CLIENT])
    ):
        raise Refusal(
            "origin_not_allowed",
            f"No store allows the origin {origin[:200]!r}; add it to the allowedOrigins of its "
            "store: PUT /api/stores/{id}.",
        )
    return _headers(origin)


async def known(request: web.Request) -> dict[str, str]:
    """Return the CORS headers for an origin that needs no look-up of its hostname, or none.

    A client beyond its rate must not cost a query for each origin that it invents.
    """
    origin = request.headers.get("Origin")
    if origin is None:
        return VARY
    name = spelled(origin)
    allowed = own(request, name) or name in await request.app[DIRECTORY].origins()
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
    if name in origins_of(store) or (
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
    public_url = request.app[CONFIG].server.public_url
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
