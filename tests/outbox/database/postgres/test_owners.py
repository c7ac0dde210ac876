"""One owner's writes that wait for a lock leave connections to all others."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import asyncpg

from outbox.database.transaction import Database, Patience, Tx, patience
from outbox.errors import DatabaseUnavailable
from tests.outbox.database.postgres.conftest import Open
from tests.outbox.database.postgres.units import names, put

POOL = 6


async def touch(tx: Tx, name: str) -> None:
    await tx.run("update nodes set epoch = epoch + 1 where id = $1", name)


async def write_as(db: Database, owner: str, name: str) -> None:
    patience.set(Patience(owner=owner))
    await db.write(touch, name)


async def took(db: Database, owner: str, name: str) -> float:
    """Return the seconds of a write and of a read beside it, or until one was refused."""
    began = time.monotonic()
    with suppress(DatabaseUnavailable):
        await asyncio.gather(write_as(db, owner, name), db.read(names))
    return time.monotonic() - began


@asynccontextmanager
async def locked(db: Database, url: str, owners: list[str]) -> AsyncIterator[None]:
    """Lock a row of each owner, for which many of its writes wait."""
    for name in owners:
        await db.write(put, name)
    other = await asyncpg.connect(url)
    try:
        await other.execute("begin")
        await other.execute("select 1 from nodes where id = any($1) for update", owners)
        stuck = [
            asyncio.create_task(write_as(db, owner, owner)) for owner in owners for _ in range(40)
        ]
        async with asyncio.timeout(10):
            while not await db.apart("lease").read(_some_wait):
                await asyncio.sleep(0.01)
        try:
            yield
        finally:
            await other.execute("rollback")
            await asyncio.gather(*stuck, return_exceptions=True)
    finally:
        await other.close()


async def slowest_of_others(db: Database, url: str) -> float:
    """Return the seconds of Eva's slowest write and read, while rows of Ana are locked."""
    await db.write(put, "eva")
    async with locked(db, url, ["ana"]):
        slowest = 0.0
        for _ in range(20):
            slowest = max(slowest, await took(db, "eva", "eva"))
            if slowest > 1.0:
                break
        return slowest


async def _some_wait(tx: Tx) -> bool:
    row = await tx.one("select count(*) as n from pg_stat_activity where wait_event_type = 'Lock'")
    return row is not None and row["n"] >= 1


async def test_without_places_one_owner_holds_up_all(url: str, handle: Open) -> None:
    db = await handle(url, pool_size=POOL)
    vars(db)["_writes"] = None
    assert await slowest_of_others(db, url) > 1.0
