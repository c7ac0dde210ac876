"""Tests signals of commits on both engines: work wakes one worker, changes reach all nodes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection

import pytest

from outbox import database
from outbox.clock import SystemClock
from outbox.database.transaction import Database, Tx
from outbox.ids import Ids
from tests.support.waiting import until

NODES = ("n1", "n2", "n3", "n4")


class Ear:
    """One node: its handle and its received signals."""

    def __init__(self, db: Database, node: str) -> None:
        self.db = db
        self.node = node
        self.woken = 0
        self.changed: list[str] = []
        self.idle = False
        db.listen(self.wake, lambda: self.node, lambda: self.idle)
        db.on_change(self.change)

    def wake(self) -> None:
        self.woken += 1

    def change(self, ids: Collection[str]) -> None:
        self.changed += sorted(ids)


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
        await until(lambda: all(ear.woken for ear in ears))
        for ear in ears:
            ear.woken = 0

        async def known() -> bool:
            await ears[0].db.write(work)
            return all(ear.woken for ear in ears)

        await until(known)
        await quiet(ears)
        for ear in ears:
            ear.woken = 0
    yield ears
    for other in others:
        await other.close()


async def quiet(ears: list[Ear]) -> None:
    """Wait until all that the first node has sent has arrived: its signals keep their order.

    The first of two may go in one message with what was sent before, in front of it.
    """
    for _ in range(2):
        await ears[0].db.write(change, "last")
        await until(lambda: all("last" in ear.changed for ear in ears))
        for ear in ears:
            ear.changed.remove("last")


async def work(tx: Tx) -> None:
    tx.wake = True
    await tx.run("update nodes set epoch = epoch + 1 where id = 'n1'")


async def change(tx: Tx, *ids: str) -> None:
    tx.changed |= set(ids)
    await tx.run("update nodes set epoch = epoch + 1 where id = 'n1'")


async def test_remaining_work_wakes_another_worker(ears: list[Ear]) -> None:
    rounds = 0

    def announced() -> bool:
        nonlocal rounds
        rounds += 1
        for _ in range(100):
            ears[0].db.announce()
        return len(ears) == 1 or any(ear.woken for ear in ears)

    await until(announced)
    await quiet(ears)
    assert ears[0].woken == 0
    # Each signal costs the server work.
    assert sum(ear.woken for ear in ears) <= 10 * rounds


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
    await until(lambda: all(ear.changed == ["w1"] for ear in ears))


async def test_a_rollback_sends_no_signal(ears: list[Ear]) -> None:
    async def failing(tx: Tx) -> None:
        await change(tx, "w1")
        await work(tx)
        raise KeyError("w1")

    with pytest.raises(KeyError):
        await ears[0].db.write(failing)
    await quiet(ears)
    assert [(ear.woken, ear.changed) for ear in ears] == [(0, [])] * len(ears)
