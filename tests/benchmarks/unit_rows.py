"""What the benchmark of units needs: a database, rows, and a unit's time."""

from __future__ import annotations

import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from outbox import database, webhooks
from outbox.clock import SystemClock
from outbox.database.migrate import migrate
from outbox.database.transaction import Database, Tx
from outbox.events import enqueue
from outbox.ids import Ids
from outbox.queue.drain import cycle
from outbox.queue.state.deliveries import Capacity
from outbox.sending.request import new_secret
from outbox.webhooks import Draft
from tests.support.databases import SOURCES
from tests.support.drain import OWNER, ring

KEY = ring()


@asynccontextmanager
async def opened() -> AsyncIterator[Database]:
    with tempfile.TemporaryDirectory(prefix="carteiro-bench-") as folder:
        url = f"sqlite:///{Path(folder) / 'carteiro.db'}"
        db = await database.open(url, clock=SystemClock(), ids=Ids(), serving=True)
        try:
            await migrate(db, [SOURCES[0]])
            yield db
        finally:
            await db.close()


def capacity(slots: int = 0) -> Capacity:
    return Capacity("node", "claim", slots, slots, slots, {}, 2**30)


async def timed(tx: Tx, unit: Callable[..., Awaitable[Any]], *args: Any) -> tuple[Any, float]:
    """Run a unit; return its result and the seconds of its thread."""
    began = time.thread_time()
    result = await unit(tx, *args)
    return result, time.thread_time() - began


async def add(db: Database, count: int, owner: str = OWNER, **options: Any) -> list[str]:
    async def some(tx: Tx, number: int) -> list[str]:
        draft = Draft(url="http://127.0.0.1:9/", events=("thing.made",), **options)
        return [
            await webhooks.create(
                tx, owner_id=owner, draft=draft, secret=new_secret(b"s" * 32), ring=KEY
            )
            for _ in range(number)
        ]

    return [
        one
        for first in range(0, count, 500)
        for one in await db.write(some, min(500, count - first))
    ]


async def make(db: Database, count: int, data: Any = None, owner: str = OWNER) -> list[str]:
    async def some(tx: Tx) -> list[str]:
        return [
            enqueue(
                tx, owner_id=owner, name="thing.made", record_id=f"r{n}", record_version=1,
                data=data or {"id": n},
            )
            for n in range(count)
        ]  # fmt: skip

    return await db.write(some)


async def rounds(db: Database, most: int = 10_000) -> list[float]:
    """Fan out whatever there is; return the seconds of each unit."""
    found: list[float] = []
    while len(found) < most:
        (fanned, _), seconds = await db.write(timed, cycle.take, capacity())
        found.append(seconds)
        if not fanned.more:
            break
    return found
