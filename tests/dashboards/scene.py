"""An installation with everything that the dashboards show: nodes, traffic, good and bad receivers.

Writers, shoppers and guessers use the real doors; the receivers accept, wait, refuse, redirect,
answer at length, disappear, or are not allowed.
"""

from __future__ import annotations

import asyncio
import json
import math
import random
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
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
SHOP = {"hostname": "shop.example", "name": "Coffee Shop"}
PER_SECOND = 6.0
"""Requests to each node, on average; they come in waves."""
WAVE_SECONDS = 240.0
MODES = ("ok", "slow", "flaky", "redirect", "long", "down", "gone")
SHOPPER = {"hostname": "shop.example", "email": "maria#@example.com"}
SIGN_UP = SHOPPER | {"name": "Maria", "password": "a long enough password"}
PRODUCTS = '{ products(hostname: "shop.example") { edges { node { id } } } }'
LEAD = "mutation ($i: LeadMutationInput!) { lead(input: $i) { clientMutationId } }"
SIGN = "mutation ($i: ClientSignupMutationInput!) { clientSignup(input: $i) { clientMutationId } }"
REQUESTS: tuple[tuple[int, str, str, str, dict[str, Any] | None], ...] = (
    (25, "key", "POST", "/api/contacts", {"name": "Maria #", "email": "maria#@example.com"}),
    (8, "key", "PATCH", "/api/contacts/*", {"name": "Ana #"}),
    (4, "key", "POST", "/api/companies", {"name": "Padaria #"}),
    (4, "key", "POST", "/api/deals", {"title": "Supply #", "value": 10}),
    (20, "key", "GET", "/api/contacts?limit=20", None),
    (8, "key", "GET", "/api/contacts/*", None),
    (3, "key", "GET", "/api/contacts/" + "0" * 24, None),
    (3, "key", "POST", "/api/contacts", {"email": "none"}),
    (2, "wrong", "GET", "/api/contacts", None),
    (1, "", "POST", "/api/auth/token", {"email": "ana@example.com", "password": "guess #"}),
    (12, "", "POST", "/graphql", {"query": PRODUCTS}),
    (4, "", "POST", "/graphql", {"query": LEAD, "variables": {"i": SHOPPER}}),
    (1, "", "POST", "/graphql", {"query": SIGN, "variables": {"i": SIGN_UP}}),
    (2, "", "POST", "/graphql", {"query": "{ nothing"}),
    (3, "", "GET", "/console/sign-in", None),
)
"""How often, the key, method, path and body; `#` is another number each time, `*` a contact."""


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
async def running(engine: Engine, folder: Path) -> AsyncIterator[Traffic]:
    """Run an installation, one node on SQLite, two on PostgreSQL; yield its clients."""
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
        async with (
            aiohttp.ClientSession(f"http://{nodes[0]}", headers={"X-API-Key": key}) as http,
            http.post("/api/stores", json=SHOP) as made,
        ):
            assert made.status == 201, await made.text()
        yield Traffic(nodes, key)


class Traffic:
    """Clients of an installation, each request chosen by chance."""

    def __init__(self, nodes: list[str], key: str) -> None:
        self.nodes = nodes
        self._key = key
        self._contacts = ["0" * 24]
        self.lost = 0

    async def flow(self, seconds: float, seed: int) -> None:
        """Send requests in waves for a time."""
        dice, clock = random.Random(seed), SystemClock()
        began = clock.monotonic()
        timeout = aiohttp.ClientTimeout(total=20)
        async with aiohttp.ClientSession(timeout=timeout) as http, asyncio.TaskGroup() as group:
            while (gone := clock.monotonic() - began) < seconds:
                group.create_task(self._one(http, dice))
                wave = 1 + 0.7 * math.sin(2 * math.pi * gone / WAVE_SECONDS)
                await asyncio.sleep(1 / (PER_SECOND * len(self.nodes) * wave))

    async def _one(self, http: aiohttp.ClientSession, dice: random.Random) -> None:
        [request] = dice.choices(REQUESTS, [weight for weight, *_ in REQUESTS])
        _, who, method, path, body = request
        url = f"http://{dice.choice(self.nodes)}{path.replace('*', dice.choice(self._contacts))}"
        data = body and json.dumps(body).replace("#", str(dice.randrange(10**9)))
        headers = {"Content-Type": "application/json"}
        if who:
            headers["X-API-Key"] = self._key if who == "key" else who
        try:
            async with http.request(method, url, data=data, headers=headers) as answer:
                if answer.status == 201 and path == "/api/contacts":
                    self._contacts = [*self._contacts[-50:], (await answer.json())["id"]]
        except (aiohttp.ClientError, TimeoutError):
            self.lost += 1
