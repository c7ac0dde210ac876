"""The work of a database, read from its own statistics before and after."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Literal, Protocol

import asyncpg

from tests.benchmarks.figures import rounded
from tests.benchmarks.usage import used, written_bytes
from tests.support.cluster import Cluster

# Contacts stand for any record of a program; the rest is what Carteiro adds to it.
TABLES = ("contacts", "events", "deliveries", "attempts")

_BOOKS = """
select (select xact_commit from pg_stat_database where datname = current_database()) as commits,
  (select wal_bytes from pg_stat_wal) as wal,
  (select sum(fsyncs) from pg_stat_io where object = 'wal') as flushes,
  (select active_time from pg_stat_database where datname = current_database()) as active_ms
"""


@dataclass(frozen=True, slots=True)
class Spent:
    """The work done: counts, bytes, and seconds of time or CPU. None for an unknown figure."""

    statements: float = 0
    commits: float | None = None
    flushes: float | None = None
    wal: float | None = None
    """Bytes of PostgreSQL's write-ahead log."""
    disk: float | None = None
    """Bytes that SQLite wrote to the disk, log and file."""
    active: float | None = None
    """Seconds in which PostgreSQL's sessions were active, waits for the disk included."""
    server: float | None = None
    python: float = 0

    def less(self, other: Spent) -> Spent:
        return self._with(lambda name, mine: mine - (getattr(other, name) or 0))

    def each(self, count: float) -> Spent:
        return self._with(lambda _, mine: mine / count)

    def _with(self, step: Callable[[str, float], float]) -> Spent:
        mine = {field.name: getattr(self, field.name) for field in fields(self)}
        changed: dict[str, Any] = {
            name: None if value is None else step(name, value) for name, value in mine.items()
        }
        return Spent(**changed)

    def add(self, *, statements: int, python: float, disk: float | None) -> Spent:
        return replace(self, statements=statements, python=python, disk=disk)

    @property
    def plausible(self) -> bool:
        """Nothing is done for nothing."""
        return self.statements > 0 and (self.wal or self.disk or 0) > 0

    def told(self) -> Mapping[str, float]:
        found = {
            "statements": self.statements,
            "commits": self.commits,
            "log_flushes": self.flushes,
            "wal_bytes": self.wal,
            "disk_bytes": self.disk,
            "active_us": None if self.active is None else self.active * 1e6,
            "server_cpu_us": None if self.server is None else self.server * 1e6,
            "python_cpu_us": self.python * 1e6,
        }
        return {
            name: round(value) if name.endswith(("bytes", "us")) else rounded(value)
            for name, value in found.items()
            if value is not None
        }


class Books(Protocol):
    """Where to read a database's own figures."""

    engine: Literal["sqlite", "postgres"]

    @property
    def process(self) -> int | None:
        """PostgreSQL's first process."""

    def handed_to_disk(self, node: int) -> int | None:
        """Bytes, where the node itself writes the files."""

    async def read(self) -> Spent:
        """Return all figures so far."""

    async def sizes(self) -> Mapping[str, int]:
        """Return the bytes on disk with the indexes, by table where possible."""

    async def pack(self) -> None:
        """Rewrite the tables, without the remains of updates."""


class PostgresBooks:
    """The figures of a PostgreSQL server, version 18 or newer."""

    engine: Literal["sqlite", "postgres"] = "postgres"

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    @property
    def process(self) -> int | None:
        return self._cluster.pid

    def handed_to_disk(self, node: int) -> int | None:
        return None

    async def read(self) -> Spent:
        connection = await asyncpg.connect(self._cluster.url)
        try:
            row = await connection.fetchrow(_BOOKS)
        finally:
            await connection.close()
        pid = self._cluster.pid
        return Spent(
            commits=row["commits"], flushes=float(row["flushes"]), wal=float(row["wal"]),
            active=row["active_ms"] / 1000, server=used(pid, pid).server,
        )  # fmt: skip

    async def sizes(self) -> Mapping[str, int]:
        connection = await asyncpg.connect(self._cluster.url)
        try:
            return {
                table: await connection.fetchval(
                    "select pg_total_relation_size(cast($1 as text)::regclass)", table
                )
                for table in TABLES
            }
        finally:
            await connection.close()

    async def pack(self) -> None:
        for table in TABLES:
            await self._cluster.run(f"vacuum full {table}")


class SqliteBooks:
    """The figures of an SQLite file."""

    engine: Literal["sqlite", "postgres"] = "sqlite"
    process = None

    def __init__(self, file: Path) -> None:
        self._file = file

    def handed_to_disk(self, node: int) -> int | None:
        return written_bytes(node)

    async def read(self) -> Spent:
        return Spent()

    async def sizes(self) -> Mapping[str, int]:
        return {"file": self._file.stat().st_size}

    async def pack(self) -> None:
        with closing(sqlite3.connect(self._file)) as connection:
            connection.execute("vacuum")
