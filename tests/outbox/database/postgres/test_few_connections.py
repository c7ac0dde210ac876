"""Fewer connections than the pools want: units wait for an open one, and nobody is refused."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count

import asyncpg
import pytest
from structlog.testing import capture_logs

from outbox.database.postgres import room
from outbox.database.transaction import Database, Tx
from outbox.errors import DatabaseUnavailable
from tests.outbox.database.postgres.conftest import Open
from tests.outbox.database.postgres.units import names, put
from tests.outbox.database.test_leadership import QUICK
from tests.support.databases import PostgresServer, with_role
from tests.support.long_limits import served_limits
from tests.support.waiting import until

REQUESTS = 270
_numbers = count(1)


class Limited:
    """A migrated database, and a role that may have few connections to it."""

    def __init__(self, admin: str) -> None:
        self.admin = admin
        self.role = f"few_{os.getpid()}_{next(_numbers)}"
        self.url = with_role(admin, self.role)

    async def run(self, statement: str) -> int:
        """Run a statement as an administrator; return the first value, if there is one."""
        connection = await asyncpg.connect(self.admin)
        try:
            return await connection.fetchval(statement) or 0
        finally:
            await connection.close()

    async def allow(self, connections: int) -> None:
        await self.run(f"alter role {self.role} connection limit {connections}")


@pytest.fixture
async def limited(postgres_server: PostgresServer) -> AsyncIterator[Limited]:
    limited = Limited(await postgres_server.fresh())
    await limited.run(f"create role {limited.role} login password '{limited.role}'")
    for what in ("tables", "sequences"):
        await limited.run(f"grant all on all {what} in schema public to {limited.role}")
    yield limited
    await postgres_server.drop(limited.admin)
    server = await asyncpg.connect(await postgres_server.url())
    await server.execute(f"drop role {limited.role}")
    await server.close()


async def answered(db: Database, requests: int, first: int = 0) -> int:
    """Send requests at once, reads and writes in turn; return how many are refused."""

    async def slow_put(tx: Tx, name: str) -> None:
        await put(tx, name)
        await tx.one("select pg_sleep(0.002)")

    sent = [
        db.write(slow_put, f"{n:04}") if n % 2 else db.read(names)
        for n in range(first, first + requests)
    ]
    results = await asyncio.gather(*sent, return_exceptions=True)
    for one in results:
        if isinstance(one, BaseException) and not isinstance(one, DatabaseUnavailable):
            raise one
    return sum(isinstance(one, DatabaseUnavailable) for one in results)


async def streamed(db: Database) -> int:
    return sum([len(rows) async for rows in db.stream("o", "select id from nodes")])


@asynccontextmanager
async def node(db: Database) -> AsyncIterator[None]:
    """Take what a node takes besides its requests."""
    leadership = db.leadership(QUICK)
    leadership.start()
    loose = db.listen(lambda: None, lambda: "n1")
    try:
        yield
        # Whoever has no connection gets one of those that have several.
        await until(lambda: leadership.leads and db.moves_epoch)
        for purpose in ("lease", "drain"):
            await db.apart(purpose).read(names)
    finally:
        loose()
        await leadership.stop()


@pytest.mark.parametrize("allowed", [10, 8, 6])
async def test_no_request_is_refused(limited: Limited, handle: Open, allowed: int) -> None:
    await limited.allow(allowed)
    with served_limits(), capture_logs() as lines:
        db = await handle(limited.url)
        async with node(db):
            assert await answered(db, REQUESTS) == 0
            # On a connection of its own, although all are open.
            assert await streamed(db) == REQUESTS // 2
    said = [line for line in lines if line["event"] == "connection_refused"]
    assert [line["error"] for line in said] == [f'too many connections for role "{limited.role}"']
    await db.close()


async def test_it_takes_more_once_it_can(
    limited: Limited, handle: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(room, "REST_SECONDS", 0.02)
    await limited.allow(4)
    db = await handle(limited.url)
    assert await answered(db, 60) == 0
    assert db.census()["unopened"] > 0
    await limited.allow(-1)
    first = 60

    async def has_all() -> bool:
        nonlocal first
        assert await answered(db, 60, first) == 0
        first += 60
        return not db.census()["unopened"]

    await until(has_all)


async def test_none_at_all_and_then_one(
    limited: Limited, handle: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others have all of them; the line says what the server says, and the next one is taken."""
    db = await handle(limited.url)
    await limited.allow(1)
    await limited.run(
        f"select count(pg_terminate_backend(pid)) from pg_stat_activity"
        f" where usename = '{limited.role}'"
    )
    other = await asyncpg.connect(limited.url)
    waits = asyncio.create_task(db.read(names))
    await until(lambda: db._units._room.refusal)  # type: ignore[attr-defined]
    assert not waits.done()
    await other.close()
    assert await waits == []
    await db.close()
