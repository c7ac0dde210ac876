"""Duties of the installation: one run per period over all nodes, with any change of leader."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import pairwise

import pytest
from structlog.testing import capture_logs

from outbox import database
from outbox.clock import SystemClock
from outbox.database.leadership import Alone, Leadership
from outbox.database.transaction import Database, Tx
from outbox.errors import DatabaseUnavailable
from outbox.ids import Ids
from outbox.queue.upkeep import pause_mark
from outbox.worker.duties import Duties, marks_now
from outbox.worker.scheduler import Scheduler
from tests.outbox.database.test_leadership import QUICK, end_session, leaders, the_one
from tests.support.waiting import until

POSTGRES = pytest.mark.parametrize("db_url", ["postgres"], indirect=True)
LOOK = 0.1
PERIOD = 1.0
SHORTEST = PERIOD * 0.9
RUNS = "create table runs (node bigint not null, at bigint not null)"


@dataclass
class Node:
    """One process of an installation, for duties only."""

    db: Database
    leadership: Leadership
    duties: Duties
    scheduler: Scheduler


async def _note(tx: Tx, number: int) -> None:
    """Note a run with the time of its start: how long a node takes to note it says nothing."""
    await tx.run(
        "insert into runs (node, at) select $1, began_at from duties where name = 'note'", number
    )


async def _noted(tx: Tx) -> list[tuple[int, int]]:
    return [(row["node"], row["at"]) for row in await tx.all("select * from runs order by at")]


@asynccontextmanager
async def installation(url: str, count: int) -> AsyncIterator[list[Node]]:
    """Start nodes whose one duty records the node and the start of the run, once in PERIOD."""
    nodes: list[Node] = []
    try:
        for number in range(count):
            db = await database.open(url, clock=SystemClock(), ids=Ids())
            if not number:
                await db.write(lambda tx: tx.run(RUNS))
            leadership = db.leadership(QUICK)
            duties = Duties(db, leadership, LOOK)
            scheduler = Scheduler(db.clock)
            nodes.append(Node(db, leadership, duties, scheduler))

            async def note(db: Database = db, number: int = number) -> None:
                await db.write(_note, number)

            duties.once_every(PERIOD, "note", note)
            duties.start()
            # Nodes look at different moments.
            scheduler.every(0.5 + number * 0.03, "duties", duties.look)
            scheduler.start()
        yield nodes
    finally:
        for node in nodes:
            node.scheduler.stop()
            await node.duties.stop()
            await node.db.close()


async def runs_of(node: Node, count: int, but: int = -1) -> list[tuple[int, int]]:
    """Return the recorded runs once there are `count` of them of other nodes than `but`."""

    async def enough() -> list[tuple[int, int]]:
        runs = await node.db.read(_noted)
        return runs if sum(number != but for number, _ in runs) >= count else []

    return await until(enough)


def one_per_period(runs: list[tuple[int, int]]) -> None:
    gaps = [(b - a) / 1e6 for (_, a), (_, b) in pairwise(runs)]
    assert all(gap >= SHORTEST for gap in gaps), gaps


@pytest.mark.proof
@POSTGRES
async def test_each_period_has_one_run_while_leaders_come_and_go(db_url: str) -> None:
    async with installation(db_url, 4) as nodes:
        standing = [node.leadership for node in nodes]
        await runs_of(nodes[0], 1)
        first = await the_one(standing)
        await end_session(db_url)
        await until(lambda: leaders(standing) != [first])
        await runs_of(nodes[0], 2)
        second = await the_one(standing)
        await standing[second].stop()
        before = [number for number, _ in await nodes[0].db.read(_noted)]
        count = len(before) - before.count(second) + 1
        one_per_period(await runs_of(nodes[0], count, but=second))


@POSTGRES
async def test_nodes_that_all_believe_they_lead_still_run_it_once(db_url: str) -> None:
    """The table decides; the lock only saves the others the query."""
    handles = [await database.open(db_url, clock=SystemClock(), ids=Ids()) for _ in range(4)]
    runs = 0

    async def count() -> None:
        nonlocal runs
        runs += 1

    everybody = [Duties(db, Alone(), LOOK) for db in handles]
    for duties in everybody:
        duties.once_every(3600, "count", count)
    for _ in range(5):
        await asyncio.gather(*(duties.look() for duties in everybody))
        await asyncio.gather(*(duties.idle() for duties in everybody))
    assert runs == 1
    for db in handles:
        await db.close()


class Part(Alone):
    """A leadership that a test controls."""

    leads = True
    settled = True


def duties_of(db: Database, seconds: float, run: Callable[[], Awaitable[None]]) -> Duties:
    duties = Duties(db, Part(), LOOK)
    duties.once_every(seconds, "it", run)
    return duties


async def test_a_duty_that_failed_is_tried_again_long_before_its_period(db: Database) -> None:
    tries = 0

    async def twice() -> None:
        nonlocal tries
        tries += 1
        if tries == 1:
            raise DatabaseUnavailable("connection", "away")
        if tries == 2:
            raise RuntimeError("a fault of ours")

    duties = duties_of(db, 3600, twice)

    async def tried() -> bool:
        await duties.look()
        await duties.idle()
        return tries == 3

    await until(tried)
    await tried()
    assert tries == 3


async def test_a_run_whose_node_died_in_the_middle_is_run_by_the_next_leader(db: Database) -> None:
    async def die() -> None:
        await asyncio.Event().wait()

    first = duties_of(db, 3600, die)
    await first.look()

    async def begun() -> bool:
        return bool((await db.read(marks_now))[0])

    await until(begun)
    await first.stop()
    runs = 0

    async def run() -> None:
        nonlocal runs
        runs += 1

    second = duties_of(db, 3600, run)
    # Until it has led for a while, the former leader may still run the duty.
    second.leadership.settled = False  # type: ignore[misc] # Part's own
    await second.look()
    await second.idle()
    assert runs == 0
    second.leadership.settled = True  # type: ignore[misc] # as above
    for _ in range(2):
        await second.look()
        await second.idle()
    assert runs == 1


async def test_a_duty_is_cut_off_when_its_node_stops_leading(db: Database) -> None:
    cut = asyncio.Event()
    begun = asyncio.Event()

    async def long() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            cut.set()

    duties = duties_of(db, 3600, long)
    await duties.look()
    await begun.wait()
    duties.leadership.leads = False  # type: ignore[misc] # Part's own
    await duties.look()
    await cut.wait()
    await duties.stop()


async def test_duties_that_have_stopped_are_stopped_and_started_again(db: Database) -> None:
    """So it is in a process that rests when its node ends, or that gets the work again."""
    ran = asyncio.Event()

    async def work() -> None:
        ran.set()

    async def needed() -> bool:
        return True

    duties = Duties(db, Alone(), 3600)
    duties.when(needed, "work", work, "changed")
    await duties.stop()
    for times in (1, 2, 1):
        ran.clear()
        # A supervisor that got no answer in time tells it again.
        for _ in range(times):
            duties.start()
        await db.write(_change)
        await ran.wait()
        await duties.stop()
        await duties.stop()


async def _change(tx: Tx) -> None:
    tx.changed.add("changed")


async def test_a_duty_that_is_woken_runs_at_once_and_once_more_if_it_runs(db: Database) -> None:
    begun, go_on = asyncio.Semaphore(0), asyncio.Semaphore(0)

    async def work() -> None:
        begun.release()
        await go_on.acquire()

    async def needed() -> bool:
        return True

    leadership = Alone()
    duties = Duties(db, leadership, 3600)
    duties.when(needed, "work", work)
    duties.wake("work")
    leadership.start()
    # A node that does not lead leaves it to the one that does.
    assert duties.names == ["work"]
    assert begun.locked()
    for _ in range(2):
        duties.wake("work")
        await begun.acquire()
        # Woken in the middle of its run: it may have looked already.
        duties.wake("work")
        duties.wake("work")
        go_on.release()
        await begun.acquire()
        go_on.release()
        await duties.idle()
    assert begun.locked()
    await duties.stop()


async def test_what_others_notice_rests_in_a_paused_database_until_it_is_resumed(
    db: Database,
) -> None:
    runs: list[str] = []

    async def needed() -> bool:
        return True

    def noting(name: str) -> Callable[[], Awaitable[None]]:
        async def note() -> None:
            runs.append(name)

        return note

    duties = Duties(db, Part(), 3600)
    duties.once_every(3600, "sweep", noting("sweep"), pausable=True)
    duties.when(needed, "mails", noting("mails"), "mail", pausable=True)
    duties.once_every(3600, "purge", noting("purge"))
    await db.write(pause_mark.pause)
    with capture_logs() as lines:
        for _ in range(2):
            # Not even when a commit wakes it.
            duties.wake("mails")
            await duties.look()
            await duties.idle()
        assert runs == ["purge"]
        assert await db.write(pause_mark.resume)
        assert not await db.write(pause_mark.resume)
        await duties.look()
        # The look of the wake may be the one that begins it.
        await until(lambda: len(runs) == 3)
    assert sorted(runs) == ["mails", "purge", "sweep"]
    assert [(line["event"], line["duties"]) for line in lines] == [
        ("database_paused", ["sweep", "mails"]), ("database_resumed", ["sweep", "mails"]),
    ]  # fmt: skip
    await duties.stop()
