"""Tests scans: owners take turns, reads and writes continue, and cancellation ends a scan."""

import asyncio
import time

import pytest

from outbox.database.fair_limit import Crowded
from outbox.database.places import SCANS_WAITING
from outbox.database.transaction import Database, Tx

pytestmark = pytest.mark.timed

LONG = """
with recursive numbers (n) as (
  select 1 union all select n + 1 from numbers where n < 100000000)
select count(*) as n from numbers
"""
SOON = 1.0
"""Seconds; the count above takes many times that."""


async def count_long(tx: Tx) -> int:
    row = await tx.one(LONG)
    assert row is not None
    return int(row["n"])


async def quick(tx: Tx) -> int:
    row = await tx.one("select 1 as n")
    assert row is not None
    return int(row["n"])


async def at_work(db: Database, count: int) -> None:
    """Wait until `count` statements are running; on SQLite threads start them at once."""

    async def working(tx: Tx) -> bool:
        row = await tx.one(
            "select count(*) as n from pg_stat_activity"
            " where state = 'active' and query like '%with recursive%' and pid <> pg_backend_pid()"
        )
        return row is not None and row["n"] == count

    async with asyncio.timeout(30):
        while not (db.engine == "sqlite" or await db.read(working)):
            await asyncio.sleep(0.01)
    await asyncio.sleep(0.05)


@pytest.mark.slow
async def test_a_cancelled_scan_is_interrupted(db: Database) -> None:
    for _ in range(5):
        scans = [asyncio.create_task(db.scan("ana", count_long)) for _ in range(2)]
        await at_work(db, 1 if db.engine == "sqlite" else 2)
        began = time.monotonic()
        for scan in scans:
            scan.cancel()
        await asyncio.wait(scans)
        assert [scan.cancelled() for scan in scans] == [True, True]
        assert await db.scan("ana", quick) == 1
        assert time.monotonic() - began < SOON
    await at_work(db, 0)


async def test_a_cancelled_scan_leaves_the_queue(db: Database) -> None:
    ran = 0

    async def note(tx: Tx) -> None:
        nonlocal ran
        ran += 1

    running = [asyncio.create_task(db.scan("ana", count_long)) for _ in range(2)]
    await asyncio.sleep(0)
    waiting = [asyncio.create_task(db.scan("ana", note)) for _ in range(3)]
    await asyncio.sleep(0.05)
    for scan in (*waiting, *running):
        scan.cancel()
    await asyncio.wait([*waiting, *running])
    assert await db.scan("ana", quick) == 1
    assert ran == 0


async def test_a_flood_of_one_owner_leaves_a_place_for_another(db: Database) -> None:
    flood = [asyncio.create_task(db.scan("ana", count_long)) for _ in range(3)]
    await asyncio.sleep(0.05)
    try:
        began = time.monotonic()
        for _ in range(3):
            assert await db.scan("bia", quick) == 1
        assert await db.read(quick) == 1
        assert await db.write(quick) == 1
        assert time.monotonic() - began < SOON
    finally:
        for scan in flood:
            scan.cancel()
        await asyncio.wait(flood)


async def test_the_waiting_scans_of_an_owner_are_limited(db: Database) -> None:
    flood = [asyncio.create_task(db.scan("ana", count_long)) for _ in range(SCANS_WAITING + 1)]
    await asyncio.sleep(0)
    try:
        with pytest.raises(Crowded):
            async with asyncio.timeout(SOON):
                await asyncio.gather(*(db.scan("ana", quick) for _ in range(3)))
        assert await db.scan("bia", quick) == 1
    finally:
        for scan in flood:
            scan.cancel()
        await asyncio.wait(flood)
