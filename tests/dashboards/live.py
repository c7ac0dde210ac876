"""Ask a real Prometheus every query of the dashboards and rules, after it scraped a loaded gateway.

Panels are asked as Grafana asks: variables filled in, tables and single figures at the end of the
time range, all others over it.
"""

from __future__ import annotations

import asyncio
import math
import re
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import promql_parser
from aiohttp import web
from aiohttp.test_utils import TestServer
from prometheus_client import generate_latest

from gateway.server.telemetry.metrics import Metrics
from outbox.clock import SystemClock
from tests.dashboards import documents
from tests.dashboards.documents import filled, nodes, parsed
from tests.dashboards.lint import OURS
from tests.dashboards.scene import running
from tests.support.engines import Engine
from tests.support.prometheus import (
    JOB,
    STRANGER,
    Prometheus,
    QueryFailed,
    configuration,
    prometheus,
)

SCRAPE_SECONDS = 1
OFFSET = re.compile(r" offset \d+m")
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
