"""Lets accounts, and addresses whose visitors are not signed in, wait for their pages in turn."""

import asyncio
from collections.abc import Awaitable, Callable

from aiohttp import web

from gateway.console.layout import error_pages, guard
from gateway.domain.accounts.networks import share_of
from gateway.server.http.rate_limits import LIMITS, REST_SECONDS
from outbox.database.fair_limit import Crowded, FairSemaphore

Make = Callable[[], Awaitable[web.StreamResponse]]
AT_ONCE = 3
"""Pages of an account that are made at the same time: each takes milliseconds of the event loop."""
WAITING = 256
PAUSE_SECONDS = 0.02
"""Between the pages of an account that asks for more at a time."""
TURNS = web.AppKey("CONSOLE_TURNS", FairSemaphore)
STRANGERS_AT_ONCE = 2
"""The same for an address whose visitors are not signed in: no rate limits their pages."""
STRANGERS_PAUSE_SECONDS = 0.05
STRANGERS = web.AppKey("STRANGERS_TURNS", FairSemaphore)


def set_up(app: web.Application) -> None:
    """Give an application the places."""
    app[TURNS] = FairSemaphore(WAITING * AT_ONCE, each=AT_ONCE, waiting=WAITING)
    app[STRANGERS] = FairSemaphore(WAITING, each=STRANGERS_AT_ONCE, waiting=WAITING)


async def of_stranger(request: web.Request, make: Make) -> web.StreamResponse:
    """Return a response in its turn among those of the visitor's address."""
    turns, holder = request.app[STRANGERS], share_of(guard.client_of(request).address)
    try:
        await turns.take(holder)
    except Crowded as crowded:
        return await _slowed(request, crowded.seconds)
    try:
        # Those that came with it take their places in line; a page may need no other wait.
        await asyncio.sleep(0)
        response = await make()
        if turns.waits(holder):
            await asyncio.sleep(STRANGERS_PAUSE_SECONDS)
        return response
    finally:
        turns.leave(holder)


async def of_account(request: web.Request, owner_id: str, make: Make) -> web.StreamResponse:
    """Return the page in its turn among those of the account; above the rate, that there is one."""
    turns = request.app[TURNS]
    if not turns.take_free(owner_id):
        try:
            await turns.take(owner_id)
        except Crowded as crowded:
            return await _slowed(request, crowded.seconds)
    try:
        wait = request.app[LIMITS].page(owner_id)
        if wait:
            return await _slowed(request, wait)
        response = await make()
        if turns.waits(owner_id):
            await asyncio.sleep(PAUSE_SECONDS)
        return response
    finally:
        turns.leave(owner_id)


async def _slowed(request: web.Request, wait: int) -> web.StreamResponse:
    # A client that asks again at once then keeps nobody busy.
    await asyncio.sleep(REST_SECONDS)
    return error_pages.slowed(request, wait)
