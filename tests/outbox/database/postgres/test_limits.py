"""Every call ends within ten seconds, whatever the server does; leases bypass a full pool."""

from __future__ import annotations

import asyncio
import time

import asyncpg
import pytest

from outbox.database.transaction import Database, Tx
from outbox.errors import DatabaseUnavailable
from tests.outbox.database.postgres.conftest import Open
from tests.outbox.database.postgres.units import names, put, sleep
from tests.support.blackhole import black_hole_before

pytestmark = pytest.mark.timed

ANSWER_SECONDS = 10.0


async def refused(db: Database, name: str) -> tuple[str, float]:
    """Run a write that fails; return its fault and the seconds it took."""
    began = time.monotonic()
    with pytest.raises(DatabaseUnavailable) as caught:
        await db.write(put, name)
    return caught.value.kind, time.monotonic() - began


async def test_a_transaction_ends_whatever_its_peer_does(url: str, handle: Open) -> None:
    """The limit that also ends a session which waits for the rest of a message."""
    db = await handle(url)

    async def limit(tx: Tx) -> str:
        row = await tx.one("select current_setting('transaction_timeout') as seconds")
        assert row is not None
        return str(row["seconds"])

    assert await db.write(limit) == "9s"
    assert await db.apart("drain").write(limit) == "4s"
    assert await db.apart("lease").write(limit) == "4s"
    assert await db.apart("migration").write(limit) == "0"


@pytest.mark.slow
async def test_a_statement_that_takes_too_long(url: str, handle: Open) -> None:
    db = await handle(url)
    began = time.monotonic()
    with pytest.raises(DatabaseUnavailable):
        await db.write(sleep, 30.0)
    assert time.monotonic() - began < ANSWER_SECONDS


async def test_a_migration_has_no_time_limit(url: str, handle: Open) -> None:
    db = await handle(url)

    async def limits(tx: Tx) -> list[str]:
        found = []
        for name in (
            "lock_timeout", "statement_timeout", "idle_in_transaction_session_timeout",
        ):  # fmt: skip
            row = await tx.one("select current_setting($1) as value", name)
            assert row is not None
            found.append(row["value"])
        return found

    assert await db.apart("migration").write(limits) == ["0", "0", "0"]
    assert await db.write(limits) == ["5s", "8s", "2s"]
    assert await db.apart("drain").write(limits) == ["1s", "8s", "2s"]
    assert await db.apart("lease").read(limits) == ["1s", "8s", "2s"]


@pytest.mark.slow
async def test_a_full_pool_holds_up_neither_drain_nor_lease(url: str, handle: Open) -> None:
    db = await handle(url, pool_size=2)
    # Writes leave a connection to reads.
    full = [asyncio.create_task(run(sleep, 7.5)) for run in (db.write, db.read)]
    await asyncio.sleep(0.2)
    waiting = asyncio.create_task(refused(db, "a"))
    began = time.monotonic()
    await db.apart("drain").write(put, "b")
    await db.apart("lease").write(put, "c")
    assert time.monotonic() - began < 1
    kind, seconds = await waiting
    assert (kind, seconds < 7) == ("busy", True)
    await asyncio.gather(*full)


@pytest.mark.slow
async def test_a_silent_peer(url: str, handle: Open) -> None:
    """The peer accepts data and never replies."""
    async with black_hole_before(url) as way:
        db = await handle(way.url)
        await db.write(put, "a")
        way.darken()
        answers = await asyncio.gather(
            refused(db, "b"), refused(db, "c"), refused(db.apart("lease"), "d")
        )
        assert max(seconds for _, seconds in answers) < ANSWER_SECONDS
        way.lighten()
        await db.write(put, "e")
        assert (await db.read(names))[-1] == "e"


async def test_a_statement_with_a_stale_plan_runs_again(url: str, handle: Open) -> None:
    db = await handle(url, pool_size=2)

    async def nodes(tx: Tx) -> list[str]:
        row = await tx.one("select * from nodes where id = 'a'")
        assert row is not None
        return list(row.keys())

    await db.write(put, "a")
    before = await asyncio.gather(*(db.read(nodes) for _ in range(2)))
    beside = await asyncpg.connect(url)
    await beside.execute("alter table nodes add column colour text")
    await beside.close()
    after = await asyncio.gather(*(db.read(nodes) for _ in range(2)), db.write(nodes))
    assert after == [[*before[0], "colour"]] * 3
