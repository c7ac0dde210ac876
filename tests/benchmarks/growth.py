"""How rate and latency change with webhooks per event, with webhooks, and with kept rows.

Each point has its own database. A run of a point starts a node, writes and delivers as fast as
responses come, and then half as fast, which gives the latency: from the start of a write's
transaction to the request at its receiver. The points take turns, and medians count. A run leaves
its rows behind.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from urllib.request import urlopen

from tests.benchmarks.figures import Verdict, in_ms, median, quantile, rounded
from tests.benchmarks.kept_rows import fill_file, fill_server
from tests.benchmarks.product import product
from tests.benchmarks.sizes import Size
from tests.benchmarks.whole_runs import Place, Site, site

CONNECTIONS = 32
WARM = 200
"""Deliveries before a run is measured."""
PACE = 0.5
"""The share of the highest rate at which latency is measured."""
KEPT_SHARE = 0.5
"""With the most kept rows a node must reach this share of its rate without them."""
SPREAD_SHARE = 0.5
"""With the most webhooks, this share of the rate with one."""
FAN_SHARE = 1.0
"""With the most webhooks per event, this many times the deliveries of one."""


@dataclass(frozen=True)
class Point:
    """What a database holds: owners with their webhooks, and rows of the past."""

    per_event: int = 1
    owners: int = 1
    kept: int = 0

    @property
    def name(self) -> str:
        return f"e{self.per_event}_w{self.owners}_r{self.kept}"


@dataclass(frozen=True)
class Ran:
    """The figures of one run of a point."""

    events_per_s: float
    p50_ms: float
    p99_ms: float
    node_us: float
    """CPU of an event."""
    server_us: float
    node_cores: float
    """CPU of the node per second: 1 is what one interpreter can use."""
    machine_cores: float


async def growth(size: Size) -> Verdict:
    """Measure events per second and p99 along three axes on SQLite."""
    return await _grow(Verdict("growth"), "sqlite", size)


async def growth_postgres(size: Size) -> Verdict:
    """Measure the same with one process on PostgreSQL."""
    return await _grow(Verdict("growth_postgres"), "postgres", size)


async def _grow(verdict: Verdict, engine: str, size: Size) -> Verdict:
    verdict.figures |= {
        "deliveries": size.grown_deliveries,
        "connections": min(CONNECTIONS, size.connections),
        "runs": size.runs,
        "cores": os.cpu_count(),
    }
    axes = {
        "webhooks_per_event": [Point(per_event=n) for n in size.grown_per_event],
        "webhooks": [Point(owners=n) for n in size.grown_webhooks],
        "kept_rows": [Point(kept=n) for n in size.grown_kept],
    }
    points = list(dict.fromkeys(point for found in axes.values() for point in found))
    ran = await _measured(verdict, engine, points, size)
    for axis, found in axes.items():
        for point in found:
            value = {
                "webhooks_per_event": point.per_event,
                "webhooks": point.owners,
                "kept_rows": point.kept,
            }[axis]
            verdict.figures[f"{engine}_{axis}_{value}"] = _told(point, ran[point])
    _judge(verdict, axes, {p: _rate(ran[p]) for p in points})
    return verdict


def _judge(verdict: Verdict, axes: Mapping[str, list[Point]], rates: Mapping[Point, float]) -> None:
    first = rates[Point()]
    verdict.figures["smallest_per_s"] = round(first)
    most = {axis: found[-1] for axis, found in axes.items()}
    fan = most["webhooks_per_event"]
    for what, ratio, bar in (
        ("deliveries_of_most_per_event", rates[fan] * fan.per_event / first, FAN_SHARE),
        ("events_of_most_webhooks", rates[most["webhooks"]] / first, SPREAD_SHARE),
        ("events_of_most_kept_rows", rates[most["kept_rows"]] / first, KEPT_SHARE),
    ):
        verdict.at_least(what, ratio, bar)


async def _measured(
    verdict: Verdict, engine: str, points: list[Point], size: Size
) -> dict[Point, list[Ran]]:
    """Stage all points, then let them take turns."""
    found: dict[Point, list[Ran]] = {point: [] for point in points}
    with tempfile.TemporaryDirectory(prefix="carteiro-bench-") as name:
        async with AsyncExitStack() as ends:
            where = await ends.enter_async_context(site(engine, Path(name), "record"))
            verdict.figures["database"] = where.database
            staged = []
            for point in points:
                place = await ends.enter_async_context(where.place(point.name))
                staged.append((point, place, await stage(where, place, point)))
            for _ in range(size.runs):
                for point, place, keys in staged:
                    found[point].append(await _run(where, place, point, keys, size))
    return found


async def stage(where: Site, place: Place, point: Point) -> list[str]:
    """Create the owners, deliver one event, and copy it; return the owners' keys."""
    await place.stage.prepare()
    people = await place.stage.people([[where.hook] * point.per_event] * point.owners)
    keys = [person.key for person in people]
    with product(place.stage.environment(where.receiver), place.stage.folder) as node:
        await where.run(place, node, keys, 1, 1, point.per_event)
    if point.kept and where.cluster is None:
        fill_file(place.stage.folder / "carteiro.db", point.kept)
    elif point.kept:
        await fill_server(place.stage.url, point.kept)
    return keys


async def _run(where: Site, place: Place, point: Point, keys: list[str], size: Size) -> Ran:
    events = max(size.grown_deliveries // point.per_event, 1)
    connections = min(CONNECTIONS, size.connections)
    with product(place.stage.environment(where.receiver), place.stage.folder) as node:
        warm = max(min(WARM, events) // point.per_event, 1)
        await where.run(place, node, keys, warm, connections, point.per_event)
        whole = await where.run(place, node, keys, events, connections, point.per_event)
        rate = events / whole.seconds
        _arrivals(where)
        await where.run(
            place, node, keys, 0, connections, point.per_event,
            per_second=PACE * rate, seconds=size.steady_seconds,
        )  # fmt: skip
        took = _arrivals(where)
    return Ran(
        events_per_s=rate,
        p50_ms=in_ms(quantile(took, 0.5)),
        p99_ms=in_ms(quantile(took, 0.99)),
        node_us=whole.used.python / events * 1e6,
        server_us=whole.used.server / events * 1e6,
        node_cores=whole.used.python / whole.seconds,
        machine_cores=whole.machine_cores,
    )


def _arrivals(where: Site) -> list[int]:
    """Return the microseconds of each arrival since the last call, from its event's start."""
    with urlopen(f"http://127.0.0.1:{where.receiver}/report", timeout=60) as answer:
        # An event's id begins with the milliseconds of its transaction's start.
        return [at - int(event[:12], 16) * 1000 for _, event, at in json.load(answer)]


def _rate(runs: list[Ran]) -> float:
    return median([run.events_per_s for run in runs])


def _told(point: Point, runs: list[Ran]) -> dict[str, float]:
    """Return the medians."""
    return {
        "events_per_s": round(_rate(runs), 1),
        "deliveries_per_s": round(_rate(runs) * point.per_event),
        "p50_ms": rounded(median([run.p50_ms for run in runs])),
        "p99_ms": rounded(median([run.p99_ms for run in runs])),
        "node_cpu_us": round(median([run.node_us for run in runs])),
        "server_cpu_us": round(median([run.server_us for run in runs])),
        "node_cores": round(median([run.node_cores for run in runs]), 2),
        "machine_cores": round(median([run.machine_cores for run in runs]), 2),
    }
