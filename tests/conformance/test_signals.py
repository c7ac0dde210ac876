"""Tests signals of commits on both engines: work wakes one worker, changes reach all nodes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection

import pytest

from outbox import database
from outbox.clock import SystemClock
from outbox.database.transaction import Database, Tx
from outbox.ids import Ids

NODES = ("n1", "n2", "n3", "n4")
SECONDS = 10.0
COMMITS = 40


class Ear:
    """One node: its handle and its received signals."""

    def __init__(self, db: Database, node: str) -> None:
        self.db = db
        self.node = node
        self.woken = 0
        self.changed: list[str] = []
        self.heard = asyncio.Event()
        self.idle = False
        db.listen(self.wake, lambda: self.node, lambda: self.idle)
        db.on_change(self.change)

    def wake(self) -> None:
        self.woken += 1
        self.heard.set()

    def change(self, ids: Collection[str]) -> None:
        self.changed += sorted(ids)
        self.heard.set()


@pytest.fixture
async def ears(db: Database, db_url: str) -> AsyncIterator[list[Ear]]:
    """Yield four nodes that know each other; on SQLite one."""

    async def join(tx: Tx, names: Collection[str]) -> None:
        await tx.many(
            "insert into nodes (id, epoch, started_at, alive_until)"
            " values ($1, 1, 0, due_now() + 30000000)",
            [(name,) for name in names],
        )

    names = NODES if db.engine == "postgres" else NODES[:1]
    await db.write(join, names)
    others = [
        await database.open(db_url, clock=SystemClock(), ids=Ids(), pool_size=2) for _ in names[1:]
    ]
    ears = [Ear(handle, name) for handle, name in zip([db, *others], names, strict=True)]
    if db.engine == "postgres":
        # Each node polls once when it starts to listen, and the first lists the nodes regularly.
        await heard_by(ears)
        await known_to(ears)
        await quiet()
        for ear in ears:
            ear.woken = 0
    yield ears
    for other in others:
        await other.close()


async def heard_by(ears: list[Ear]) -> None:
    await asyncio.wait_for(asyncio.gather(*(ear.heard.wait() for ear in ears)), SECONDS)
    for ear in ears:
        ear.heard.clear()
        ear.woken = 0
        ear.changed.clear()


async def known_to(ears: list[Ear]) -> None:
    """Wait until the first node has woken each node once."""
    async with asyncio.timeout(SECONDS):
        while not all(ear.woken for ear in ears):
            await ears[0].db.write(work)
            await asyncio.sleep(0.02)


async def quiet() -> None:
    """Wait until signals in transit have arrived."""
    await asyncio.sleep(0.3)


async def woken(ears: list[Ear], wakes: int) -> None:
    async with asyncio.timeout(SECONDS):
        while sum(ear.woken for ear in ears) < wakes:
            await asyncio.sleep(0.001)


async def until(ears: list[Ear], wakes: int) -> None:
    await woken(ears, wakes)
    await quiet()


async def work(tx: Tx) -> None:
    tx.wake = True
    await tx.run("update nodes set epoch = epoch + 1 where id = 'n1'")


async def change(tx: Tx, *ids: str) -> None:
    tx.changed |= set(ids)
    await tx.run("update nodes set epoch = epoch + 1 where id = 'n1'")


async def test_a_commit_wakes_one_worker_and_a_busy_one_gives_a_part(ears: list[Ear]) -> None:
    for number in range(COMMITS):
        await ears[0].db.write(work)
        # Signals to one node that follow each other closely are merged, so each is awaited.
        await woken(ears, number + 1)
    await quiet()
    assert sum(ear.woken for ear in ears) == COMMITS
    assert any(ear.woken for ear in ears[1:]) == (len(ears) > 1)


async def test_a_process_without_a_worker_wakes_one_in_turn(ears: list[Ear], db_url: str) -> None:
    if len(ears) == 1:
        return  # on SQLite other processes get no signal
    api = await database.open(db_url, clock=SystemClock(), ids=Ids())
    api.listen(lambda: None)
    try:
        async with asyncio.timeout(SECONDS):
            # It wakes all until it knows the nodes.
            while sum(ear.woken for ear in ears) != 1:
                for ear in ears:
                    ear.woken = 0
                await api.write(work)
                await until(ears, 1)
        for number in range(1, COMMITS):
            await api.write(work)
            await woken(ears, number + 1)
        await quiet()
        assert {ear.woken for ear in ears} == {COMMITS // len(ears)}
    finally:
        await api.close()


async def test_an_idle_node_takes_what_its_process_commits(ears: list[Ear]) -> None:
    ears[0].idle = True
    for number in range(COMMITS):
        await ears[0].db.write(work)
        # At once: no signal goes through the database.
        assert ears[0].woken == number + 1
    await quiet()
    assert sum(ear.woken for ear in ears) == COMMITS


async def test_remaining_work_wakes_another_worker(ears: list[Ear]) -> None:
    for _ in range(100):
        ears[0].db.announce()
    if len(ears) > 1:
        await until(ears, 1)
    await quiet()
    assert ears[0].woken == 0
    assert sum(ear.woken for ear in ears) == (len(ears) > 1)


async def test_the_local_node_gets_a_change_before_the_write_returns(ears: list[Ear]) -> None:
    for number in range(20):
        await ears[0].db.write(change, f"w{number}")
        assert ears[0].changed[-1:] == [f"w{number}"]


@pytest.mark.timed
async def test_all_other_nodes_get_a_change_once(ears: list[Ear]) -> None:
    ids = [f"{number:024d}" for number in range(1000)]
    await ears[0].db.write(change, *ids)
    async with asyncio.timeout(1):
        while any(len(ear.changed) < len(ids) for ear in ears):
            await asyncio.sleep(0.01)
    await quiet()
    assert [sorted(ear.changed) for ear in ears] == [ids] * len(ears)


async def test_a_process_sends_its_signals_before_it_ends(ears: list[Ear], db_url: str) -> None:
    """A command beside a server behaves like this."""
    if len(ears) == 1:
        return  # on SQLite other processes get no signal
    command = await database.open(db_url, clock=SystemClock(), ids=Ids())
    await command.write(change, "w1")
    await command.close()
    async with asyncio.timeout(30):
        while any(ear.changed != ["w1"] for ear in ears):
            await asyncio.sleep(0.01)


async def test_a_rollback_sends_no_signal(ears: list[Ear]) -> None:
    async def failing(tx: Tx) -> None:
        await change(tx, "w1")
        await work(tx)
        raise KeyError("w1")

    with pytest.raises(KeyError):
        await ears[0].db.write(failing)
    await quiet()
    assert [(ear.woken, ear.changed) for ear in ears] == [(0, [])] * len(ears)


async def test_a_node_uses_its_current_name(ears: list[Ear]) -> None:
    """A node whose lease expired returns with another name."""
    if len(ears) == 1:
        ears[0].node = "other"
        await ears[0].db.write(work)
        assert ears[0].woken == 1
        return
    ears[1].node = "other"
    async with asyncio.timeout(SECONDS):
        while not all(ear.woken for ear in ears if ear is not ears[1]):
            await ears[0].db.write(work)
            await asyncio.sleep(0.02)
    await quiet()
    assert ears[1].woken == 0
