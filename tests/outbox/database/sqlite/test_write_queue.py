"""SQLite: brief units run on the event loop, all others and each COMMIT on a thread."""

from __future__ import annotations

import asyncio
import functools
import threading
from contextvars import ContextVar
from pathlib import Path

import pytest

from outbox import database
from outbox.clock import SystemClock
from outbox.database.sqlite import write_queue
from outbox.database.sqlite.writer import BATCH_SECONDS, LONG_SECONDS
from outbox.database.transaction import Database, Tx, brief
from outbox.errors import DatabaseUnavailable
from outbox.ids import Ids
from tests.outbox.database.sqlite.units import (
    LOOP,
    THREAD,
    Stopped,
    later,
    long_note,
    note,
    noted,
    watch,
)


async def test_brief_units_run_on_the_loop_and_all_others_on_the_thread(file: Database) -> None:
    assert await file.write(note, "a") == LOOP
    assert await file.write(functools.partial(note, name="b", size=9)) == LOOP
    assert await file.write(later, "c") == LOOP
    assert await file.write(long_note, "d") == THREAD
    assert await file.write(note, "e") == LOOP


async def test_commit_and_what_was_put_off_are_on_the_thread(file: Database) -> None:
    ran: dict[str, str] = {}

    def see(statement: str) -> None:
        ran[statement.split("(")[0].strip().lower()] = threading.current_thread().name

    await file.write(watch, see)
    ran.clear()
    await file.write(later, "a")
    assert ran["begin immediate"] == LOOP
    assert ran["insert into notes"] == THREAD
    assert ran["commit"] == THREAD
    ran.clear()
    await file.write(long_note, "b")
    assert set(ran.values()) == {THREAD}


async def test_units_run_in_the_order_of_their_calls(file: Database) -> None:
    names = [f"n{n}" for n in range(300)]
    where = await asyncio.gather(
        *(file.write(long_note if n % 7 == 3 else note, name) for n, name in enumerate(names))
    )
    assert set(where) == {LOOP, THREAD}
    assert await file.read(noted) == names


async def test_units_of_one_iteration_share_a_commit(file: Database) -> None:
    ran: list[str] = []
    await file.write(watch, ran.append)
    ran.clear()
    await asyncio.gather(*(file.write(note, f"n{n}") for n in range(200)))
    assert ran.count("commit") == 1


async def test_a_long_unit_joins_the_batch_of_the_units_before_it(file: Database) -> None:
    ran: list[str] = []
    await file.write(watch, ran.append)
    ran.clear()
    where = await asyncio.gather(
        file.write(note, "a"), file.write(later, "b"), file.write(long_note, "c"),
        file.write(note, "d"), file.write(long_note, "e"), file.write(later, "f"),
    )  # fmt: skip
    assert [*where] == [LOOP] * 2 + [THREAD] * 4
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


async def test_beside_a_scan_the_thread_runs_all(file: Database) -> None:
    begun, released = threading.Event(), threading.Event()

    async def look(tx: Tx) -> None:
        begun.set()
        released.wait(30)

    scan = asyncio.ensure_future(file.scan("owner", look))
    assert await asyncio.to_thread(begun.wait, 10)
    assert await file.write(note, "a") == THREAD
    released.set()
    await scan
    assert await file.write(note, "b") == LOOP


async def test_after_a_long_unit_the_thread_runs_all_for_a_while(
    file: Database, clock: Stopped
) -> None:
    @brief
    async def slow(tx: Tx) -> str:
        clock.now += 2 * LONG_SECONDS
        return threading.current_thread().name

    assert await file.write(slow) == LOOP
    rest = 2 * LONG_SECONDS * write_queue.REST_TIMES
    assert await file.write(note, "a") == THREAD
    clock.now += 0.9 * rest
    assert await file.write(note, "b") == THREAD
    clock.now += 0.1 * rest
    assert await file.write(note, "c") == LOOP


async def test_a_unit_that_takes_long_runs_again_on_the_thread(
    file: Database, clock: Stopped
) -> None:
    ran: list[str] = []

    @brief
    async def slow(tx: Tx, name: str, statements: int) -> str:
        ran.append(threading.current_thread().name)
        for n in range(statements):
            clock.now += LONG_SECONDS / 2
            await long_note(tx, f"{name}-{n}")
        return ran[-1]

    where = await asyncio.gather(
        file.write(note, "a"), file.write(slow, "b", 4), file.write(note, "c")
    )
    assert ran == [LOOP, THREAD]
    assert [*where[1:]] == [THREAD, THREAD]
    assert await file.read(noted) == ["a", "b-0", "b-1", "b-2", "b-3", "c"]


async def test_a_unit_that_only_reads_for_long_succeeds_too(file: Database, clock: Stopped) -> None:
    @brief
    async def slow(tx: Tx) -> str:
        for _ in range(3):
            clock.now += LONG_SECONDS
            await tx.all("select * from notes")
        return threading.current_thread().name

    assert await file.write(slow) == THREAD


async def test_a_long_batch_lets_the_loop_run_between_its_units(
    file: Database, clock: Stopped
) -> None:
    ran: list[str] = []

    @brief
    async def step(tx: Tx) -> None:
        clock.now += write_queue.SLICE_SECONDS / 2
        ran.append("unit")

    async def beside() -> None:
        while not done.is_set():
            ran.append("beside")
            await asyncio.sleep(0)

    done = asyncio.Event()
    other = asyncio.ensure_future(beside())
    await asyncio.gather(*(file.write(step) for _ in range(12)))
    done.set()
    await other
    runs = " ".join(ran).split("beside")
    assert max(run.split().count("unit") for run in runs) == 2
    assert ran.count("unit") == 12


async def test_a_batch_ends_with_its_time(file: Database, clock: Stopped) -> None:
    ran: list[str] = []

    @brief
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
    writes = [
        asyncio.ensure_future(db.write(long_note if n % 5 == 2 else note, f"n{n}"))
        for n in range(600)
    ]
    await asyncio.sleep(0)
    await db.close()
    assert set(await asyncio.gather(*writes)) <= {LOOP, THREAD}
    with pytest.raises(DatabaseUnavailable):
        await db.write(note, "late")
    assert [thread for thread in threading.enumerate() if thread.name == THREAD] == []
    db = await database.open(url, clock=SystemClock(), ids=Ids(), serving=True)
    assert await db.read(noted) == [f"n{n}" for n in range(600)]
    await db.close()


async def test_a_brief_unit_runs_in_the_context_of_its_caller(file: Database) -> None:
    who: ContextVar[str] = ContextVar("who", default="nobody")

    @brief
    async def ask(tx: Tx) -> str:
        return who.get()

    async def call(name: str) -> str:
        who.set(name)
        return await file.write(ask)

    answers = await asyncio.gather(*(asyncio.create_task(call(n)) for n in ("ana", "rui")))
    assert answers == ["ana", "rui"]


async def test_listeners_hear_of_a_commit_before_its_caller_goes_on(file: Database) -> None:
    heard: list[object] = []
    file.listen(lambda: heard.append("wake"))
    file.on_change(lambda ids: heard.append(sorted(ids)))

    @brief
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
