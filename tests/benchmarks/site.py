"""Where benchmarks run: a receiver, a database server or none, and nodes of the product."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.benchmarks.children import answer_of, child
from tests.benchmarks.conditions import used
from tests.benchmarks.load import request
from tests.benchmarks.receiver import told
from tests.support.cluster import Cluster
from tests.support.databases import with_name
from tests.support.ledger import query
from tests.support.process import Serving, serving_process
from tests.support.tenants import Tenants, settle_in
from tests.support.waiting import in_time

STOP_SECONDS = 60.0
CONTACT = (
    '{"name":"Maria da Conceição Almeida","email":"maria.almeida@example.com",'
    '"phone":"+55 11 98888-7777","position":"Compradora"}'
).encode()
# As an installed server, but on its own port and folder.
SERVER = {"fsync": "on", "listen_addresses": "127.0.0.1"}
# One partial index each.
UNFINISHED = """
select (select count(*) from deliveries where state = 'ready')
  + (select count(*) from deliveries where state = 'in_flight')
"""


@dataclass(frozen=True)
class Place:
    """A database with owners, and the folder of its nodes."""

    folder: Path
    url: str
    tenants: Tenants

    def writes(self) -> list[str]:
        """Return a request for each owner that creates a contact."""
        keys = self.tenants.keys.values()
        return [request("POST", "/api/contacts", CONTACT, X_API_Key=key) for key in keys]


@dataclass(frozen=True)
class Run:
    """Events that a node has taken and delivered."""

    events: int
    seconds: float
    """From the first request to the last delivery."""
    cpu: tuple[float, float]
    """Seconds: of the node's processes and of PostgreSQL's."""
    write_p99_ms: float
    to_request: list[float]
    """Milliseconds from the start of each write's transaction to its request."""

    @property
    def per_s(self) -> float:
        return self.events / self.seconds

    @property
    def cpu_us(self) -> float:
        """The CPU of an event in microseconds."""
        return sum(self.cpu) / self.events * 1e6


@dataclass(frozen=True)
class Site:
    """A folder, the port of a receiver, and a PostgreSQL server or none."""

    folder: Path
    port: int
    cluster: Cluster | None
    patience: float = 120.0
    """Seconds to wait for the last deliveries."""

    @property
    def log(self) -> Path:
        return self.folder / "children.log"

    @asynccontextmanager
    async def place(self, name: str, owners: int = 1, webhooks: int = 1) -> AsyncIterator[Place]:
        """Create a database with owners that exists during the block."""
        (folder := self.folder / name).mkdir()
        url = f"sqlite:///{folder / 'carteiro.db'}"
        if self.cluster is not None:
            await self.cluster.run(f"create database {name}")
            url = with_name(self.cluster.url, name)
        try:
            ports = [self.port]
            tenants = await settle_in(url, folder, ports, owners=owners, webhooks=webhooks)
            yield Place(folder, url, tenants)
        finally:
            if self.cluster is not None:
                await self.cluster.run(f"drop database {name} with (force)")
            shutil.rmtree(folder)

    @contextmanager
    def node(
        self, place: Place, role: str = "all", *, module: str = "gateway", **settings: str
    ) -> Iterator[Serving]:
        """Run a node with default settings, but without limits of rates and of destinations."""
        settings = {
            "CARTEIRO_DATABASE__URL": place.url,
            "CARTEIRO_SECRETS__KEY_FILE": str(place.tenants.key_file),
            "CARTEIRO_LIMITS__READ_PER_SECOND": "0",
            "CARTEIRO_LIMITS__WRITE_PER_SECOND": "0",
            "CARTEIRO_EGRESS__ALLOW_HTTP": "true",
            "CARTEIRO_EGRESS__ALLOW": f"127.0.0.1/32:{self.port}",
        } | settings
        with serving_process(place.folder, "--role", role, module=module, **settings) as serving:
            yield serving
            serving.end(seconds=STOP_SECONDS)

    async def load(self, port: int, requests: list[str], **spec: Any) -> dict[str, Any]:
        """Send a load (see load.py) of 32 connections. Raise RuntimeError if one is refused."""
        spec = {"port": port, "requests": requests, "expect": 201, "connections": 32} | spec
        done: dict[str, Any] = await asyncio.to_thread(
            answer_of, "tests.benchmarks.load", log=self.log, spec=spec
        )
        if done["bad"] or done["gone"] or not done["count"]:
            raise RuntimeError(f"{done['count']} done, {done['bad']} refused, {done['gone']} lost")
        return done

    async def run(self, place: Place, node: Serving, *, per_event: int = 1, **spec: Any) -> Run:
        """Create contacts until each has all its deliveries. Raise RuntimeError if one has not."""
        had, before = told(self.port, "report")["count"], self.cpu(node)
        began_ms = time.time_ns() // 1_000_000
        # Owners without a turn must not make the input of the load longer.
        done = await self.load(node.port, place.writes()[: spec.get("total")], **spec)
        seen = await self.delivered(place, had + done["count"] * per_event)
        now = self.cpu(node)
        spent = now[0] - before[0], now[1] - before[1]
        # An event's id begins with the milliseconds of its transaction's start.
        made = f"select id, occurred_at from events where id >= '{began_ms:012x}'"
        begun = dict(await query(place.url, made))
        took = [(at - begun[event]) / 1000 for _, event, at in seen["rows"]]
        seconds = seen["latest"] - done["began"]
        return Run(done["count"], seconds, spent, done["p99_ms"], took)

    async def delivered(self, place: Place, expected: int) -> Any:
        """Wait until so many have arrived and none is left; return the receiver's report."""

        async def left() -> int:
            [(count,)] = await query(place.url, UNFINISHED)
            return int(count)

        async def finished() -> bool:
            return not await left()

        await self.arrived(expected)
        await in_time(finished, self.patience)
        count = told(self.port, "count")["count"]
        if count != expected or await left():
            raise RuntimeError(
                f"{count} of {expected} requests, {await left()} deliveries without an end"
            )
        return told(self.port, "report")

    async def arrived(self, count: int) -> bool:
        """Wait until so many requests have arrived."""
        return await in_time(lambda: told(self.port, "count")["count"] >= count, self.patience)

    def cpu(self, node: Serving) -> tuple[float, float]:
        """Return the seconds of CPU of the node's processes and of PostgreSQL's."""
        return used(node.process.pid), used(self.cluster.pid) if self.cluster else 0.0


@asynccontextmanager
async def site(engine: str = "sqlite", **more: str) -> AsyncIterator[Site]:
    """Run a receiver, and for "postgres" a server with fsync (and `more`), during the block."""
    with tempfile.TemporaryDirectory(prefix="carteiro-bench-") as name:
        folder, cluster = Path(name), None
        if engine == "postgres":
            # The server runs as its own user, who must have access to its folder.
            folder.chmod(0o755)
            cluster = Cluster(folder / "data", SERVER | more)
            await cluster.create()
            await cluster.start()
        try:
            with child("tests.benchmarks.receiver", log=folder / "children.log") as receiver:
                yield Site(folder, receiver.json()["port"], cluster)
        finally:
            if cluster is not None:
                await cluster.close()
