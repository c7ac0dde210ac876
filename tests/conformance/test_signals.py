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
