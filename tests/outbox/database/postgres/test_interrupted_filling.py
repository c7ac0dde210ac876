"""Whoever interrupts the COMMIT of a new database learns whether it took place."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import NamedTuple

import asyncpg
import pytest

from outbox.clock import SystemClock
from outbox.database import transfer_ends
from outbox.database.transaction import Tx
from outbox.database.transfer import Place
from outbox.errors import CannotStart, OutcomeUnknown
from outbox.ids import Ids
from tests.support.databases import SOURCES
from tests.support.waiting import until

pytestmark = pytest.mark.proof
HELD = 4711
HOLDING = (
    "create table held (n integer)",
    f"""create function wait_for_it() returns trigger language plpgsql as
      'begin perform pg_advisory_xact_lock({HELD}); return null; end'""",
    """create constraint trigger hold after insert on held deferrable initially deferred
      for each row execute function wait_for_it()""",
    "insert into held values (1)",
)
"""A transaction whose COMMIT waits until somebody lets go of a lock."""
WAITS = "select count(*) = 1 from pg_locks where locktype = 'advisory' and not granted"
STORED = "select to_regclass('held') is not null"


class Filling(NamedTuple):
    """A filling that waits in its COMMIT, and a session that lets go of it by `go_on`."""

    task: asyncio.Task[None]
    admin: asyncpg.Connection

    async def go_on(self) -> None:
        await self.admin.execute(f"select pg_advisory_unlock({HELD})")

    async def has_stored(self) -> bool:
        return bool(await self.admin.fetchval(STORED))


async def _hold(tx: Tx) -> None:
    for statement in HOLDING:
        await tx.run(statement)


async def _fill(url: str) -> None:
    place = Place(url, SystemClock(), Ids())
    async with transfer_ends.filling(place, SOURCES, unowned=None) as new:
        await new.run(_hold)
        await new.commit()


@asynccontextmanager
async def committing(url: str) -> AsyncIterator[Filling]:
    admin = await asyncpg.connect(url)
    await admin.execute(f"select pg_advisory_lock({HELD})")
    task = asyncio.create_task(_fill(url))
    try:
        await until(lambda: admin.fetchval(WAITS))
        yield Filling(task, admin)
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await admin.close()


async def test_an_interrupted_commit_that_takes_place_is_a_success(url: str) -> None:
    async with committing(url) as filling:
        filling.task.cancel()
        # Whoever took the commit for undone by now would be wrong.
        await asyncio.wait([filling.task], timeout=0)
        await filling.go_on()
        await filling.task
        assert await filling.has_stored()


async def test_nobody_takes_a_commit_that_is_left_for_undone(url: str) -> None:
    async with committing(url) as filling:
        filling.task.cancel()
        await asyncio.wait([filling.task], timeout=0)
        filling.task.cancel()
        with pytest.raises(OutcomeUnknown, match="look first"):
            await filling.task


async def test_an_interrupted_commit_that_fails_says_so(url: str) -> None:
    async with committing(url) as filling:
        filling.task.cancel()
        await asyncio.wait([filling.task], timeout=0)
        ended = "select pg_cancel_backend(pid) from pg_locks where objid = $1 and not granted"
        await filling.admin.fetchval(ended, HELD)
        with pytest.raises(CannotStart, match="canceling statement"):
            await filling.task
        assert not await filling.has_stored()
