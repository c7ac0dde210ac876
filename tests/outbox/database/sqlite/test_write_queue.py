"""SQLite: one thread runs the write units in batches, each with a COMMIT."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from outbox import database
from outbox.clock import SystemClock
from outbox.database.sqlite import write_queue
from outbox.database.sqlite.writer import BATCH_SECONDS
from outbox.database.transaction import Database, Tx
from outbox.errors import DatabaseUnavailable
from outbox.ids import Ids
from tests.outbox.database.sqlite.units import (
    THREAD,
    Stopped,
    note,
    noted,
    watch,
)


async def test_units_run_in_the_order_of_their_calls(file: Database) -> None:
    names = [f"n{n}" for n in range(300)]
    where = await asyncio.gather(*(file.write(note, name) for name in names))
    assert set(where) == {THREAD}
    assert await file.read(noted) == names


async def test_units_of_one_iteration_share_a_commit(file: Database) -> None:
    ran: list[str] = []
    await file.write(watch, ran.append)
    ran.clear()
    await asyncio.gather(*(file.write(note, f"n{n}") for n in range(200)))
    assert ran.count("commit") == 1


async def test_a_unit_that_comes_a_little_later_joins_the_batch(file: Database) -> None:
    ran: list[str] = []
    await file.write(watch, ran.append)
    ran.clear()
    first = asyncio.ensure_future(file.write(note, "first"))
    for _ in range(write_queue.QUIET_TURNS):
        await asyncio.sleep(0)
    await asyncio.gather(first, file.write(note, "second"))
    assert ran.count("commit") == 1


async def test_units_that_keep_coming_delay_no_batch(file: Database, clock: Stopped) -> None:
    ran: list[str] = []
    await file.write(watch, ran.append)
    ran.clear()
    writes: list[asyncio.Task[str]] = []
    for n in range(200):
        writes.append(asyncio.create_task(file.write(note, f"n{n}")))
        clock.now += BATCH_SECONDS / 100
        await asyncio.sleep(0)
    await asyncio.gather(*writes)
    assert ran.count("commit") > 1


async def test_the_loop_goes_on_during_a_slow_commit(file: Database) -> None:
    begun, released = threading.Event(), threading.Event()
    ran: list[str] = []

    def hold(statement: str) -> None:
        ran.append(statement)
        if statement == "commit" and len(ran) > 1:
            begun.set()
            released.wait(30)

    # The COMMIT of this unit is the first statement.
    await file.write(watch, hold)
    first = asyncio.ensure_future(file.write(note, "first"))
    assert await asyncio.to_thread(begun.wait, 10)
    rest = [asyncio.ensure_future(file.write(note, f"n{n}")) for n in range(50)]
    for _ in range(3):
        assert await file.read(noted) == []
    assert not any(write.done() for write in (first, *rest))
    released.set()
    await asyncio.gather(first, *rest)
    assert ran.count("commit") == 3
    assert len(await file.read(noted)) == 51


async def test_a_batch_ends_with_its_time(file: Database, clock: Stopped) -> None:
    ran: list[str] = []

    async def step(tx: Tx) -> None:
        clock.now += BATCH_SECONDS / 4

    await file.write(watch, ran.append)
    ran.clear()
    await asyncio.gather(*(file.write(step) for _ in range(12)))
    assert ran.count("commit") == 3


async def test_the_unit_of_a_caller_that_left_runs_all_the_same(file: Database) -> None:
    left = asyncio.ensure_future(file.write(note, "left"))
    stays = asyncio.ensure_future(file.write(note, "stays"))
    await asyncio.sleep(0)
    left.cancel()
    await stays
    assert await file.read(noted) == ["left", "stays"]
    assert left.cancelled()


async def test_closing_finishes_what_was_accepted(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/two.db"
    db = await database.open(url, clock=SystemClock(), ids=Ids(), serving=True)

    async def table(tx: Tx) -> None:
        await tx.run("create table notes (n integer primary key, name text, text blob)")

    await db.write(table)
    writes = [asyncio.ensure_future(db.write(note, f"n{n}")) for n in range(600)]
    await asyncio.sleep(0)
    await db.close()
    assert set(await asyncio.gather(*writes)) == {THREAD}
    with pytest.raises(DatabaseUnavailable):
        await db.write(note, "late")
    assert [thread for thread in threading.enumerate() if thread.name == THREAD] == []
    db = await database.open(url, clock=SystemClock(), ids=Ids(), serving=True)
    assert await db.read(noted) == [f"n{n}" for n in range(600)]
    await db.close()


async def test_listeners_hear_of_a_commit_before_its_caller_goes_on(file: Database) -> None:
    heard: list[object] = []
    file.listen(lambda: heard.append("wake"))
    file.on_change(lambda ids: heard.append(sorted(ids)))

    async def rouse(tx: Tx, webhook_id: str, fails: bool = False) -> None:
        tx.wake = True
        tx.changed.add(webhook_id)
        if fails:
            raise ValueError(webhook_id)

    await file.write(rouse, "one")
    assert heard == [["one"], "wake"]
    heard.clear()
    with pytest.raises(ValueError):
        await file.write(rouse, "two", fails=True)
    assert heard == []
