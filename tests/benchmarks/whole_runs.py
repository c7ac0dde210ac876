"""One whole run: a node takes a number of writes and delivers their events at the same time.

It ends when all events have arrived and all deliveries are recorded as delivered. Each run has a
new database and a new node, of this tree or of another one.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import sqlite3
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import asyncpg

from tests.benchmarks.children import ROOT, answer_of, child
from tests.benchmarks.load import request
from tests.benchmarks.product import product
from tests.benchmarks.staging import Stage
from tests.benchmarks.usage import used
from tests.benchmarks.write_path import CONTACT
from tests.support.cluster import Cluster
from tests.support.databases import with_name

PATIENCE = 120.0
"""Seconds to wait for the last deliveries."""
# As an installed server, but on its own port and folder.
SETTINGS = {"fsync": "on", "listen_addresses": "127.0.0.1"}
DELIVERED = "select count(*) from deliveries where state = 'delivered'"


@dataclass(frozen=True)
class Side:
    """A tree of the product, and settings for it."""

    root: Path = ROOT
    settings: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Whole:
    """The figures of one run, from the first request to the last delivery."""

    seconds: float
    write_p99_ms: float
    python: float
    """Seconds of CPU of the node, until the last delivery is recorded."""
    server: float
    """Seconds of CPU of PostgreSQL meanwhile."""


@dataclass(frozen=True)
class Site:
    """Where runs take place: a folder, a receiver, and a PostgreSQL server or none."""

    folder: Path
    receiver: int
    """The port of the receiver."""
    cluster: Cluster | None

    @property
    def log(self) -> Path:
        return self.folder / "children.log"

    async def run(self, side: Side, events: int, connections: int) -> Whole:
        """Write and deliver `events` events of one webhook."""
        async with self._database() as (stage, delivered):
            spec = {
                "url": stage.url,
                "folder": str(stage.folder),
                "webhooks": [[f"http://127.0.0.1:{self.receiver}/hook"]],
            }
            staged = answer_of("tests.benchmarks.staged", self.log, spec, side.root)
            if not Path(staged["code"]).is_relative_to(side.root):
                raise RuntimeError(f"a run of {side.root} used the code of {staged['code']}")
            environment = stage.environment(self.receiver, **side.settings)
            server = self.cluster.pid if self.cluster else None
            with product(environment, stage.folder, root=side.root) as node:
                had = self._arrived()["count"]
                before = used(node.process.pid, server)
                load = {
                    "port": node.port,
                    "connections": connections,
                    "total": events,
                    "seconds": PATIENCE,
                    "expect": 201,
                    "requests": [request("POST", "/api/contacts", CONTACT, X_API_Key=key)
                                 for key in staged["keys"]],
                }  # fmt: skip
                done = await asyncio.to_thread(answer_of, "tests.benchmarks.load", self.log, load)
                if done["bad"] or done["gone"] or done["count"] != events:
                    raise RuntimeError(
                        f"{done['count']} of {events} written, {done['bad']} refused, "
                        f"{done['gone']} cut off"
                    )
                await _until(lambda: self._arrived()["count"] - had, events)
                await _until(delivered, events)
                spent = used(node.process.pid, server).since(before)
            arrived = self._arrived()
        if arrived["count"] - had != events:
            raise RuntimeError(f"{arrived['count'] - had} requests for {events} events")
        seconds = arrived["latest"] - done["began"]
        return Whole(seconds, done["p99_ms"], spent.python, spent.server)

    def _arrived(self) -> Any:
        with urlopen(f"http://127.0.0.1:{self.receiver}/count", timeout=30) as answer:
            return json.load(answer)

    @asynccontextmanager
    async def _database(self) -> AsyncIterator[tuple[Stage, Callable[[], int]]]:
        """Make an empty database; yield also what counts its finished deliveries."""
        folder = self.folder / "run"
        folder.mkdir()
        try:
            if self.cluster is None:
                file = folder / "carteiro.db"
                yield Stage(f"sqlite:///{file}", folder), lambda: _delivered_in(file)
                return
            await self.cluster.run("create database run")
            url = with_name(self.cluster.url, "run")
            yield Stage(url, folder), lambda: asyncio.run(_delivered_at(url))
            await self.cluster.run("drop database run with (force)")
        finally:
            shutil.rmtree(folder)


@asynccontextmanager
async def site(engine: str, folder: Path) -> AsyncIterator[Site]:
    """Run a receiver, and for "postgres" a server on the disk of `folder`, during the block."""
    cluster = None
    if engine == "postgres":
        # The server runs as its own user, who must have access to its folder.
        folder.chmod(0o755)
        cluster = Cluster(folder / "data", SETTINGS)
        await cluster.create()
        await cluster.start()
    try:
        with child("tests.benchmarks.receiver", log=folder / "children.log") as receiver:
            yield Site(folder, receiver.json()["port"], cluster)
    finally:
        if cluster is not None:
            await cluster.close()


async def _until(count: Callable[[], int], wanted: int) -> None:
    """Wait until `count` has reached `wanted`. Raise RuntimeError."""
    end = time.monotonic() + PATIENCE
    while (found := await asyncio.to_thread(count)) < wanted:
        if time.monotonic() > end:
            raise RuntimeError(f"only {found} of {wanted} deliveries ended")
        await asyncio.sleep(0.02)


def _delivered_in(file: Path) -> int:
    with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as connection:
        return int(connection.execute(DELIVERED).fetchone()[0])


async def _delivered_at(url: str) -> int:
    connection = await asyncpg.connect(url)
    try:
        return int(await connection.fetchval(DELIVERED))
    finally:
        await connection.close()
