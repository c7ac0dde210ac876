"""An app that asks owners for a webhook by a connect link: it keeps a session of each visitor."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

import aiohttp
from aiohttp import web
from msgspec import structs

from gateway.domain.webhooks.connecting import challenge_of
from gateway.server.config import App, Config, Connect
from tests.support.console import CONFIG

COOKIE = "zappy"
EVENT = "contact.created"


def config_of(*apps: App) -> Config:
    """Return the configuration of the tests of the console, with these apps."""
    return structs.replace(CONFIG, connect=Connect(apps))


@dataclass
class Zappy:
    """The app at `origin`. `receiver` is the origin of its webhooks; `flows` are begun links."""

    origin: str
    receiver: str
    id: str = "zappy"
    carteiro: str = ""
    flows: dict[str, tuple[str, str]] = field(default_factory=dict)
    """The cookie of a visitor → its state and verifier."""
    granted: list[Mapping[str, Any]] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)

    @property
    def redirect_uri(self) -> str:
        return f"{self.origin}/connected?from=carteiro"

    @property
    def app(self) -> App:
        return App(self.id, self.id.title(), (self.redirect_uri,), (self.receiver,))

    def begin(
        self, changed: Mapping[str, str | None] | None = None, visitor: str = "visitor"
    ) -> dict[str, str]:
        """Begin a flow of a visitor; return the fields of its link, some of them `changed`."""
        state, verifier = secrets.token_urlsafe(16), secrets.token_urlsafe(32)
        self.flows[visitor] = state, verifier
        fields: dict[str, str | None] = {
            "response_type": "code", "client_id": self.id, "redirect_uri": self.redirect_uri,
            "state": state, "url": f"{self.receiver}/hooks/7", "events": EVENT,
            "code_challenge": challenge_of(verifier), "code_challenge_method": "S256",
            **(changed or {}),
        }  # fmt: skip
        return {name: value for name, value in fields.items() if value is not None}

    def link(self, visitor: str = "visitor") -> str:
        return f"/console/connect?{urlencode(self.begin(visitor=visitor))}"

    def proof(self, code: str, visitor: str = "visitor") -> dict[str, str]:
        """Return the fields that change a code for a secret."""
        return {
            "grant_type": "authorization_code", "code": code, "client_id": self.id,
            "redirect_uri": self.redirect_uri, "code_verifier": self.flows[visitor][1],
        }  # fmt: skip

    async def start(self, request: web.Request) -> web.StreamResponse:
        """Show a link to Carteiro to a visitor with a new session."""
        visitor = secrets.token_hex(8)
        link = self.link(visitor).replace("&", "&amp;")
        page = f'<!doctype html><title>Zappy</title><a href="{self.carteiro}{link}">Connect</a>'
        response = web.Response(text=page, content_type="text/html")
        response.set_cookie(COOKIE, visitor, httponly=True, samesite="Lax")
        return response

    async def connected(self, request: web.Request) -> web.StreamResponse:
        """Take the code when the state is that of this visitor's session."""
        state, _ = self.flows.get(request.cookies.get(COOKIE, ""), ("", ""))
        if request.query.get("state") != state or request.query.get("iss") != self.carteiro:
            self.refused.append(request.query.get("state", ""))
            return web.Response(status=400, text="Not your session.")
        if "error" in request.query:
            return web.Response(text=f"Not connected: {request.query['error']}.")
        proof = self.proof(request.query["code"], request.cookies[COOKIE])
        async with (
            aiohttp.ClientSession(self.carteiro) as http,
            http.post("/console/connect/token", data=proof) as answer,
        ):
            assert answer.status == 200, await answer.text()
            self.granted.append(await answer.json())
        return web.Response(text="Connected.")


async def _no_icon(request: web.Request) -> web.StreamResponse:
    return web.Response(status=204)


@asynccontextmanager
async def zappy(receiver: str) -> AsyncIterator[Zappy]:
    """Run the app on loopback."""
    app = web.Application()
    runner = web.AppRunner(app)
    it = Zappy("", receiver)
    app.add_routes(
        [web.get("/", it.start), web.get("/connected", it.connected),
         web.get("/favicon.ico", _no_icon)]
    )  # fmt: skip
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        it.origin = f"http://127.0.0.1:{runner.addresses[0][1]}"
        yield it
    finally:
        await runner.cleanup()
