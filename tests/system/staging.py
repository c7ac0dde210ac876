"""Shared parts of runs against the engine alone: a database, waits, a backlog."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from outbox import database
from outbox.clock import SystemClock
from outbox.database.transaction import Database, Tx
from outbox.ids import Ids
from tests.support.databases import SqliteFiles
from tests.support.engines import SERVER, Engine

_FILES = SqliteFiles()

# Deliveries of origin `event` are one per webhook and event; with replays one event is enough.
BACKLOG = """
insert into deliveries
  (id, owner_id, event_id, webhook_id, origin, state, retry, next_at, tries, attempts, record_id,
   seq, created_at)
with recursive number(n) as (select 1 union all select n + 1 from number where n < $3)
select /*sqlite lower(hex(randomblob(12)))*/ /*postgres substr(md5(random()::text), 1, 24)*/,
  owner_id, $2, id, 'replay', 'ready', cast($4 as bigint) > 0,
  due_now() + cast($4 as bigint) - $3 + n, 0, 0, 'record', 0, created_at
from webhooks, number where id = $1
"""
WAKE = "update lanes set due_at = due_now() + cast($2 as bigint) where webhook_id = $1"


@asynccontextmanager
async def address(engine: Engine, role: str = "") -> AsyncIterator[str]:
    """Return the address of a migrated, empty database that exists during the block.

    On PostgreSQL it belongs to `role`.
    """
    if engine == "sqlite":
        with tempfile.TemporaryDirectory(prefix="carteiro-run-") as name:
            yield await _FILES.fresh(Path(name))
        return
    url = await SERVER.fresh(role)
    try:
        yield url
    finally:
        await SERVER.drop(url)


@asynccontextmanager
async def opened(engine: Engine) -> AsyncIterator[Database]:
    """Open such a database once."""
    async with address(engine) as url, several(url, 1) as [db]:
        yield db


@asynccontextmanager
async def several(url: str, count: int) -> AsyncIterator[list[Database]]:
    """Open the database at `url` `count` times, as from several processes."""
    async with AsyncExitStack() as open_ones:
        databases = []
        for _ in range(count):
            db = await database.open(url, clock=SystemClock(), ids=Ids(), serving=True)
            open_ones.push_async_callback(db.close)
            databases.append(db)
        yield databases


async def pile_up(
    tx: Tx, webhook_ids: Sequence[str], event_id: str, count: int, *, later: int = 0
) -> None:
    """Insert `count` deliveries of one event for each webhook.

    They are due, or with `later` retries that are due in so many microseconds.
    """
    for webhook_id in webhook_ids:
        await tx.run(BACKLOG, webhook_id, event_id, count, later)
        await tx.run(WAKE, webhook_id, later)
