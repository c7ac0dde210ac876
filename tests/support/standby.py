"""A standby for a test's own PostgreSQL server: attach, require, detach, promote."""

from __future__ import annotations

import asyncio
import os
from asyncio.subprocess import DEVNULL, PIPE
from pathlib import Path

import asyncpg

from tests.support.cluster import Cluster
from tests.support.waiting import until


class Standby(Cluster):
    """A streaming standby of a running `primary`; asynchronous until `require` is called."""

    def __init__(self, primary: Cluster, data: Path, name: str = "second") -> None:
        super().__init__(data, version=primary.version)
        self._primary = primary
        self._name = name

    @property
    def both(self) -> str:
        """One address for both servers, which leads to the one that takes writes."""
        hosts = f"127.0.0.1:{self._primary.port},127.0.0.1:{self.port}"
        return f"postgresql://postgres@{hosts}/postgres?target_session_attrs=read-write"

    async def create(self) -> None:
        """Copy the primary's current state."""
        self.data.mkdir(mode=0o700)
        if self._who:
            os.chown(self.data, self._who["user"], self._who["group"])
        process = await asyncio.create_subprocess_exec(
            self._bin / "pg_basebackup", "-D", self.data, "-d", self._source, "-R",
            "--wal-method=stream", "--checkpoint=fast",
            stdin=DEVNULL, stdout=DEVNULL, stderr=PIPE, cwd="/", **self._who,
        )  # fmt: skip
        _, said = await process.communicate()
        assert process.returncode == 0, said.decode()

    @property
    def _source(self) -> str:
        return (
            f"host=127.0.0.1 port={self._primary.port} user=postgres application_name={self._name}"
        )

    async def require(self) -> None:
        """Make the primary's COMMITs wait for this standby; return when they do."""
        await self._primary.run(f"alter system set synchronous_standby_names = '{self._name}'")
        await self._primary.run("select pg_reload_conf()")
        await self._until("sync")

    async def until_streaming(self) -> None:
        """Wait until it streams."""
        await self._until("sync", "async", "potential", "quorum")

    async def detach(self) -> None:
        """Stop streaming, as in a network failure. COMMITs that wait continue to wait."""
        await self.run("alter system set primary_conninfo = ''")
        await self.run("select pg_reload_conf()")
        await self._until("")

    async def attach(self) -> None:
        """Stream again."""
        await self.run(f"alter system set primary_conninfo = '{self._source}'")
        await self.run("select pg_reload_conf()")
        await self.until_streaming()

    async def promote(self) -> None:
        """Take writes from now on; COMMITs wait for nobody. The old primary must be stopped."""
        await self.run("alter system reset synchronous_standby_names")
        await self.run("select pg_reload_conf()")
        await self.run("select pg_promote(true, 60)")

    async def _until(self, *states: str) -> None:
        """Wait until the primary reports one of `states` for this standby; "": not connected."""
        query = "select sync_state from pg_stat_replication where application_name = $1"
        query += " and state = 'streaming'"
        connection = await asyncpg.connect(self._primary.url)
        try:

            async def reported() -> bool:
                return (await connection.fetchval(query, self._name) or "") in states

            await until(reported)
        finally:
            connection.terminate()
