"""Adds the route of the MCP door, whose modules are loaded by its first request."""

from aiohttp import web

from gateway.records.errors import Refusal

PATH = "/mcp"


async def post(request: web.Request) -> web.StreamResponse:
    """POST /mcp: answer one message."""
    from gateway.mcp.endpoint import answer

    return await answer(request)


async def refuse_method(request: web.Request) -> web.StreamResponse:
    """Refuse GET and DELETE: there are neither streams nor sessions."""
    raise web.HTTPMethodNotAllowed(request.method, ["POST"])


def refuse(refusal: Refusal, request: web.Request, status: int | None = None) -> web.Response:
    """Return the response of a refusal as an error of JSON-RPC."""
    from gateway.mcp import endpoint

    return endpoint.refuse(refusal, request, status)


def add_mcp(router: web.UrlDispatcher) -> None:
    """Add the route of the door."""
    router.add_post(PATH, post)
    router.add_route("*", PATH, refuse_method)
