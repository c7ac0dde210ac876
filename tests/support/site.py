"""The gateway on a free port of loopback, with users and keys made by its own units."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

import aiohttp
import argon2
from aiohttp import web

from gateway.app import build_app
from gateway.domain.accounts import api_keys, users
from gateway.graphql.parsed_documents import Documents
from gateway.graphql.schema import schema
from gateway.graphql.view import DOCUMENTS
from gateway.server.config import Config
from gateway.server.http.client_connections import Runner
from gateway.server.program import Role
from gateway.server.telemetry.metrics import METRICS
from outbox.clock import SystemClock
from outbox.database.transaction import Database
from outbox.webhooks.secrets import new_key_line, parse_keys
from tests.support.counted import in_background

PASSWORD = "correct horse battery"
HASHED = argon2.PasswordHasher(time_cost=1, memory_cost=8, parallelism=1).hash(PASSWORD)
"""A hash names its own cost parameters. test_passwords checks the product's cost."""
_DOCUMENTS = Documents(schema())
"""Valid documents of all tests: to validate one takes as long as ten requests."""


class Still(SystemClock):
    """A clock whose seconds stand still: no limit by the second or minute feels a busy machine."""

    def __init__(self) -> None:
        self._now = super().monotonic()

    def monotonic(self) -> float:
        return self._now


@dataclass(frozen=True)
class Site:
    """A running gateway and an HTTP client for it."""

    url: str
    app: web.Application
    runner: Runner
    db: Database
    http: aiohttp.ClientSession

    @property
    def port(self) -> int:
        return int(self.runner.addresses[0][1])

    async def user(self, email: str = "maria@example.com") -> str:
        """Create a user with PASSWORD; return the id."""
        return await self.db.write(users.add, email=email, name="Maria", password_hash=HASHED)

    async def key(
        self,
        owner_id: str,
        scopes: Sequence[str] = ("read", "write"),
        expires_at: int | None = None,
    ) -> str:
        """Create an API key of a user."""
        text = api_keys.make(self.db.ids)
        await self.db.write(
            api_keys.add, owner_id, api_keys.KeyDraft("test", text, scopes, expires_at)
        )
        return text

    async def token(self, email: str = "maria@example.com") -> str:
        """Return a token from a real sign-in."""
        body = {"email": email, "password": PASSWORD}
        async with self.http.post("/api/auth/token", json=body) as answer:
            return str((await answer.json())["token"])


@asynccontextmanager
async def serving(
    db: Database,
    config: Config | None = None,
    role: Role = "api",
    build: Callable[..., web.Application] = build_app,
) -> AsyncIterator[Site]:
    """Serve `db` until the block ends."""
    config = config or Config()
    ring = parse_keys(new_key_line(db.ids, db.clock.wall()), db.ids, "the test's keys")
    app = build(config, db, ring, role=role)
    if DOCUMENTS in app:
        _DOCUMENTS.introspecting = asyncio.Lock()
        app[DOCUMENTS] = _DOCUMENTS
    metrics = app[METRICS]
    runner = Runner(app, config.limits, lambda why: metrics.rejected("api", why), 2.0)
    # Requests begin in the context of the place that listens for them, duties in this one.
    began = in_background.set(True)
    await runner.setup()
    in_background.reset(began)
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        metrics.watch_connections(runner.census)
        url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        async with aiohttp.ClientSession(url) as http:
            yield Site(url, app, runner, db, http)
    finally:
        await runner.cleanup()
