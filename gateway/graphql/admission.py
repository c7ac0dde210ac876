"""Examines a request before anything of it is read: its page, its version and its rate."""

import hashlib

from aiohttp import web

from gateway.domain.accounts.networks import share_of
from gateway.graphql import versions
from gateway.graphql.cookies import cookies_of
from gateway.graphql.origins import VARY, known, must_be_allowed
from gateway.graphql.responses import HEADERS
from gateway.records.errors import Refusal
from gateway.server.http.proxies import CLIENT
from gateway.server.http.rate_limits import LIMITS, RATE_LIMIT


async def admit(request: web.Request) -> None:
    """Set the headers of every response to the request.

    Raises origin_not_allowed, invalid_api_version or rate_limited.
    """
    # A browser hides a response without CORS headers, an error too.
    headers = request[HEADERS] = dict(VARY)
    try:
        count(request)
    except Refusal:
        headers.update(await known(request))
        raise
    headers.update(await must_be_allowed(request))
    headers[versions.HEADER] = versions.effective(request.headers)


def count(request: web.Request, requests: int = 1) -> None:
    """Count requests of this session or address. Raises rate_limited."""
    cookies = cookies_of(request)
    token = cookies.bearer or cookies.auth or next(iter(cookies.carts), None)
    # A digest, because a client chooses the length of its token.
    session = token and hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()[:32]
    limit = request.app[LIMITS].visit(session, share_of(request[CLIENT].address), requests)
    if limit is not None:
        request[RATE_LIMIT] = limit
