"""One owner's writes that wait for a lock leave connections to all others."""

from __future__ import annotations

import asyncio

import asyncpg

from outbox.database.transaction import Database, RequestBudget, Tx, patience
from tests.outbox.database.postgres.conftest import Open
from tests.outbox.database.postgres.units import names, put
from tests.support.waiting import until

POOL = 6


async def touch(tx: Tx, name: str) -> None:
    await tx.run("update nodes set epoch = epoch + 1 where id = $1", name)


async def write_as(db: Database, owner: str, name: str) -> None:
    patience.set(RequestBudget(owner=owner))
    await db.write(touch, name)


async def _some_wait(tx: Tx) -> bool:
    row = await tx.one(
        "select count(*) as n from pg_stat_activity where wait_event_type = 'Lock'"
        " and datname = current_database()"
    )
    return row is not None and row["n"] >= 1


async def test_the_locks_of_one_owner_do_not_hold_up_another(url: str, handle: Open) -> None:
    """Ana's writes wait for a lock that nobody gives back before all of Eva's have ended."""
    db = await handle(url, pool_size=POOL)
    for name in ("ana", "eva"):
        await db.write(put, name)
    other = await asyncpg.connect(url)
    await other.execute("begin")
    await other.execute("select 1 from nodes where id = 'ana' for update")
    stuck = [asyncio.create_task(write_as(db, "ana", "ana")) for _ in range(40)]
    try:
        await until(lambda: db.apart("lease").read(_some_wait))
        for _ in range(20):
            await asyncio.gather(write_as(db, "eva", "eva"), db.read(names))
        assert not any(task.done() for task in stuck)
    finally:
        await other.close()
        await asyncio.gather(*stuck, return_exceptions=True)
