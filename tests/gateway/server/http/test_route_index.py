"""The index finds the routes that aiohttp's router finds."""

import re

import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request

from gateway.app import build_app
from gateway.server.config import Config
from gateway.server.http.route_index import RouteIndex
from outbox.database.transaction import Database
from outbox.webhooks.secrets import new_key_line, parse_keys

ENGINE = pytest.mark.parametrize("db_url", ["sqlite"], indirect=True)
METHODS = ("GET", "HEAD", "POST", "PATCH", "DELETE", "BREW", "*")
AN_ID = "0123456789abcdef01234567"
ODD = (
    "/", "//", "/nothing", "/api", "/api%2Fcontacts", "/%61pi/contacts", "/API/contacts",
    "/api/contacts/", "/api/contacts/a-b", "/api/contacts/a%2Fb", "/api/contacts/%41",
    "/api/contacts/é", "/api/contacts/a.b", "/api/contacts/{id}", "/api/contacts/a/b",
    "/api/tasks/recent", "/api/tasks/overdue/", "/console/",
)  # fmt: skip


@pytest.fixture
async def app(db: Database) -> web.Application:
    ring = parse_keys(new_key_line(db.ids, db.clock.wall()), db.ids, "the test's keys")
    return build_app(Config(), db, ring)


@ENGINE
async def test_it_finds_what_the_router_finds(app: web.Application) -> None:
    known = [re.sub(r"{\w+}", AN_ID, each.canonical) for each in app.router.resources()]
    index, found = RouteIndex(app), 0
    for path in {*ODD, *known}:
        for method in METHODS:
            found += await agree(app, index, method, path)
    assert found > len(known)


async def agree(app: web.Application, index: RouteIndex, method: str, path: str) -> bool:
    """Compare the index, where it finds a route, with the router; return whether it does."""
    request = make_mocked_request(method, path, app=app)
    handler = index.find(request)
    if handler is not None:
        theirs = await app.router.resolve(request)
        ours = request.match_info
        assert (ours.route, dict(ours)) == (theirs.route, dict(theirs)), (method, path)
        assert request.app is app
        assert handler == theirs.handler
    return handler is not None


@pytest.mark.parametrize("path", ["/api/contacts", f"/api/contacts/{AN_ID}", "/livez"])
@ENGINE
async def test_it_finds_the_usual_ones_itself(app: web.Application, path: str) -> None:
    assert RouteIndex(app).find(make_mocked_request("GET", path, app=app)) is not None


async def test_one_path_twice_and_any_method() -> None:
    async def one(_: web.Request) -> web.Response:
        return web.Response()

    async def other(_: web.Request) -> web.Response:
        return web.Response()

    app = web.Application()
    for path, method, handler in (
        ("/a", "GET", one), ("/b", "*", one), ("/a", "PUT", other), ("/b", "PUT", other),
        ("/a/{x}", "GET", one), ("/{y}", "GET", one), ("/a/{x:[a-z]+}", "PUT", other),
    ):  # fmt: skip
        app.router.add_route(method, path, handler)
    index = RouteIndex(app)
    for path in ("/a", "/b", "/a/b", "/a/1", "/c"):
        for method in (*METHODS, "PUT"):
            await agree(app, index, method, path)
