"""One run at a fixed pace: what an event costs, and the time from its write to its request.

It imports nothing that only this tree has, so that it also runs as a file with another tree as its
folder and on its path: see `quiet_pairs`.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tests.benchmarks.children import answer_of
from tests.benchmarks.figures import median, quantile
from tests.benchmarks.idle_commit import arrivals, events
from tests.benchmarks.load import request
from tests.benchmarks.product import product
from tests.benchmarks.usage import GONE, PROC, TICK
from tests.benchmarks.whole_runs import site
from tests.benchmarks.write_path import CONTACT

CONNECTIONS = 4
WARM_UP_SECONDS = 2.0
PATIENCE = 60.0


@dataclass(frozen=True, slots=True)
class Spent:
    """Seconds of CPU in all, in user and in system mode (in ticks), and context switches."""

    cpu: float = 0.0
    user: float = 0.0
    system: float = 0.0
    switches: int = 0

    def __add__(self, other: Spent) -> Spent:
        return Spent(
            self.cpu + other.cpu, self.user + other.user, self.system + other.system,
            self.switches + other.switches,
        )  # fmt: skip

    def __sub__(self, other: Spent) -> Spent:
        return Spent(
            self.cpu - other.cpu, self.user - other.user, self.system - other.system,
            self.switches - other.switches,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Quiet:
    """The figures of one run: milliseconds of an event, or percent of a core without any."""

    cpu_ms: float
    """The node's processes and PostgreSQL's."""
    server_ms: float
    """PostgreSQL's part."""
    user_ms: float
    system_ms: float
    switches: float
    core_percent: float
    to_request_median_ms: float = 0.0
    to_request_p99_ms: float = 0.0
    write_median_ms: float = 0.0


async def quiet_run(
    engine: str,
    per_second: float,
    seconds: float,
    processes: int = 1,
    *,
    gate: asyncio.Barrier | None = None,
    **settings: str,
) -> Quiet:
    """Create contacts at a pace, each with one delivery; at 0 a second only wait.

    Runs with one `gate` measure at the same time. `settings` are environment variables of the node.
    """
    with tempfile.TemporaryDirectory(prefix="carteiro-bench-") as name:
        async with site(engine, Path(name), "record") as where, where.place("run") as place:
            await place.stage.prepare()
            [person] = await place.stage.people([[where.hook]])
            settings["CARTEIRO_SERVER__PROCESSES"] = str(processes)
            environment = place.stage.environment(where.receiver, **settings)
            server = where.cluster.pid if where.cluster else None
            with product(environment, place.stage.folder) as node:
                load: dict[str, Any] = {
                    "port": node.port,
                    "connections": CONNECTIONS,
                    "per_second": per_second,
                    "expect": 201,
                    "requests": [request("POST", "/api/contacts", CONTACT, X_API_Key=person.key)],
                }
                await asyncio.sleep(WARM_UP_SECONDS)
                if per_second:
                    await _written(where.log, load | {"seconds": WARM_UP_SECONDS})
                    await asyncio.sleep(0.5)
                    arrivals(where.receiver)
                if gate is not None:
                    await gate.wait()
                before = _spent(node.process.pid), _spent(server)
                began = time.monotonic()
                done: dict[str, Any] = {"count": 0}
                arrived: list[tuple[str, str, int]] = []
                if per_second:
                    done = await _written(where.log, load | {"seconds": seconds})
                    end = time.monotonic() + PATIENCE
                    while len(arrived) < done["count"] and time.monotonic() < end:
                        await asyncio.sleep(0.02)
                        arrived += arrivals(where.receiver)
                else:
                    await asyncio.sleep(seconds)
                own = _spent(node.process.pid) - before[0]
                servers = _spent(server) - before[1]
                took = time.monotonic() - began
            count = int(done["count"])
            if len(arrived) < count:
                raise RuntimeError(f"only {len(arrived)} of {count} arrived")
            latencies = [0.0]
            if count:
                async with place.stage.opened() as db:
                    begun = {row["id"]: row["occurred_at"] for row in await db.read(events)}
                latencies = [(at - begun[event]) / 1000 for _, event, at in arrived]
    total = own + servers
    each = 1000 / max(count, 1)
    return Quiet(
        total.cpu * each, servers.cpu * each, total.user * each, total.system * each,
        total.switches / max(count, 1), total.cpu / took * 100, median(latencies),
        quantile(latencies, 0.99), done.get("p50_ms", 0.0),
    )  # fmt: skip


async def _written(log: Path, load: dict[str, Any]) -> dict[str, Any]:
    done: dict[str, Any] = await asyncio.to_thread(answer_of, "tests.benchmarks.load", log, load)
    if done["bad"] or done["gone"]:
        raise RuntimeError(f"{done['bad']} refused, {done['gone']} lost")
    return done


def _spent(first: int | None) -> Spent:
    """Return what a process and all of its descendants have used."""
    if first is None:
        return Spent()
    children: dict[int, list[int]] = {}
    for entry in PROC.iterdir():
        if entry.name.isdigit():
            try:
                children.setdefault(int(_stat(entry)[1]), []).append(int(entry.name))
            except GONE:
                continue
    found, total = [first], Spent()
    for process in found:
        found += children.get(process, [])
        try:
            total += _of(PROC / str(process))
        except GONE:
            continue
    return total


def _of(process: Path) -> Spent:
    fields = _stat(process)
    # The time of threads that have ended is in the process's own figures alone.
    user, system = int(fields[11]) / TICK, int(fields[12]) / TICK
    nanoseconds = switches = 0
    for thread in (process / "task").iterdir():
        nanoseconds += int((thread / "schedstat").read_text().split()[0])
        for line in (thread / "status").read_text().splitlines():
            if "ctxt_switches" in line:
                switches += int(line.split()[1])
    return Spent(nanoseconds / 1e9, user, system, switches)


def _stat(process: Path) -> list[str]:
    return (process / "stat").read_text().rpartition(")")[2].split()


async def main(words: list[str]) -> None:
    """Print the figures of one run: ENGINE PER_SECOND SECONDS [PROCESSES]."""
    engine, per_second, seconds, *more = words
    run = await quiet_run(engine, float(per_second), float(seconds), *map(int, more))
    print(json.dumps(asdict(run) | {"tree": os.getcwd()}), flush=True)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
