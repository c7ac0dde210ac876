"""Finds the route of a request by its path in two dictionaries.

aiohttp matches a regular expression per candidate and wraps the handler for each middleware. The
index has the routes without parameters, and those whose last segment is their only parameter; all
other requests go to aiohttp's own router.
"""

import re

from aiohttp import web
from aiohttp.typedefs import Handler
from aiohttp.web_urldispatcher import AbstractRoute, UrlMappingMatchInfo

Methods = dict[str, AbstractRoute]


class RouteIndex:
    """The routes of an application; they must be complete at the first request."""

    def __init__(self, app: web.Application) -> None:
        self._app = app
        self._fixed: dict[str, Methods] | None = None
        self._parents: dict[str, tuple[str, Methods]] = {}

    def find(self, request: web.Request) -> Handler | None:
        """Return the handler of the first route that matches, with its parameters in the request.

        Return None when only aiohttp's router can tell.
        """
        fixed = self._fixed
        if fixed is None:
            fixed = self._fixed = self._build()
        path = request.rel_url.path_safe
        found: dict[str, str] = {}
        methods = fixed.get(path)
        if methods is None:
            parent, _, last = path.rpartition("/")
            # Other characters may be percent-encoded.
            if not (last.isalnum() and last.isascii()) or parent not in self._parents:
                return None
            name, methods = self._parents[parent]
            found[name] = last
        route = methods.get(request.method)
        if route is None:
            return None
        return self._matched(request, UrlMappingMatchInfo(found, route))

    async def resolve(self, request: web.Request) -> Handler:
        """Return the handler as aiohttp's router finds it; it may raise 404 or 405."""
        found = await self._app.router.resolve(request)
        return self._matched(request, found)

    async def expected(self, request: web.Request) -> None:
        """Answer the Expect header of a request whose route is found: 100, or raise 417."""
        await request.match_info.expect_handler(request)
        await request.writer.drain()

    def _matched(self, request: web.Request, found: UrlMappingMatchInfo) -> Handler:
        found.add_app(self._app)
        request._match_info = found
        return found.handler

    def _build(self) -> dict[str, Methods]:
        fixed: dict[str, Methods] = {}
        for resource in self._app.router.resources():
            canonical = resource.canonical
            parent, _, last = canonical.rpartition("/")
            methods = {route.method: route for route in resource}
            if "path" in resource.get_info():
                # aiohttp asks the resources of one path in turn, and "*" answers for all methods.
                known = fixed.setdefault(canonical, {})
            elif "{" not in parent and _is_plain(resource, parent, last):
                _, known = self._parents.setdefault(parent, (last[1:-1], {}))
            else:
                continue
            if "*" not in known:
                known.update({method: methods[method] for method in methods.keys() - known.keys()})
        return fixed


def _is_plain(resource: web.AbstractResource, parent: str, last: str) -> bool:
    """Return whether the last segment is a parameter of any characters."""
    name = last[1:-1]
    expected = f"{re.escape(parent)}/(?P<{name}>[^{{}}/]+)"
    pattern = resource.get_info().get("pattern")
    return name.isidentifier() and pattern is not None and pattern.pattern == expected
