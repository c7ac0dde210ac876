"""An installation with everything that the dashboards show: nodes, traffic, good and bad receivers.

Writers, shoppers and guessers use the real doors; the receivers accept, wait, refuse, redirect,
answer at length, disappear, or are not allowed.
"""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import web

from gateway.domain.accounts import api_keys, users
from outbox import database
from outbox import webhooks as endpoints
from outbox.clock import SystemClock
from outbox.database.transaction import Tx
from outbox.ids import Ids
from outbox.queue.upkeep import queue_transfer
from outbox.sending.request import new_secret
from outbox.webhooks import Draft
from outbox.webhooks.conditions import Condition
from outbox.webhooks.key_files import read_key_file
from outbox.webhooks.secrets import KeyRing
from tests.support.databases import PostgresServer
from tests.support.engines import Engine
from tests.support.process import free_port, serving_process
from tests.support.receiver import receiver
from tests.support.tenants import settle_in

NODES = {"sqlite": 1, "postgres": 2}
EVENTS = ("contact.created", "contact.updated", "company.created", "deal.created", "lead.created")
HOSTNAME = "shop.example"
PASSWORD = "a long enough password"
PER_SECOND = 6.0
"""Requests to each node, on average; they come in waves."""
WAVE_SECONDS = 240.0
MODES = ("ok", "slow", "flaky", "redirect", "long", "down", "gone")
PRODUCTS = "query ($h: String!) { products(hostname: $h) { edges { node { id } } } }"
LEAD = "mutation ($input: LeadMutationInput!) { lead(input: $input) { clientMutationId } }"
SIGN_UP = (
    "mutation ($input: ClientSignupMutationInput!) { clientSignup(input: $input)"
    " { clientMutationId } }"
)


@dataclass(frozen=True)
class Scene:
    """A running installation."""

    nodes: tuple[str, ...]
    """The address of each node, as Prometheus names it."""
    key: str


async def respond(request: web.Request) -> web.StreamResponse:
    """Answer as the last part of the path says."""
    chance = random.random()
    match request.path.rpartition("/")[2]:
        case "slow":
            await asyncio.sleep(0.1 + chance * 0.5)
        case "flaky" if chance < 0.3:
            return web.Response(status=503, text="busy")
        case "redirect":
            return web.Response(status=302, headers={"Location": "/elsewhere"})
        case "long":
            return web.Response(text="x" * 100_000)
        case "down":
            return web.Response(status=500, text="broken")
        case "gone":
            return web.Response(status=410)
    return web.Response(text="ok")


async def _furnish(tx: Tx, key: str, secret: str, urls: list[str], ring: KeyRing) -> None:
    owner = await users.add(tx, email="ana@example.com", name="Ana", password_hash="-")
    await api_keys.add(
        tx, owner_id=owner, name="load", text=key, scopes=["read", "write"], expires_at=None
    )
    drafts = [Draft(url=url, events=EVENTS) for url in urls]
    # It gets nothing: what its conditions leave out is counted.
    drafts.append(Draft(url=urls[0], events=EVENTS, conditions=(Condition("name", "nobody"),)))
    await queue_transfer.backed_up(tx, tx.now)
    for draft in drafts:
        await endpoints.create(tx, owner_id=owner, draft=draft, secret=secret, ring=ring)


@asynccontextmanager
async def running(engine: Engine, folder: Path) -> AsyncIterator[Scene]:
    """Run an installation without traffic: one node on SQLite, two on PostgreSQL."""
    async with AsyncExitStack() as stack:
        hooks = await stack.enter_async_context(receiver(answer=respond))
        url = f"sqlite:///{folder}/carteiro.db"
        if engine == "postgres":
            server = PostgresServer()
            url = await server.empty()
            stack.push_async_callback(server.drop, url)
        key_file = (await settle_in(url, folder, [], owners=0)).key_file
        clock, ids = SystemClock(), Ids()
        key = api_keys.make(ids)
        closed = f"http://127.0.0.1:{free_port()}/closed"
        # Outside of [egress] allow, so that the guard refuses them; several, because each gets only
        # probes after ten refusals, and Prometheus may not see the first ones.
        refused = [f"http://10.255.0.{number}/refused" for number in (1, 2, 3)]
        urls = [f"{hooks.url}/{mode}" for mode in MODES] + [closed, *refused]
        db = await database.open(url, clock=clock, ids=ids)
        ring = read_key_file(key_file, ids)
        await db.write(_furnish, key, new_secret(ids.token(32)), urls, ring)
        await db.close()
        settings = {
            "CARTEIRO_DATABASE__URL": url, "CARTEIRO_SECRETS__KEY_FILE": str(key_file),
            "CARTEIRO_LIMITS__READ_PER_SECOND": "0", "CARTEIRO_LIMITS__WRITE_PER_SECOND": "0",
            "CARTEIRO_EGRESS__ALLOW_HTTP": "true", "CARTEIRO_EGRESS__ALLOW": "127.0.0.1/32",
            "CARTEIRO_LIMITS__STOREFRONT_PER_MINUTE": "0",
            "CARTEIRO_LIMITS__FORMS_PER_MINUTE": "0", "CARTEIRO_LIMITS__SIGN_IN_PER_MINUTE": "0",
            "CARTEIRO_RETRY__SCHEDULE": "2,5", "CARTEIRO_DELIVERY__SLOTS": "64",
            "CARTEIRO_LOGGING__LEVEL": "warning", "CARTEIRO_DATABASE__DISK_BYTES": "1000000000000",
        }  # fmt: skip
        nodes = []
        for number in range(NODES[engine]):
            home = folder / f"node{number}"
            home.mkdir()
            node = stack.enter_context(serving_process(home, **settings))
            stack.callback(node.end)
            nodes.append(f"127.0.0.1:{node.port}")
        scene = Scene(tuple(nodes), key)
        async with aiohttp.ClientSession() as http:
            await _open_shop(http, scene)
        yield scene


async def _open_shop(http: aiohttp.ClientSession, scene: Scene) -> None:
    body = {"hostname": HOSTNAME, "name": "Coffee Shop"}
    headers = {"X-API-Key": scene.key}
    async with http.post(f"http://{scene.nodes[0]}/api/stores", json=body, headers=headers) as made:
        assert made.status == 201, await made.text()


class Traffic:
    """Clients of a scene, each request chosen by chance."""

    def __init__(self, scene: Scene, seed: int) -> None:
        self._scene = scene
        self._dice = random.Random(seed)
        self._contacts: list[str] = []
        self.sent = 0
        self.lost = 0

    async def flow(self, seconds: float) -> None:
        """Send requests in waves for a time."""
        clock = SystemClock()
        began = clock.monotonic()
        timeout = aiohttp.ClientTimeout(total=20)
        async with aiohttp.ClientSession(timeout=timeout) as http, asyncio.TaskGroup() as group:
            while (gone := clock.monotonic() - began) < seconds:
                group.create_task(self._one(http))
                wave = 1 + 0.7 * math.sin(2 * math.pi * gone / WAVE_SECONDS)
                await asyncio.sleep(1 / (PER_SECOND * len(self._scene.nodes) * wave))

    async def _one(self, http: aiohttp.ClientSession) -> None:
        method, path, body, headers = self._chosen()
        url = f"http://{self._dice.choice(self._scene.nodes)}{path}"
        try:
            async with http.request(method, url, json=body, headers=headers) as answer:
                self.sent += 1
                if answer.status == 201 and path == "/api/contacts":
                    self._contacts = [*self._contacts[-50:], (await answer.json())["id"]]
        except (aiohttp.ClientError, TimeoutError):
            self.lost += 1

    def _chosen(self) -> tuple[str, str, Any, dict[str, str]]:
        """Return method, path, body and headers of a request."""
        number = self._dice.randrange(10**9)
        key = {"X-API-Key": self._scene.key}
        contact = self._dice.choice(self._contacts or ["0" * 24])
        body: Any = {"name": f"Maria {number}", "email": f"maria{number}@example.com"}
        lead = {"hostname": HOSTNAME, "email": f"lead{number}@example.com"}
        shopper = lead | {"name": "Maria", "password": PASSWORD}
        bad = {"email": "ana@example.com", "password": f"guess {number}"}
        kinds: list[tuple[int, tuple[str, str, Any, dict[str, str]]]] = [
            (25, ("POST", "/api/contacts", body, key)),
            (8, ("PATCH", f"/api/contacts/{contact}", {"name": f"Ana {number}"}, key)),
            (4, ("POST", "/api/companies", {"name": f"Padaria {number}"}, key)),
            (4, ("POST", "/api/deals", {"title": f"Supply {number}", "value": 10}, key)),
            (20, ("GET", "/api/contacts?limit=20", None, key)),
            (8, ("GET", f"/api/contacts/{contact}", None, key)),
            (3, ("GET", "/api/contacts/" + "0" * 24, None, key)),
            (3, ("POST", "/api/contacts", {"email": "none"}, key)),
            (2, ("GET", "/api/contacts", None, {"X-API-Key": "wrong"})),
            (1, ("POST", "/api/auth/token", bad, {})),
            (12, ("POST", "/graphql", {"query": PRODUCTS, "variables": {"h": HOSTNAME}}, {})),
            (4, ("POST", "/graphql", {"query": LEAD, "variables": {"input": lead}}, {})),
            (1, ("POST", "/graphql", {"query": SIGN_UP, "variables": {"input": shopper}}, {})),
            (2, ("POST", "/graphql", {"query": "{ nothing"}, {})),
            (3, ("GET", "/console/sign-in", None, {})),
        ]
        weights = [weight for weight, _ in kinds]
        return self._dice.choices([kind for _, kind in kinds], weights)[0]
