"""One attack on its own server: processor time, memory, and concurrent health checks."""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp

from tests.support.engines import Engine, empty_database
from tests.support.product import Product
from tests.support.tenants import settle_in

CPU_SECONDS_A_REQUEST = 0.2
MEMORY_MIB = 256.0
LIVEZ_SECONDS = 0.1
LOOK_SECONDS = 0.05
# Deferred work counts too: the server is watched until it is idle.
REST_SECONDS = 0.5
PATIENCE_SECONDS = 30.0
TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Target:
    """The attacked server. The first key is the attacker's, the second another user's."""

    address: str
    port: int
    keys: tuple[str, str]
    owners: tuple[str, str]
    url: str
    """The address of the database, to fill it before the attack."""
    findings: list[str] = field(default_factory=list)
    """Faults that the attack saw, such as another user who had to wait."""


@dataclass(frozen=True)
class Attack:
    """`run` attacks and returns the number of requests that it made or began."""

    name: str
    run: Callable[[Target], Awaitable[int]]
    fill: Callable[[Target], Awaitable[None]] | None = None
    """Inserts records before the measurement."""
    settings: dict[str, str] = field(default_factory=dict)


@dataclass
class Watch:
    """The resource use and the health checks of a process from start to end of a watch."""

    cpu_seconds: float = 0.0
    peak_mib: float = 0.0
    livez: list[float] = field(default_factory=list)
    refused: int = 0
    """Health checks with a response other than 200."""


async def run_attack(
    attack: Attack, engine: Engine = "sqlite", *, module: str = "gateway"
) -> dict[str, Any]:
    """Run the attack; return figures, and `findings` where a bar is missed.

    `module` is another entry point in place of the product, one with a guard turned off.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        async with empty_database(engine, folder) as url:
            tenants = await settle_in(url, folder, [9], owners=2, webhooks=0)
            # The limits of the rates are the defaults.
            given = {"CARTEIRO_LIMITS__READ_PER_SECOND": "100",
                     "CARTEIRO_LIMITS__WRITE_PER_SECOND": "50"}  # fmt: skip
            product = Product(
                folder, url, tenants.key_file, module=module, environment=given | attack.settings
            )
            await product.start()
            try:
                first, second = tenants.keys
                target = Target(
                    product.address, product.port, (tenants.keys[first], tenants.keys[second]),
                    (first, second), url,
                )  # fmt: skip
                if attack.fill is not None:
                    await attack.fill(target)
                async with _watched(product) as watch:
                    requests = await attack.run(target)
            finally:
                await product.close()
    return _record(attack.name, engine, requests, watch, target.findings)


def _record(
    name: str, engine: Engine, requests: int, watch: Watch, seen: list[str]
) -> dict[str, Any]:
    each = watch.cpu_seconds / max(requests, 1)
    worst = max(watch.livez, default=PATIENCE_SECONDS)
    findings = [*seen]
    if each > CPU_SECONDS_A_REQUEST:
        findings.append(f"{each:.2f} s of processor time a request")
    if watch.peak_mib > MEMORY_MIB:
        findings.append(f"{watch.peak_mib:.0f} MiB over the start")
    if worst > LIVEZ_SECONDS:
        findings.append(f"/livez took {worst * 1000:.0f} ms")
    if watch.refused:
        findings.append(f"/livez was refused {watch.refused} times")
    return {
        "attack": name,
        "engine": engine,
        "requests": requests,
        "cpu_seconds": round(watch.cpu_seconds, 2),
        "cpu_ms_a_request": round(each * 1000, 2),
        "peak_mib": round(watch.peak_mib, 1),
        "livez_worst_ms": round(worst * 1000, 1),
        "livez_looks": len(watch.livez),
        "livez_refused": watch.refused,
        "findings": findings,
        "pass": not findings,
    }


@asynccontextmanager
async def _watched(product: Product) -> AsyncIterator[Watch]:
    """Watch the process from outside, with health checks, until it is idle again."""
    watch = Watch()
    before, start = cpu_seconds(product.pid), product.rss()
    timeout = aiohttp.ClientTimeout(total=PATIENCE_SECONDS)
    async with aiohttp.ClientSession(product.address, timeout=timeout) as http:
        looking = asyncio.create_task(_look(product, http, watch, start))
        try:
            yield watch
            used = cpu_seconds(product.pid)
            while True:
                await asyncio.sleep(REST_SECONDS)
                now = cpu_seconds(product.pid)
                if now - used < REST_SECONDS / 4:
                    break
                used = now
        finally:
            looking.cancel()
            await asyncio.gather(looking, return_exceptions=True)
    watch.cpu_seconds = cpu_seconds(product.pid) - before


async def _look(
    product: Product, http: aiohttp.ClientSession, watch: Watch, start_mib: float
) -> None:
    while True:
        began = time.monotonic()
        try:
            # A new connection each time: even a full server must accept it.
            async with http.get("/livez", headers={"Connection": "close"}) as response:
                await response.read()
                watch.refused += response.status != 200
        except (aiohttp.ClientError, TimeoutError):
            watch.refused += 1
        watch.livez.append(time.monotonic() - began)
        watch.peak_mib = max(watch.peak_mib, product.rss() - start_mib)
        await asyncio.sleep(LOOK_SECONDS)


def cpu_seconds(pid: int) -> float:
    """Return the processor seconds of a process and all its threads so far."""
    with open(f"/proc/{pid}/stat", encoding="ascii") as stat:
        fields = stat.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS
