"""SQLite: brief units run on the event loop, all others and each COMMIT on a thread."""

from __future__ import annotations

import asyncio
import functools
import sqlite3
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import closing
from contextvars import ContextVar
from pathlib import Path

import pytest

from outbox import database
from outbox.clock import SystemClock
from outbox.database.sqlite import turns
from outbox.database.sqlite.writer import BATCH_SECONDS, LONG_SECONDS
from outbox.database.transaction import Database, Insert, Tx, brief
from outbox.errors import DatabaseUnavailable
from outbox.ids import Ids

NOTES = Insert("notes", ("name", "text"))
LOOP = threading.main_thread().name
THREAD = "sqlite"


class Stopped(SystemClock):
    """A clock that only tests advance, so that no machine is too slow for them."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Stopped:
    return Stopped()


@pytest.fixture
async def file(tmp_path: Path, clock: Stopped) -> AsyncIterator[Database]:
    db = await database.open(f"sqlite:///{tmp_path}/one.db", clock=clock, ids=Ids(), serving=True)

    async def table(tx: Tx) -> None:
        await tx.run(
            "create table notes (n integer primary key, name text unique, text blob not null)"
        )

    await db.write(table)
    yield db
    await db.close()


async def long_note(tx: Tx, name: str, size: int = 1) -> str:
    await tx.run("insert into notes (name, text) values ($1, $2)", name, b"x" * size)
    return threading.current_thread().name


@brief
async def note(tx: Tx, name: str, size: int = 1) -> str:
    return await long_note(tx, name, size)


@brief
async def later(tx: Tx, name: str, text: bytes | None = b"x") -> str:
    tx.later(NOTES, (name, text))
    return threading.current_thread().name


@brief
async def wrong(tx: Tx, name: str) -> None:
    await long_note(tx, name)
    raise ValueError(name)


async def noted(tx: Tx) -> list[str]:
    return [row["name"] for row in await tx.all("select name from notes order by n")]


async def watch(tx: Tx, ran: Callable[[str], None]) -> None:
    """Call `ran` with each statement of the writer's connection."""
    tx._connection.set_trace_callback(ran)  # type: ignore[attr-defined]


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
    for _ in range(turns.QUIET_TURNS):
        await asyncio.sleep(0)
    await asyncio.gather(first, file.write(note, "second"))
    assert ran.count("commit") == 1


async def test_a_failing_unit_undoes_only_itself(file: Database) -> None:
    results = await asyncio.gather(
        file.write(note, "a"),
        file.write(wrong, "b"),
        file.write(later, "c"),
        file.write(long_note, "d"),
        file.write(wrong, "e"),
        file.write(note, "f"),
        return_exceptions=True,
    )
    assert [isinstance(result, ValueError) for result in results] == [n in (1, 4) for n in range(6)]
    assert sorted(await file.read(noted)) == ["a", "c", "d", "f"]


async def test_a_row_that_cannot_be_written_fails_its_own_unit(file: Database) -> None:
    results = await asyncio.gather(
        file.write(later, "a"),
        file.write(later, "b", None),
        file.write(note, "c"),
        return_exceptions=True,
    )
    assert isinstance(results[1], sqlite3.IntegrityError)
    assert not any(isinstance(results[n], Exception) for n in (0, 2))
    assert sorted(await file.read(noted)) == ["a", "c"]


async def test_results_of_a_transaction_that_sqlite_ended_are_computed_again(
    file: Database,
) -> None:
    @brief
    async def kill(tx: Tx) -> None:
        await tx.run("insert or rollback into notes (name, text) values ('x', null)")

    @brief
    async def seen(tx: Tx, name: str) -> bool:
        return await tx.one("select 1 from notes where name = $1", name) is not None

    results = await asyncio.gather(
        file.write(note, "a"), file.write(seen, "a"), file.write(kill), file.write(note, "b"),
        return_exceptions=True,
    )  # fmt: skip
    assert results[1] is True
    assert isinstance(results[2], sqlite3.IntegrityError)
    assert await file.read(noted) == ["a", "b"]


async def test_a_full_disk_fails_one_unit_and_no_other(file: Database) -> None:
    async def cap(tx: Tx) -> None:
        [pages] = await tx.all("pragma page_count")
        await tx.run(f"pragma max_page_count = {pages[0] + 20}")

    await file.write(cap)
    results = await asyncio.gather(
        file.write(note, "a"), file.write(note, "b", 1_000_000), file.write(note, "c"),
        return_exceptions=True,
    )  # fmt: skip
    assert isinstance(results[1], DatabaseUnavailable)
    assert results[1].kind == "full"
    assert await file.read(noted) == ["a", "c"]


@pytest.mark.parametrize("kind", ["brief", "long"])
async def test_a_lost_connection_is_opened_again(file: Database, kind: str) -> None:
    async def lose(tx: Tx) -> None:
        tx._connection.close()  # type: ignore[attr-defined]

    faults: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, fault: faults.append(fault))
    with pytest.raises(sqlite3.ProgrammingError):
        await file.write(brief(lose) if kind == "brief" else lose)
    assert faults == []
    # The thread opens it, then the loop uses it.
    assert await file.write(note, "a") == THREAD
    assert await file.write(note, "b") == LOOP


async def test_another_process_that_writes_stops_neither_the_loop_nor_a_write(
    file: Database, tmp_path: Path
) -> None:
    loop = asyncio.get_running_loop()
    with closing(sqlite3.connect(tmp_path / "one.db", isolation_level=None)) as other:
        other.execute("begin immediate")
        began = loop.time()
        writes = [asyncio.ensure_future(file.write(note, name)) for name in "ab"]
        for _ in range(20):
            assert await file.read(noted) == []
        # The loop would have waited for five seconds.
        assert loop.time() - began < 4
        assert not any(write.done() for write in writes)
        other.execute("rollback")
        assert THREAD in await asyncio.gather(*writes)
    assert await file.read(noted) == ["a", "b"]
    assert await file.write(note, "c") == LOOP


async def test_a_write_that_waited_too_long_is_refused_alone(
    file: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("outbox.database.sqlite.writer.BUSY_MILLISECONDS", 20)
    with closing(sqlite3.connect(tmp_path / "one.db", isolation_level=None)) as other:
        other.execute("begin immediate")
        with pytest.raises(DatabaseUnavailable) as refused:
            await file.write(note, "a")
        assert refused.value.kind == "busy"
        other.execute("rollback")
    await file.write(note, "b")
    assert await file.read(noted) == ["b"]


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
    rest = 2 * LONG_SECONDS * turns.REST_TIMES
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
        clock.now += turns.SLICE_SECONDS / 2
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
