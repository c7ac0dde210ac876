"""Ask a real Prometheus every query of the dashboards and rules, after it scraped a loaded gateway.

Panels are asked as Grafana asks: variables filled in, tables and single figures at the end of the
time range, all others over it.
"""

from __future__ import annotations

import asyncio
import math
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import promql_parser

from outbox.clock import SystemClock
from tests.dashboards import documents
from tests.dashboards.documents import Expression, filled, nodes, parsed
from tests.dashboards.scene import Scene, Traffic, running
from tests.support.engines import Engine
from tests.support.prometheus import Prometheus, QueryFailed, configuration, prometheus

SCRAPE_SECONDS = 1
PATIENCE = 60.0
POINTS = 200
"""Points of a panel, as many as Grafana asks for a panel of this width."""
EMPTY: dict[Engine, dict[str, str]] = {
    "sqlite": {"db_pool_connections": "SQLite has no connections to a server"},
    "postgres": dict.fromkeys(
        ("db_file_bytes", "db_wal_bytes", "db_free_bytes"),
        "the files of PostgreSQL are the server's",
    ),
}
"""Series that an engine does not have, with the reason; queries of them may be empty there."""


@dataclass(frozen=True)
class Watched:
    """A loaded installation and the Prometheus that scraped it from `start` to `end`."""

    server: Prometheus
    scene: Scene
    engine: Engine
    start: float
    end: float
    sent: int
    lost: int

    @property
    def step(self) -> float:
        return max(SCRAPE_SECONDS, (self.end - self.start) // POINTS)

    def filled(self, text: str, **chosen: str) -> str:
        """Replace Grafana's variables as Grafana does; `chosen` are values, else All."""
        window = max(self.step + SCRAPE_SECONDS, 4 * SCRAPE_SECONDS)
        values = {
            "job": ".+", "instance": ".+", "host": ".*", "webhook": ".*",
            "__rate_interval": f"{window:.0f}s",
            "__range": f"{self.end - self.start:.0f}s",
            "__interval": f"{self.step:.0f}s",
        } | chosen  # fmt: skip
        return filled(text, values)

    async def asked(self, text: str, *, instant: bool = False) -> list[dict[str, Any]]:
        """Return what Prometheus answers to a query of a panel."""
        if instant:
            return await self.server.instant(text, self.end)
        return await self.server.over(text, self.start, self.end, self.step)


@asynccontextmanager
async def watched(engine: Engine, seconds: float, seed: int) -> AsyncIterator[Watched]:
    """Load an installation for a time while Prometheus scrapes it each second."""
    with tempfile.TemporaryDirectory(prefix="carteiro-live-") as home:
        folder = Path(home)
        async with running(engine, folder) as scene:
            config = configuration(folder, scene.nodes, SCRAPE_SECONDS)
            async with prometheus(config) as server:
                clock = SystemClock()
                start = clock.wall() / 1e6
                traffic = Traffic(scene, seed)
                await traffic.flow(seconds)
                await until_scraped(server, len(scene.nodes))
                end = clock.wall() / 1e6
                yield Watched(server, scene, engine, start, end, traffic.sent, traffic.lost)


async def until_scraped(server: Prometheus, nodes: int) -> None:
    """Wait until the last scrape of every node has come, and one of them leads.

    On a busy machine some scrapes are too late, and a leader may lose its lease.
    """
    in_order = f"sum(up) == {nodes} and on () count(outbox_deliveries) > 0"
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
        return [tree.prettify()]
    return []


def has_data(series: list[dict[str, Any]]) -> bool:
    """Return whether any sample is a number."""
    samples = [s for one in series for s in one.get("values", [one.get("value")])]
    return any(not math.isnan(float(sample[1])) for sample in samples)


async def faults(found: Watched) -> tuple[list[str], int]:
    """Return what fails or has no data, and the number of queries asked."""
    reasons: list[str] = []
    count = 0

    async def ask(place: str, text: str, *, instant: bool = False) -> None:
        nonlocal count
        count += 1
        try:
            series = await found.asked(text, instant=instant)
        except QueryFailed as refused:
            reasons.append(f"{place}: {refused}: {text}")
            return
        missing = documents.names(text) & EMPTY[found.engine].keys()
        if not has_data(series) and not missing:
            reasons.append(f"{place}: no data: {text}")

    for dashboard in documents.dashboards().values():
        for name, (selector, label) in documents.choices(dashboard).items():
            if not await found.server.values(found.filled(selector), label):
                reasons.append(f"{dashboard['title']}: nothing to choose as {name}")
        for panel in documents.panels(dashboard):
            for target in panel["targets"]:
                place = f"{dashboard['title']}: {panel['title']} {target['refId']}"
                await ask(place, found.filled(target["expr"]), instant=target["instant"])
        for mark in documents.marks(dashboard):
            await ask(mark.place, found.filled(mark.text))
    for condition in documents.conditions():
        for text in _asked_of(condition):
            await ask(condition.place, text)
    return reasons, count


def _asked_of(condition: Expression) -> list[str]:
    """Return a recorded expression as it is; of an alert, which is silent, its operands."""
    if condition.place.startswith("recording"):
        return [condition.text]
    return operands(parsed(condition.text))


async def run_live(engine: Engine, seconds: float, seed: int) -> dict[str, Any]:
    """Watch an installation, then ask every query; return the record."""
    async with watched(engine, seconds, seed) as found:
        reasons, count = await faults(found)
        series = await found.server.instant("sum(scrape_samples_scraped)", found.end)
        firing = await found.server.instant('count by (alertname) (ALERTS{alertstate="firing"})',
                                            found.end)  # fmt: skip
        return {
            "pass": not reasons,
            "findings": reasons,
            "nodes": len(found.scene.nodes),
            "scraped_seconds": round(found.end - found.start),
            "requests": found.sent,
            "requests_lost": found.lost,
            "queries": count,
            "series": int(float(series[0]["value"][1])) if series else 0,
            "may_be_empty": EMPTY[engine],
            "firing": sorted(sample["metric"]["alertname"] for sample in firing),
        }
