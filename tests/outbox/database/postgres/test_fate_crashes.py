"""The outcome of a COMMIT when the server stops in between, on the oldest and the newest version.

An ordinary role asks, as in an installation.
"""

from __future__ import annotations

import os
import secrets
import signal
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import asyncpg
import pytest

from outbox.clock import SystemClock
from outbox.database import open as open_database
from outbox.database.migrate import migrate
from outbox.database.postgres.commit_outcome import CommitOutcomes, Mark, mark
from outbox.database.postgres.server import Server
from outbox.errors import OutcomeUnknown
from outbox.ids import Ids
from tests.outbox.database.postgres.test_commit_outcome import begun, deadline
from tests.support.cluster import Cluster
from tests.support.databases import SOURCES
from tests.support.versions import versions
from tests.support.waiting import until

VERSIONS = versions()

pytestmark = [pytest.mark.proof, pytest.mark.parametrize("version", [min(VERSIONS), max(VERSIONS)])]


@asynccontextmanager
async def started(version: int) -> AsyncIterator[tuple[Cluster, str]]:
    """A server with a migrated database, and its address for an ordinary role."""
    with tempfile.TemporaryDirectory(prefix="carteiro-fate-") as home:
        folder = Path(home)
        folder.chmod(0o755)
        cluster = Cluster(folder / "data", version=version)
        try:
            await cluster.create()
            await cluster.start()
            url = await cluster.ordinary_url()
            db = await open_database(url, clock=SystemClock(), ids=Ids())
            await migrate(db, SOURCES)
            await db.close()
            yield cluster, url
        finally:
            await cluster.close()


async def committed(url: str, *, event: bool = False) -> Mark:
    """Commit a transaction whose reply is lost; return its mark, with its event or without."""
    ours = await asyncpg.connect(url)
    marked = await begun(ours, secrets.token_hex(12))
    await ours.execute("commit")
    ours.terminate()
    return marked if event else replace(marked, wrote=None)


async def told(url: str, marked: Mark) -> str:
    try:
        found = await CommitOutcomes(Server(url, "", "on")).committed(marked, deadline())
    except OutcomeUnknown:
        return "unknown"
    return "committed" if found else "not committed"


async def kill_one(cluster: Cluster) -> None:
    """Kill one process of the server, which ends the others and recovers under the same parent."""
    victim, beside = await asyncpg.connect(cluster.url), await asyncpg.connect(cluster.url)
    os.kill(victim.get_server_pid(), signal.SIGKILL)
    await until(lambda: victim.is_closed() and beside.is_closed())


async def test_an_id_that_another_transaction_reuses_after_a_crash(version: int) -> None:
    """An id that was only assigned is in no log, so the server assigns it again."""
    async with started(version) as (cluster, url):
        ours = await asyncpg.connect(url)
        await ours.execute("begin")
        await ours.execute("select pg_current_xact_id()")
        lost = await mark(ours)
        await kill_one(cluster)
        ours.terminate()
        assert await told(url, lost) == "not committed"
        again = await committed(url)
        while int(str(again.xid)) < int(str(lost.xid)):
            again = await committed(url)
        assert again.xid == lost.xid
        assert await told(url, lost) == "unknown"
        # Without the time of the reset the write would be reported as made.
        assert await told(url, replace(lost, reset=again.reset)) == "committed"


async def test_an_older_server_compares_the_time_of_the_reset(version: int) -> None:
    """PostgreSQL 14 does not tell it in a mark."""
    async with started(version) as (cluster, url):
        before = replace(await committed(url), reset=None)
        assert await told(url, before) == "committed"
        await kill_one(cluster)
        assert await told(url, before) == "unknown"
        assert await told(url, replace(await committed(url), reset=None)) == "committed"
