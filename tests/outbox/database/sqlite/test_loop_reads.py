"""SQLite: reads run on the event loop, and on a thread when they take more work than most."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from contextlib import closing
from math import inf

import pytest

from outbox.database.sqlite import loop_reads
from outbox.database.sqlite.loop_reads import LOOK_STEPS, MOST_LOOKS, REST_TIMES
from outbox.database.sqlite.threads import LONG_FOR_SECONDS
from outbox.database.sqlite.writer import LONG_SECONDS
from outbox.database.transaction import Database, RequestBudget, Tx, patience
from outbox.errors import DatabaseUnavailable
from tests.outbox.database.sqlite.units import LOOP, THREAD, note, noted
from tests.support.clocks import Stopped

COUNT = """
with recursive numbers(n) as (values(1) union all select n + 1 from numbers where n < $1)
select count(*) as n from numbers
"""


async def where(tx: Tx) -> str:
    await tx.one("select 1")
    return threading.current_thread().name


async def much(tx: Tx, rows: int) -> str:
    """Take a few steps of SQLite's machine for each row."""
    row = await tx.one(COUNT, rows)
    assert row is not None
    assert row["n"] == rows
    return threading.current_thread().name


async def of_owner(file: Database, owner: str) -> str:
    patience.set(RequestBudget(owner=owner))
    return await file.read(where)


@pytest.mark.parametrize(("most", "wide"), [(MOST_LOOKS, THREAD), (inf, LOOP)])
async def test_a_read_of_many_steps_and_its_owner_are_left_to_threads(
    file: Database, clock: Stopped, monkeypatch: pytest.MonkeyPatch, most: float, wide: str
) -> None:
    monkeypatch.setattr(loop_reads, "MOST_LOOKS", most)
    patience.set(RequestBudget(owner="a"))
    assert await file.read(much, LOOK_STEPS // 10) == LOOP
    assert await file.read(much, LOOK_STEPS * MOST_LOOKS) == wide
    assert await file.read(where) == wide
    assert await asyncio.create_task(of_owner(file, "b")) == LOOP
    clock.now += LONG_FOR_SECONDS
    assert await file.read(where) == LOOP


async def test_a_read_that_takes_long_runs_again_and_the_next_ones_rest(
    file: Database, clock: Stopped
) -> None:
    async def slow(tx: Tx) -> str:
        for _ in range(3):
            clock.now += LONG_SECONDS
            await tx.all("select * from notes")
        return threading.current_thread().name

    assert await file.read(slow) == THREAD
    assert await asyncio.create_task(of_owner(file, "b")) == THREAD
    clock.now += LONG_SECONDS * 3 * REST_TIMES
    assert await asyncio.create_task(of_owner(file, "b")) == LOOP
    # The units that write do not rest with them.
    assert await file.write(note, "a") == LOOP


async def test_reads_beside_a_scan_are_left_to_threads(file: Database) -> None:
    began, goes_on = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    async def scan(tx: Tx) -> None:
        loop.call_soon_threadsafe(began.set)
        goes_on.wait()

    scanning = asyncio.ensure_future(file.scan("a", scan))
    await began.wait()
    assert await file.read(where) == THREAD
    goes_on.set()
    await scanning
    assert await file.read(where) == LOOP


async def test_reads_of_one_iteration_share_a_snapshot_and_later_ones_see_what_came(
    file: Database,
) -> None:
    [path] = [row["file"] for row in await file.read(files)]
    await file.write(note, "a")
    with closing(sqlite3.connect(path, isolation_level=None)) as other:

        def insert(name: str) -> None:
            other.execute("insert into notes (name, text) values (?, '')", (name,))

        loop = asyncio.get_running_loop()
        loop.call_soon(insert, "b")
        first = asyncio.ensure_future(file.read(noted))
        loop.call_soon(insert, "c")
        second = asyncio.ensure_future(file.read(noted))
        assert [await first, await second] == [["a", "b"]] * 2
        assert await file.read(noted) == ["a", "b", "c"]


async def files(tx: Tx) -> list[sqlite3.Row]:
    return await tx.all("pragma database_list")  # type: ignore[return-value]


async def test_reads_one_after_the_other_let_others_run(file: Database) -> None:
    others = 0

    def other() -> None:
        nonlocal others
        others += 1
        loop.call_soon(other)

    loop = asyncio.get_running_loop()
    loop.call_soon(other)
    for _ in range(5):
        await file.read(where)
    assert others >= 4


async def test_a_fault_of_the_connection_is_found_by_the_thread(file: Database) -> None:
    ran: list[str] = []

    async def broken(tx: Tx) -> None:
        ran.append(threading.current_thread().name)
        await tx.one("select * from gone")

    with pytest.raises(sqlite3.OperationalError, match="no such table"):
        await file.read(broken)
    assert ran == [LOOP, THREAD]
    assert await file.read(where) == LOOP


async def test_a_closed_database_reads_nothing(file: Database) -> None:
    assert await file.read(where) == LOOP
    await file.close()
    with pytest.raises(DatabaseUnavailable):
        await file.read(where)
