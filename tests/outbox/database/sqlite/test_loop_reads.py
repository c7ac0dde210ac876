"""SQLite: reads run on the event loop, and on a thread when they take more work than most."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from contextlib import closing
from math import inf
from pathlib import Path

import pytest

from outbox.database.pacing import working
from outbox.database.sqlite import loop_reads
from outbox.database.sqlite.loop_reads import HELD_SECONDS, LOOK_STEPS, MOST_LOOKS, REST_TIMES
from outbox.database.sqlite.threads import LONG_FOR_SECONDS
from outbox.database.transaction import Database, RequestBudget, Tx, patience
from outbox.errors import DatabaseUnavailable
from outbox.observer import Observer
from tests.outbox.database.sqlite.units import LOOP, THREAD, note, noted, slow
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
    for _ in range(MOST_LOOKS):
        # Each has about one look.
        assert await file.read(much, LOOK_STEPS // 10) == LOOP
    assert await file.read(much, LOOK_STEPS * MOST_LOOKS) == wide
    assert await file.read(where) == wide
    assert await asyncio.create_task(of_owner(file, "b")) == LOOP
    clock.now += LONG_FOR_SECONDS
    assert await file.read(where) == LOOP


async def test_a_read_that_takes_long_runs_again_and_the_next_ones_rest(
    file: Database, clock: Stopped
) -> None:
    assert await file.read(slow(clock, HELD_SECONDS)) == THREAD
    assert await asyncio.create_task(of_owner(file, "b")) == THREAD
    clock.now += HELD_SECONDS * 3 * REST_TIMES
    assert await file.read(where) == LOOP
    # The units that write do not rest with them.
    assert await file.write(note, "a") == LOOP


async def test_a_statement_on_a_slow_disk_is_interrupted(file: Database, clock: Stopped) -> None:
    def page_of_a_slow_disk() -> int:
        clock.now += HELD_SECONDS
        return 1

    ran: list[str] = []

    async def read(tx: Tx) -> str:
        ran.append(threading.current_thread().name)
        if ran == [LOOP]:
            connection_of(tx).create_function("page", 0, page_of_a_slow_disk)
            await tx.one(COUNT.replace("count(*)", "sum(page())"), LOOK_STEPS)
        return ran[-1]

    assert await file.read(read) == THREAD
    assert clock.now < HELD_SECONDS * LOOK_STEPS / 4


async def test_reads_beside_a_scan_are_left_to_threads(file: Database) -> None:
    began, goes_on = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    async def scan(tx: Tx) -> None:
        loop.call_soon_threadsafe(began.set)
        goes_on.wait()

    scanning = asyncio.ensure_future(file.scan("a", scan))
    await began.wait()
    beside = await file.read(where)
    goes_on.set()
    await scanning
    assert (beside, await file.read(where)) == (THREAD, LOOP)


async def test_reads_beside_a_stream_whose_rows_are_read_are_left_to_threads(
    file: Database,
) -> None:
    async def stream() -> int:
        rows = file.stream("a", COUNT.replace("count(*) as n", "n"), 100_000)
        return sum([len(batch) async for batch in rows])

    streaming, beside = asyncio.ensure_future(stream()), set[str]()
    while not streaming.done():
        beside.add(await file.read(where))
    assert (await streaming, await file.read(where)) == (100_000, LOOP)
    assert THREAD in beside


async def test_jobs_and_the_drain_read_on_threads(file: Database) -> None:
    token = working.set(True)
    job = await file.read(where)
    working.reset(token)
    assert (job, await file.read(where)) == (THREAD, LOOP)


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


async def test_after_a_fault_a_thread_reads_and_the_loop_has_a_new_connection(
    file: Database,
) -> None:
    used: list[tuple[str, sqlite3.Connection]] = []

    async def read(tx: Tx, table: str) -> None:
        used.append((threading.current_thread().name, connection_of(tx)))
        await tx.one(f"select * from {table}")

    with pytest.raises(sqlite3.OperationalError, match="no such table"):
        await file.read(read, "gone")
    await file.read(read, "notes")
    assert [thread for thread, _ in used] == [LOOP, THREAD, LOOP]
    assert used[0][1] is not used[2][1]


def connection_of(tx: Tx) -> sqlite3.Connection:
    connection: sqlite3.Connection = tx._connection  # type: ignore[attr-defined]
    return connection


async def test_each_read_is_reported_once(file: Database) -> None:
    told: list[str] = []

    class Told(Observer):
        def transaction(self, op: str, seconds: float) -> None:
            told.append(op)

    file.observer = Told()
    await file.read(where)
    await file.read(much, LOOK_STEPS * MOST_LOOKS)
    assert told == ["read", "read"]


async def test_a_closed_database_keeps_no_file_open(file: Database) -> None:
    [path] = [row["file"] for row in await file.read(files)]
    assert Path(f"{path}-wal").exists()
    await file.close()
    with pytest.raises(DatabaseUnavailable):
        await file.read(where)
    assert not Path(f"{path}-wal").exists()
