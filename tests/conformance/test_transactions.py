"""Tests the guarantees of `read` and `write` on both engines."""

import asyncio

import pytest

from outbox.database.transaction import Database, Insert, Tx
from outbox.events import enqueue


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
        await heard.wait()
        heard.clear()
    await db.write(plain)
    assert not heard.is_set()
    await db.write(add, 1)
    await heard.wait()


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
