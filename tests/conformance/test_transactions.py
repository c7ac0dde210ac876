"""Tests the guarantees of `read` and `write` on both engines."""

import asyncio
import time
from contextvars import ContextVar
from typing import Literal

import pytest

from outbox.database.transaction import Database, Insert, Purpose, Tx
from outbox.events import Cause, cause, enqueue
from outbox.observer import Observer


class Nope(Exception):
    pass


async def add(tx: Tx, number: int, fail: bool = False) -> str:
    name = f"record {number}"
    event = enqueue(
        tx, owner_id="o", name="thing.made", record_id=name, record_version=1, data={"id": name}
    )
    await tx.run(
        "insert into nodes (id, epoch, started_at, alive_until) values ($1, $2, $3, $4)",
        name, number, tx.now, 0,
    )  # fmt: skip
    if fail:
        raise Nope(name)
    return event


async def names(tx: Tx) -> list[str]:
    return [row["id"] for row in await tx.all("select id from nodes order by epoch")]


async def events(tx: Tx) -> list[str]:
    return [row["record_id"] for row in await tx.all("select record_id from events order by pos")]


async def test_a_write_is_committed_when_it_returns(db: Database) -> None:
    await db.write(add, 1)
    assert await db.read(names) == ["record 1"]
    assert await db.read(events) == ["record 1"]


async def test_a_unit_that_raises_rolls_back_only_itself(db: Database) -> None:
    results = await asyncio.gather(
        *(db.write(add, n, fail=n % 3 == 0) for n in range(30)), return_exceptions=True
    )
    kept = [n for n in range(30) if n % 3]
    assert [n for n, result in enumerate(results) if isinstance(result, str)] == kept
    assert all(isinstance(results[n], Nope) for n in range(0, 30, 3))
    assert await db.read(names) == [f"record {n}" for n in kept]
    assert sorted(await db.read(events)) == sorted(f"record {n}" for n in kept)


async def test_only_commits_with_events_wake_listeners(db: Database) -> None:
    heard = asyncio.Event()
    db.listen(heard.set)

    async def plain(tx: Tx) -> None:
        await tx.run("insert into nodes (id, epoch, started_at, alive_until) values ('p', 1, 1, 1)")

    if db.engine == "postgres":
        # A new listener polls once for earlier events.
        await asyncio.wait_for(heard.wait(), 10)
        heard.clear()
    await db.write(plain)
    assert not heard.is_set()
    await db.write(add, 1)
    await asyncio.wait_for(heard.wait(), 10)


async def test_the_event_stores_the_origin_of_the_caller(db: Database) -> None:
    cause.set(Cause(request_id="req-7", traceparent="00-1-2-01"))
    await db.write(add, 1)

    async def kept(tx: Tx) -> tuple[str, str]:
        row = await tx.one("select request_id, traceparent from events")
        assert row is not None
        return row["request_id"], row["traceparent"]

    assert await db.read(kept) == ("req-7", "00-1-2-01")


async def test_a_unit_runs_in_the_context_of_its_caller(db: Database) -> None:
    who: ContextVar[str] = ContextVar("who", default="nobody")

    async def ask(tx: Tx) -> str:
        return who.get()

    async def call(name: str) -> str:
        who.set(name)
        return await db.write(ask) + await db.read(ask)

    answers = await asyncio.gather(*(asyncio.create_task(call(n)) for n in ("ana", "rui")))
    assert answers == ["anaana", "ruirui"]


async def test_reads_cannot_write(db: Database) -> None:
    with pytest.raises(Exception, match=r"(?i)read.?only"):
        await db.read(add, 1)
    assert await db.read(names) == []


async def test_a_read_sees_one_snapshot(db: Database) -> None:
    await db.write(add, 1)

    async def twice(tx: Tx) -> tuple[list[str], list[str]]:
        return await names(tx), await names(tx)

    readings, *_ = await asyncio.gather(
        asyncio.gather(*(db.read(twice) for _ in range(20))),
        *(db.write(add, n) for n in range(2, 60)),
    )
    assert all(first == second for first, second in readings)


FIRST = Insert(
    "first", ("id", "n"), found="select exists (select 1 from first where id = $1) as found"
)
SECOND = Insert("second", ("id",))
SUMS = Insert(
    "sums", ("key", "n"), "on conflict (key) do update set n = sums.n + excluded.n", sums=True
)


@pytest.fixture
async def tables(db: Database) -> None:
    async def make(tx: Tx) -> None:
        await tx.run("create table first (id text primary key, n integer not null)")
        await tx.run("create table second (id text primary key references first (id))")
        await tx.run("create table sums (key text primary key, n integer not null)")

    await db.write(make)


async def put_off(tx: Tx, name: str, n: int | None = 1, fails: bool = False) -> None:
    for number in range(3):
        tx.later(FIRST, (f"{name}-{number}", n))
        tx.later(SECOND, (f"{name}-{number}",))
        tx.later(SUMS, ("even" if number % 2 == 0 else "odd", 1))
    if fails:
        raise Nope(name)


async def put_off_rows(tx: Tx) -> tuple[list[str], dict[str, int]]:
    rows = await tx.all("select first.id from first join second on second.id = first.id")
    sums = await tx.all("select key, n from sums")
    return sorted(row["id"] for row in rows), {row["key"]: row["n"] for row in sums}


@pytest.mark.usefixtures("tables")
async def test_deferred_rows_are_written_with_the_unit_and_in_order(db: Database) -> None:
    await db.write(put_off, "a")
    with pytest.raises(Nope):
        await db.write(put_off, "b", fails=True)
    assert await db.read(put_off_rows) == (["a-0", "a-1", "a-2"], {"even": 2, "odd": 1})


@pytest.mark.usefixtures("tables")
async def test_statements_that_may_see_deferred_rows_find_them(db: Database) -> None:
    async def look(tx: Tx) -> list[int]:
        await put_off(tx, "a")
        seen = await tx.all("select id from first")
        changed = await tx.run("update first set n = 7 where id = 'a-0'")
        await put_off(tx, "b")
        ended = await tx.all("with ended as (select id from second) select id from ended")
        return [len(seen), changed, len(ended)]

    assert await db.write(look) == [3, 1, 6]


@pytest.mark.usefixtures("tables")
async def test_a_deferred_row_that_is_refused_fails_its_own_unit_alone(db: Database) -> None:
    async def look(tx: Tx) -> int:
        return len(await tx.all("select id from first"))

    done = await asyncio.gather(
        *(db.write(put_off, str(n), None if n == 3 else n) for n in range(6)),
        db.write(look), db.write(put_off, "6"),
        return_exceptions=True,
    )  # fmt: skip
    assert [n for n, result in enumerate(done) if isinstance(result, Exception)] == [3]
    kept, sums = await db.read(put_off_rows)
    assert kept == [f"{n}-{number}" for n in range(7) if n != 3 for number in range(3)]
    assert sums == {"even": 12, "odd": 6}


@pytest.mark.usefixtures("tables")
async def test_many_deferred_rows_of_one_unit_are_all_written(db: Database) -> None:
    async def many(tx: Tx) -> None:
        for number in range(300):
            tx.later(FIRST, (str(number), number))
            tx.later(SUMS, (str(number % 7), 1))

    async def counts(tx: Tx) -> list[int]:
        rows = await tx.all("select n from sums")
        return [len(await tx.all("select id from first")), sum(row["n"] for row in rows)]

    await db.write(many)
    assert await db.read(counts) == [300, 300]


async def test_many_returns_the_result_of_each_statement(db: Database) -> None:
    async def put(tx: Tx) -> list[str]:
        rows = await tx.many(
            "insert into nodes (id, epoch, started_at, alive_until) values ($1, $2, 0, 0)"
            " on conflict (id) do nothing returning id",
            [("a", 1), ("b", 2), ("a", 3)],
        )
        return [row["id"] for row in rows]

    assert await db.write(put) == ["a", "b"]


async def test_rows_of_one_transaction_share_an_instant(db: Database) -> None:
    async def nows(tx: Tx) -> set[int]:
        return {tx.now for _ in range(100)}

    assert len(await db.write(nows)) == 1


async def test_the_due_clock_is_close_to_the_wall_clock_and_advances(db: Database) -> None:
    async def due(tx: Tx) -> tuple[int, int]:
        row = await tx.one("select due_now() as due")
        assert row is not None
        return row["due"], tx.now

    first, wall = await db.write(due)
    second, _ = await db.write(due)
    assert abs(first - wall) < 60_000_000
    assert second >= first


async def test_a_cancelled_caller_leaves_the_database_usable(db: Database) -> None:
    task = asyncio.create_task(db.write(add, 1))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await db.write(add, 2)
    assert (await db.read(names))[-1] == "record 2"


class Timings(Observer):
    """An observer that records its calls."""

    def __init__(self) -> None:
        self.told: list[tuple[str, float]] = []

    def transaction(self, op: Literal["read", "write"], seconds: float) -> None:
        self.told.append((op, seconds))


async def test_each_unit_is_timed_once_from_call_to_result(db: Database) -> None:
    db.observer = timings = Timings()
    began = db.clock.monotonic()
    await asyncio.gather(
        *(db.write(add, n, fail=n == 3) for n in range(8)), db.read(names), db.scan("ana", names),
        return_exceptions=True,
    )  # fmt: skip
    await db.apart("drain").write(add, 9)
    took = db.clock.monotonic() - began
    assert sorted(op for op, _ in timings.told) == ["read"] * 2 + ["write"] * 9
    assert all(0 < seconds <= took for _, seconds in timings.told)


async def test_waiting_is_part_of_the_time(db: Database) -> None:
    """A unit waits for another on the same row, or behind it in the queue."""
    db.observer = timings = Timings()
    await db.write(add, 1)

    async def slow(tx: Tx) -> None:
        await tx.run("update nodes set epoch = 2 where id = 'record 1'")
        time.sleep(0.1)

    await asyncio.gather(db.write(slow), db.write(slow))
    first, second = sorted(seconds for _, seconds in timings.told[1:])
    assert first >= 0.1
    assert second >= 0.2


async def test_a_separate_handle_uses_the_same_database(db: Database) -> None:
    purposes: tuple[Purpose, ...] = ("drain", "lease", "migration")
    for number, purpose in enumerate(purposes):
        await db.apart(purpose).write(add, number)
    assert db.apart("drain") is db.apart("drain")
    assert await db.read(names) == [f"record {n}" for n in range(3)]
