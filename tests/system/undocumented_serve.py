"""The product with undocumented responses, to show that the checks find them.

Run in place of `python -m gateway`. `GET /api/me` responds 418, pipeline-stats counts in text, and
`GET /api/tasks/overdue` fails.
"""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable

from aiohttp import web

from gateway import app as wiring
from gateway.__main__ import main
from gateway.rest.auth import authenticate
from gateway.rest.routes import add_routes

Handler = Callable[[web.Request], Awaitable[web.Response]]


async def teapot(request: web.Request) -> web.Response:
    await authenticate(request)
    return web.json_response({"error": "short and stout"}, status=418)


async def in_words(request: web.Request) -> web.Response:
    await authenticate(request)
    return web.json_response(
        {
            "totalDeals": "none", "totalValue": 0, "byStage": {}, "wonDeals": 0, "lostDeals": 0,
            "conversionRate": 0,
        },
        headers={"X-Request-Id": "x"},
    )  # fmt: skip


async def broken(request: web.Request) -> web.Response:
    await authenticate(request)
    raise ValueError("on purpose")


WRONG: dict[str, Handler] = {
    "/api/me": teapot,
    "/api/deals/pipeline-stats": in_words,
    "/api/tasks/overdue": broken,
}


def add_wrong_routes(router: web.UrlDispatcher) -> None:
    """These routes come before the real ones."""
    for path, handler in WRONG.items():
        router.add_route("GET", path, handler)
    add_routes(router)


if __name__ == "__main__":
    wiring.add_routes = add_wrong_routes  # type: ignore[attr-defined] # the broken rule
    sys.exit(main())
