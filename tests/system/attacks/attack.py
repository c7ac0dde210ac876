"""One attack on its own server: processor time, memory, and what others notice meanwhile."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

import aiohttp

from tests.benchmarks.figures import quantile
from tests.support.deployed import Deployed, deployed
from tests.support.engines import Engine
from tests.support.product import queued_seconds

CPU_SECONDS_A_REQUEST = 0.2
MEMORY_MIB = 256.0
LIVEZ_SECONDS = 0.1
TIMES_QUIET = 3.0
"""A health check may take so many times what the slowest took before the attack."""
LOOK_SECONDS = 0.05
# Deferred work counts too: the server is watched until it is idle.
REST_SECONDS = 0.5
WAIT_SECONDS = 1.0
TIMES = 1.5
"""Limit of others' 99th percentile, in seconds or as a multiple of the value before the attack."""
ROUNDS = 20
OTHERS = (
    ("GET", "/api/contacts?search=maria", None), ("GET", "/api/contacts", None),
    ("POST", "/api/contacts", {"name": "Maria"}),
)  # fmt: skip


@dataclass
class Target:
    """The attacked server. The first owner is the attacker, the second another user."""

    site: Deployed
    findings: list[str] = field(default_factory=list)
    """Faults that the attack saw, such as another user who had to wait."""

    @property
    def address(self) -> str:
        return self.site.product.address

    @property
    def port(self) -> int:
        return self.site.product.port

    @property
    def owners(self) -> list[str]:
        return [*self.site.tenants.keys]

    @property
    def keys(self) -> list[str]:
        return [*self.site.tenants.keys.values()]

    @asynccontextmanager
    async def client(
        self, number: int | None = None, limit: int = 400, **headers: str
    ) -> AsyncIterator[aiohttp.ClientSession]:
        """Open a client with the key of an owner, of nobody without a number."""
        headers |= {} if number is None else {"X-API-Key": self.keys[number]}
        async with aiohttp.ClientSession(
            self.address, headers={name.replace("_", "-"): text for name, text in headers.items()},
            timeout=aiohttp.ClientTimeout(90), connector=aiohttp.TCPConnector(limit=limit),
        ) as http:  # fmt: skip
            yield http


@dataclass(frozen=True)
class Attack:
    """`run` attacks and returns the number of requests that it made or began."""

    run: Callable[[Target], Awaitable[int]]
    fill: Callable[[Target], Awaitable[None]] | None = None
    """Inserts records before the measurement."""


async def run_attack(
    name: str, attack: Attack, engine: Engine = "sqlite", broken: str = ""
) -> list[str]:
    """Run the attack, print its figures, and return what missed a bar."""
    # The limits of the rates are the defaults, but for visitors.
    rates = {"READ_PER_SECOND": "100", "WRITE_PER_SECOND": "50", "STOREFRONT_PER_MINUTE": "0"}
    settings = {f"CARTEIRO_LIMITS__{name}": rate for name, rate in rates.items()}
    async with deployed(
        engine, 1, ports=[9], owners=2, webhooks=0, broken=broken, settings=settings
    ) as site:
        target, product = Target(site), site.product
        if attack.fill is not None:
            await attack.fill(target)
        start, used = product.rss(), product.cpu_seconds()
        quiet, looks, memory = list[float](), list[float](), list[float]()
        async with _looking(target, quiet, memory):
            await asyncio.sleep(4 * REST_SECONDS)
        async with _looking(target, looks, memory):
            began = product.cpu_seconds()
            requests = await attack.run(target)
            while True:
                now = product.cpu_seconds()
                await asyncio.sleep(REST_SECONDS)
                if product.cpu_seconds() - now < REST_SECONDS / 4:
                    break
        cpu = product.cpu_seconds() - began
    each, peak, worst = cpu / max(requests, 1), max(memory) - start, max(looks)
    print(json.dumps({
        "attack": name, "engine": engine, "requests": requests, "cpu_seconds": round(cpu, 2),
        "idle_cpu_seconds": round(began - used, 2), "cpu_ms_a_request": round(each * 1000, 2),
        "peak_mib": round(peak, 1), "livez_worst_ms": round(worst * 1000, 1),
        "livez_quiet_ms": round(max(quiet) * 1000, 1),
    }))  # fmt: skip
    findings = [*target.findings]
    if each > CPU_SECONDS_A_REQUEST:
        findings.append(f"{each:.2f} s of processor time a request")
    if peak > MEMORY_MIB:
        findings.append(f"{peak:.0f} MiB over the start")
    if worst > max(LIVEZ_SECONDS, TIMES_QUIET * max(quiet)):
        findings.append(f"/livez took {worst * 1000:.0f} ms")
    return findings


@asynccontextmanager
async def _looking(target: Target, took: list[float], memory: list[float]) -> AsyncIterator[None]:
    """Ask for the health and the memory of the server during the block."""
    product = target.site.product

    def waited() -> float:
        # The wait of either side for a processor is the machine's.
        return product.queued_seconds() + queued_seconds(os.getpid())

    async def look() -> None:
        while True:
            began, queued = time.monotonic(), waited()
            # A new connection each time: even a full server must accept it.
            status, _ = await product.get("/livez")
            took.append(time.monotonic() - began - (waited() - queued))
            memory.append(product.rss())
            if status != 200:
                target.findings.append(f"/livez: {status}")
            await asyncio.sleep(LOOK_SECONDS)

    async with _beside(look()):
        yield


@asynccontextmanager
async def _beside(work: Awaitable[None]) -> AsyncIterator[None]:
    task = asyncio.ensure_future(work)
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def beside(target: Target, attack: Callable[[], Awaitable[int]]) -> int:
    """Run an attack of the first owner while the second one works; findings go to the target."""
    alone, among = list[float](), list[float]()
    async with target.client(1) as http:

        async def work() -> None:
            while True:
                among.extend(await _round(http, target))
                await asyncio.sleep(0.1)

        for _ in range(ROUNDS):
            alone += await _round(http, target)
        async with _beside(work()):
            requests = await attack()
            # One whole round begins after the attack, to measure its aftermath too.
            among += await _round(http, target)
    before, after = (quantile(took, 0.99) for took in (alone, among))
    if after > max(WAIT_SECONDS, TIMES * before):
        target.findings.append(f"somebody else waits {after:.2f} s instead of {before:.2f} s")
    return requests


async def _round(http: aiohttp.ClientSession, target: Target) -> list[float]:
    took = []
    for method, path, body in OTHERS:
        began = time.monotonic()
        async with http.request(method, path, json=body) as answer:
            await answer.read()
            if answer.status >= 400:
                target.findings.append(f"somebody else's {method} {path} got {answer.status}")
        took.append(time.monotonic() - began)
    return took
