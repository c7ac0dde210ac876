"""Units that only put rows off are written in groups, and one of them does not harm the others."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import asyncpg
import pytest

from outbox.database import postgres
from outbox.database.deferred import Deferred
from outbox.database.postgres import groups
from outbox.database.postgres.limits import BODY_SECONDS, REQUESTS, Limits, Times
from outbox.database.transaction import Insert, Tx
from outbox.errors import DatabaseUnavailable, OutcomeUnknown
from outbox.events import enqueue
from tests.outbox.database.postgres.conftest import Open
from tests.support.blackhole import black_hole_before
from tests.support.waiting import until

NODE = Insert("nodes", ("id", "epoch", "started_at", "alive_until"), referred=False)
MANY = 60
WAITING = """
select count(*) from pg_stat_activity
where datname = current_database() and wait_event_type = 'Lock' and wait_event = 'transactionid'
"""


async def put(tx: Tx, name: str) -> str:
    """Put a row off, with its event."""
    tx.later(NODE, (name, 1, tx.now, 0))
    enqueue(tx, owner_id="o", name="x.y", record_id=name, record_version=1, data={"n": name})
    return name


async def stored(url: str) -> tuple[list[str], int]:
    """Return the names of the rows, which are those of their events, and the transactions."""
    connection = await asyncpg.connect(url)
    try:
        rows = await connection.fetch(
            "select n.id, e.xid from nodes n full join events e on e.record_id = n.id order by n.id"
        )
    finally:
        await connection.close()
    return [row["id"] for row in rows], len({row["xid"] for row in rows})


async def test_units_at_once_share_a_few_transactions(url: str, handle: Open) -> None:
    db = await handle(url)
    wanted = [f"{number:02}" for number in range(MANY)]
    assert await asyncio.gather(*(db.write(put, name) for name in wanted)) == wanted
    found, transactions = await stored(url)
    assert found == wanted
    assert transactions == -(-MANY // groups.UNITS)


async def test_a_unit_that_is_refused_is_refused_alone(url: str, handle: Open) -> None:
    db = await handle(url)
    await db.write(put, "twice")
    wanted = [f"{number:02}" for number in range(MANY)]
    names = [*wanted[:30], "twice", *wanted[30:]]
    found = await asyncio.gather(*(db.write(put, name) for name in names), return_exceptions=True)
    assert [each for each in found if isinstance(each, str)] == wanted
    assert isinstance(found[30], asyncpg.UniqueViolationError)
    assert (await stored(url))[0] == [*wanted, "twice"]


@pytest.fixture
async def locked(url: str) -> AsyncIterator[str]:
    """Return the name of a row that another transaction writes during the test."""
    other = await asyncpg.connect(url)
    await other.execute("begin")
    await other.execute("insert into nodes values ('locked', 1, 0, 0)")
    yield "locked"
    await other.execute("rollback")
    await other.close()


async def test_a_unit_that_waits_for_a_lock_does_not_hold_up_others(
    url: str, handle: Open, locked: str
) -> None:
    """Their group gives up soon; without its limit they would wait as long as the lock is held."""
    db = await handle(url)
    await db.write(put, "first")
    waiting = asyncio.create_task(db.write(put, locked))
    await asyncio.gather(*(db.write(put, f"{number:02}") for number in range(MANY)))
    assert not waiting.done()
    waiting.cancel()
    await asyncio.wait([waiting])


async def test_a_caller_that_goes_before_its_group_writes_nothing(
    url: str, handle: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(groups, "UNITS", MANY // 4)
    db = await handle(url)
    tasks = [asyncio.create_task(db.write(put, f"{number:02}")) for number in range(MANY)]
    while not any(task.done() for task in tasks):
        await asyncio.sleep(0)
    # The first group is written, and the next on its way; the last one waits.
    tasks[-1].cancel()
    await asyncio.wait(tasks)
    assert (await stored(url))[0] == [f"{number:02}" for number in range(MANY - 1)]


async def test_a_caller_that_goes_during_its_group_harms_no_other(
    url: str, handle: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its rows are on their way with those of the others, and are written with them."""
    monkeypatch.setattr(postgres, "GROUP", Limits(lock=0, statement=0, idle=0, transaction=0))
    db = await handle(url)
    await db.write(put, "first")
    other = await asyncpg.connect(url)
    try:
        await other.execute("begin")
        await other.execute("insert into nodes values ('09', 1, 0, 0)")
        names = [f"{number:02}" for number in range(10)]
        tasks = [asyncio.create_task(db.write(put, name)) for name in names]
        await until(lambda: other.fetchval(WAITING))
        tasks[3].cancel()
        await asyncio.wait([tasks[3]])
        await other.execute("rollback")
    finally:
        await other.close()
    rest = [*tasks[:3], *tasks[4:]]
    assert await asyncio.gather(*rest) == [*names[:3], *names[4:]]
    assert (await stored(url))[0] == [*names, "first"]


@pytest.mark.usefixtures("hasty")
async def test_a_silent_server_ends_all_units(url: str, handle: Open) -> None:
    async with black_hole_before(url) as way:
        db = await handle(way.url)
        await db.write(put, "before")
        way.darken()
        found = await asyncio.gather(
            *(db.write(put, f"{number:02}") for number in range(MANY)), return_exceptions=True
        )
        way.lighten()
        await db.write(put, "later")
    unknown = {f"{n:02}" for n, each in enumerate(found) if isinstance(each, OutcomeUnknown)}
    assert all(isinstance(each, DatabaseUnavailable) for each in found)
    # What was refused is not written, not even afterwards.
    assert {"before", "later"} <= set((await stored(url))[0]) <= {"before", "later"} | unknown


def rows_of(name: str) -> Deferred:
    rows = Deferred()
    rows.add(NODE, (name, 1, 0, 0))
    return rows


async def started(queue: groups.Groups, count: int) -> list[asyncio.Task[bool]]:
    """Write units at once; return them when the first group is on its way."""
    times = REQUESTS.times(asyncio.get_running_loop().time())
    units = [asyncio.create_task(queue.write(rows_of(str(n)), times)) for n in range(count)]
    # One turn for the units, and one for the writer that the first of them starts.
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    return units


async def test_units_behind_a_group_that_fails_are_written_alone() -> None:
    """Each further group could meet a unit that waits for a lock, one after the other."""
    sizes = []

    async def write(rows: Deferred, _: Times) -> None:
        sizes.append(len(rows.rows[NODE]))
        raise asyncpg.LockNotAvailableError

    units = await started(groups.Groups(write, groups.Turns()), 3 * groups.UNITS)
    assert await asyncio.gather(*units) == [False] * len(units)
    assert sizes == [groups.UNITS]


async def test_a_group_that_does_not_end_holds_up_nobody_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As when its connection is lost without a word; the next group goes on another one."""
    monkeypatch.setattr(groups, "SLOW_SECONDS", 0.01)
    end = asyncio.Event()
    sizes = []

    async def write(rows: Deferred, _: Times) -> None:
        sizes.append(len(rows.rows[NODE]))
        if len(sizes) == 1:
            await end.wait()

    queue = groups.Groups(write, groups.Turns())
    units = await started(queue, 2 * groups.UNITS)
    first, rest = units[: groups.UNITS], units[groups.UNITS :]
    assert all(await asyncio.gather(*rest, *await started(queue, 1)))
    assert not any(unit.done() for unit in first)
    end.set()
    assert all(await asyncio.gather(*first))
    assert sum(sizes) == 2 * groups.UNITS + 1


async def test_a_unit_with_little_time_left_goes_alone() -> None:
    """The time of a group is that of its most urgent unit."""
    found: list[Times] = []

    async def write(_: Deferred, times: Times) -> None:
        found.append(times)

    now = asyncio.get_running_loop().time()
    queue, enough = groups.Groups(write, groups.Turns()), REQUESTS.times(now)
    late = REQUESTS.times(now - BODY_SECONDS + 0.5)
    units = [queue.write(rows_of(str(n)), times) for n, times in enumerate([enough, late, enough])]
    assert await asyncio.gather(*units) == [True, False, True]
    assert found == [enough]


async def test_a_cancelled_group_leaves_no_unit_without_an_answer() -> None:
    end = asyncio.Event()

    async def write(_: Deferred, __: Times) -> None:
        await end.wait()

    queue = groups.Groups(write, groups.Turns())
    units = await started(queue, groups.UNITS + 1)
    [writer] = [task for task in asyncio.all_tasks() if "_write_next" in repr(task)]
    writer.cancel()
    end.set()
    found = await asyncio.gather(*units, return_exceptions=True)
    assert found.pop() is True
    assert all(isinstance(each, OutcomeUnknown) for each in found)
