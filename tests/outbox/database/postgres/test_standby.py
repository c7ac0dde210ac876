"""A synchronous standby: success means that it has the write, however the wait ended."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from pathlib import Path

import asyncpg
import pytest

from outbox.clock import SystemClock
from outbox.database.migrate import migrate
from outbox.database.postgres.snapshot import open_snapshot
from outbox.database.transaction import Database
from outbox.database.transfer import Place
from outbox.errors import DatabaseUnavailable, OutcomeUnknown
from outbox.ids import Ids
from tests.outbox.database.postgres.conftest import Open
from tests.outbox.database.postgres.units import names, put, start
from tests.support.cluster import Cluster
from tests.support.databases import SOURCES
from tests.support.long_limits import served_limits
from tests.support.standby import Standby
from tests.support.waiting import until

pytestmark = pytest.mark.proof

ANSWER_SECONDS = 10.0
BACK_SECONDS = 15.0
_WAITING = """
select pid from pg_stat_activity
where wait_event = 'SyncRep' and pid <> all(cast($1 as int[])) limit 1
"""


@asynccontextmanager
async def pair(
    limits: AbstractContextManager[None] | None = None,
) -> AsyncIterator[tuple[Cluster, Standby]]:
    """A primary and the standby that its COMMITs wait for."""
    with limits or nullcontext(), tempfile.TemporaryDirectory(prefix="carteiro-standby-") as home:
        folder = Path(home)
        folder.chmod(0o755)
        primary = Cluster(folder / "one")
        standby = Standby(primary, folder / "two")
        try:
            await primary.create()
            await primary.start()
            await standby.create()
            await standby.start()
            await standby.require()
            yield primary, standby
        finally:
            await standby.close()
            await primary.close()


async def answered(db: Database, name: str) -> tuple[str, float]:
    """Write; return the result and the seconds it took."""
    began = time.monotonic()
    try:
        await db.write(put, name)
        return "written", time.monotonic() - began
    except OutcomeUnknown:
        return "unknown", time.monotonic() - began
    except DatabaseUnavailable as error:
        return f"refused ({error.kind})", time.monotonic() - began


async def read_only(url: str) -> bool:
    connection = await asyncpg.connect(url)
    try:
        return bool(await connection.fetchval("show default_transaction_read_only") == "on")
    finally:
        await connection.close()


class Waits:
    """The sessions that wait for the standby, one at a time."""

    def __init__(self, connection: asyncpg.Connection) -> None:
        self._connection = connection
        self._seen: list[int] = []

    async def next(self) -> int:
        pid: int = await until(lambda: self._connection.fetchval(_WAITING, self._seen))
        self._seen.append(pid)
        return pid


async def test_an_interrupted_wait_is_not_a_success(handle: Open) -> None:
    async with pair(served_limits()) as (primary, standby):
        db = await handle(primary.url)
        await migrate(db, SOURCES)
        await db.write(put, "before")
        await standby.detach()
        admin = await asyncpg.connect(primary.url)
        waits = Waits(admin)
        tasks = {}
        for how in ("cancel", "terminate", "nothing"):
            tasks[how] = asyncio.create_task(answered(db, how))
            pid = await waits.next()
            if how != "nothing":
                await admin.execute(f"select pg_{how}_backend({pid})")
        answers = {how: await task for how, task in tasks.items()}
        assert {how: answer for how, (answer, _) in answers.items()} == dict.fromkeys(
            answers, "unknown"
        )
        assert max(seconds for _, seconds in answers.values()) < ANSWER_SECONDS
        # No session stays waiting: without the standby their number would grow.
        left = "select count(*) = 0 from pg_stat_activity where wait_event = 'SyncRep'"
        await until(lambda: admin.fetchval(left))
        # They are committed on the primary alone: reporting success would be wrong.
        assert len(await db.read(names)) == 4
        await admin.close()
        await primary.kill()
        await standby.promote()
        after = await handle(standby.url)
        assert await after.read(names) == ["before"]


async def test_a_crash_during_the_wait_is_not_a_success(handle: Open) -> None:
    async with pair(served_limits()) as (primary, standby):
        db = await handle(primary.url)
        await migrate(db, SOURCES)
        await standby.detach()
        admin = await asyncpg.connect(primary.url)
        asked = asyncio.create_task(answered(db, "crash"))
        await Waits(admin).next()
        admin.terminate()
        await primary.crash()
        await primary.start()
        answer, seconds = await asked
        assert (answer, seconds < ANSWER_SECONDS) == ("unknown", True)


async def test_a_standby_that_returns_in_time_makes_it_a_success(handle: Open) -> None:
    async with pair() as (primary, standby):
        db = await handle(primary.url)
        await migrate(db, SOURCES)
        await standby.detach()
        admin = await asyncpg.connect(primary.url)
        waits = Waits(admin)
        tasks = []
        for how in ("cancel", "terminate"):
            tasks.append(asyncio.create_task(answered(db, how)))
            await admin.execute(f"select pg_{how}_backend({await waits.next()})")
        await standby.attach()
        assert [(await task)[0] for task in tasks] == ["written", "written"]
        await admin.close()
        await primary.kill()
        await standby.promote()
        after = await handle(standby.url)
        assert await after.read(names) == ["cancel", "terminate"]


async def test_a_primary_that_refuses_writes_is_abandoned(handle: Open) -> None:
    """Its connections stay open and respond; only writes fail."""
    async with pair() as (primary, standby):
        db = await handle(standby.both)
        await migrate(db, SOURCES)
        assert (await answered(db, "one"))[0] == "written"
        await primary.run("alter system set default_transaction_read_only = on")
        await primary.run("select pg_reload_conf()")
        await until(lambda: read_only(primary.url))
        assert (await answered(db, "two"))[0] == "refused (read_only)"
        await standby.promote()

        async def written() -> bool:
            return (await answered(db, "two"))[0] == "written"

        await until(written, BACK_SECONDS)
        assert await db.read(names) == ["one", "two"]


async def test_a_standby_is_read_and_not_served(handle: Open) -> None:
    async with pair() as (primary, standby):
        await migrate(await handle(primary.url), SOURCES)
        assert "leads to a standby, which takes no writes" in await start(standby.url)

        async def backed_up() -> bool:
            place = Place(standby.url, SystemClock(), Ids())
            async with open_snapshot(place, {"webhooks"}) as kept:
                return bool(kept.tables)

        # It may not have applied yet what it has.
        await until(backed_up)
