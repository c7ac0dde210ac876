"""Whole runs: a node takes a number of writes and delivers their events at the same time.

A run ends when all events have arrived and no delivery is unfinished.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import sqlite3
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import asyncpg

from tests.benchmarks.children import answer_of, child
from tests.benchmarks.load import request
from tests.benchmarks.product import Product, product
from tests.benchmarks.staging import Stage
from tests.benchmarks.usage import Used, used
from tests.benchmarks.write_path import CONTACT
from tests.support.cluster import Cluster
from tests.support.databases import with_name

LONGEST = 900.0
"""Seconds in which all must have been written."""
PATIENCE = 120.0
"""Seconds to wait for the last deliveries then."""
# As an installed server, but on its own port and folder.
SETTINGS = {"fsync": "on", "listen_addresses": "127.0.0.1"}
# One partial index each.
UNFINISHED = """
select (select count(*) from deliveries where state = 'ready')
  + (select count(*) from deliveries where state = 'in_flight')
"""


@dataclass(frozen=True)
class Whole:
    """The figures of one run, from the first request to the last delivery."""

    seconds: float
    write_p99_ms: float
    used: Used
    """CPU until the last delivery is recorded."""
    machine_cores: float
    """CPU of everything on the machine per second."""


@dataclass(frozen=True)
class Place:
    """An empty database, and what counts its unfinished deliveries."""

    stage: Stage
    unfinished: Callable[[], int]


@dataclass(frozen=True)
class Site:
    """Where runs take place: a folder, the port of a receiver, a PostgreSQL server or none."""

    folder: Path
    receiver: int
    cluster: Cluster | None
    database: str
    """Its version, and what it does before it answers a commit."""

    @property
    def log(self) -> Path:
        return self.folder / "children.log"

    @property
    def hook(self) -> str:
        """The URL of the receiver."""
        return f"http://127.0.0.1:{self.receiver}/hook"

    @asynccontextmanager
    async def place(self, name: str) -> AsyncIterator[Place]:
        """Create an empty database during the block."""
        folder = self.folder / name
        folder.mkdir()
        try:
            if self.cluster is None:
                file = folder / "carteiro.db"
                yield Place(Stage(f"sqlite:///{file}", folder), lambda: _in_file(file))
                return
            await self.cluster.run(f"create database {name}")
            url = with_name(self.cluster.url, name)
            yield Place(Stage(url, folder), lambda: asyncio.run(_on_server(url)))
            await self.cluster.run(f"drop database {name} with (force)")
        finally:
            shutil.rmtree(folder)

    async def alone(self, settings: Mapping[str, str], events: int, connections: int) -> Whole:
        """Write and deliver `events` events of one webhook, with a new database and a new node."""
        async with self.place("run") as place:
            await place.stage.prepare()
            [person] = await place.stage.people([[self.hook]])
            environment = place.stage.environment(self.receiver, **settings)
            with product(environment, place.stage.folder) as node:
                return await self.run(place, node, [person.key], events, connections)

    async def run(
        self,
        place: Place,
        node: Product,
        keys: Sequence[str],
        events: int,
        connections: int,
        deliveries: int = 1,
        **pace: float,
    ) -> Whole:
        """Write `events` contacts, each with so many deliveries. Raise RuntimeError.

        `pace` is `per_second` and `seconds`; then the pace decides how many are written.
        """
        server = self.cluster.pid if self.cluster else None
        had = self.arrived()["count"]
        before, began = used(node.process.pid, server), time.monotonic()
        load = {
            "port": node.port,
            "connections": connections,
            "total": events,
            "seconds": LONGEST,
            "expect": 201,
            "requests": [
                request("POST", "/api/contacts", CONTACT, X_API_Key=key)
                for key in keys[: max(events, 1)]
            ],
        }
        done = await asyncio.to_thread(answer_of, "tests.benchmarks.load", self.log, load | pace)
        wanted = done["count"] if pace else events
        if done["bad"] or done["gone"] or done["count"] != wanted or not wanted:
            raise RuntimeError(
                f"{done['count']} of {wanted} written, {done['bad']} refused, {done['gone']} lost"
            )
        expected, end = had + wanted * deliveries, time.monotonic() + PATIENCE
        while self.arrived()["count"] < expected or await asyncio.to_thread(place.unfinished):
            if time.monotonic() > end:
                break
            await asyncio.sleep(0.02)
        found, left = self.arrived()["count"], await asyncio.to_thread(place.unfinished)
        if found != expected or left:
            raise RuntimeError(
                f"{found - had} requests for {expected - had} deliveries; {left} have no end"
            )
        spent = used(node.process.pid, server).since(before)
        cores = spent.machine / (time.monotonic() - began)
        return Whole(self.arrived()["latest"] - done["began"], done["p99_ms"], spent, cores)

    def arrived(self) -> Any:
        """Return how many requests the receiver has answered, and when the latest."""
        with urlopen(f"http://127.0.0.1:{self.receiver}/count", timeout=30) as answer:
            return json.load(answer)


@asynccontextmanager
async def site(engine: str, folder: Path, *words: str) -> AsyncIterator[Site]:
    """Run a receiver, and for "postgres" a server on the disk of `folder`, during the block."""
    cluster = None
    told = f"SQLite {sqlite3.sqlite_version}, WAL, synchronous=FULL"
    if engine == "postgres":
        # The server runs as its own user, who must have access to its folder.
        folder.chmod(0o755)
        cluster = Cluster(folder / "data", SETTINGS)
        await cluster.create()
        await cluster.start()
        told = await _told_by(cluster.url)
    try:
        with child("tests.benchmarks.receiver", *words, log=folder / "children.log") as receiver:
            yield Site(folder, receiver.json()["port"], cluster, told)
    finally:
        if cluster is not None:
            await cluster.close()


async def _told_by(url: str) -> str:
    connection = await asyncpg.connect(url)
    try:
        version, *durable = [
            await connection.fetchval(f"show {name}")
            for name in ("server_version", "fsync", "synchronous_commit")
        ]
    finally:
        await connection.close()
    return f"PostgreSQL {version}, fsync={durable[0]}, synchronous_commit={durable[1]}"


def _in_file(file: Path) -> int:
    with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as connection:
        return int(connection.execute(UNFINISHED).fetchone()[0])


async def _on_server(url: str) -> int:
    connection = await asyncpg.connect(url)
    try:
        return int(await connection.fetchval(UNFINISHED))
    finally:
        await connection.close()
