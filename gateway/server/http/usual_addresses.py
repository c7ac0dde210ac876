"""Redirect from addresses that people try first, as many products have them, to ours."""

from aiohttp import web

USUAL = {
    "/docs": "/api/docs",
    "/openapi.json": "/api/openapi.json",
    "/console/login": "/console/sign-in",
}


async def redirect(request: web.Request) -> web.Response:
    """Redirect to our address, with the query of the request."""
    query = request.rel_url.raw_query_string
    where = USUAL[request.path] + (f"?{query}" if query else "")
    return web.Response(status=303, headers={"Location": where})


def add_usual_addresses(router: web.UrlDispatcher) -> None:
    """Add the routes; aiohttp supports HEAD wherever there is GET."""
    for path in USUAL:
        router.add_get(path, redirect)
