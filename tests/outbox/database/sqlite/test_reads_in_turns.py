"""Reads of SQLite take turns by owner, and an owner of long reads leaves a thread to others."""

from contextvars import Context, copy_context
from math import inf

import pytest

from outbox.database.sqlite import threads
from outbox.database.sqlite.threads import LONG_FOR_SECONDS, LONG_SECONDS, ReadQueue
from outbox.database.sqlite.unit_thread import Job
from outbox.database.transaction import RequestBudget, patience
from tests.support.clocks import Stopped


def job(name: str) -> Job:
    """Return a read of the owner who is the first letter of the name."""

    def of_owner() -> Context:
        patience.set(RequestBudget(owner=name[0]))
        return copy_context()

    read = Job(None, (name,), {}, None, 0.0)  # type: ignore[arg-type]
    read.context = copy_context().run(of_owner)
    return read


def names(batch: list[Job]) -> str:
    return " ".join(str(one.args[0]) for one in batch)


def test_a_batch_has_one_read_of_each_owner_a_round() -> None:
    queue = ReadQueue(Stopped(), together=5)
    for name in ("a1", "a2", "a3", "a4", "b1", "c1", "c2"):
        queue.put(job(name))
    first = queue.take()
    assert names(first) == "a1 b1 c1 a2 c2"
    # What a long batch has not read keeps its turn before later reads of its owner.
    queue.give_back(first, first[3:])
    queue.put(job("c3"))
    assert names(queue.take()) == "a2 c2 a3 c3 a4"
    queue.end()
    assert queue.take() == []


@pytest.mark.parametrize(("longest", "taken"), [(LONG_SECONDS, "b1"), (inf, "b1 a2 a3")])
def test_an_owner_of_long_reads_has_one_thread(
    monkeypatch: pytest.MonkeyPatch, longest: float, taken: str
) -> None:
    monkeypatch.setattr(threads, "LONG_SECONDS", longest)
    clock = Stopped()
    queue = ReadQueue(clock)
    queue.took(job_of(queue, "a0"), LONG_SECONDS * 1.5)
    queue.put(job("a1"))
    alone = queue.take()
    for name in ("a2", "b1", "a3"):
        queue.put(job(name))
    other = queue.take()
    assert (names(alone), sorted(names(other).split())) == ("a1", sorted(taken.split()))
    if longest == inf:
        return
    # The other thread finds nothing for it until the first one is done.
    queue.give_back(other, [])
    queue.give_back(alone, [])
    alone = queue.take()
    assert names(alone) == "a2"
    queue.give_back(alone, [])
    clock.now += LONG_FOR_SECONDS * 1.1
    queue.put(job("a4"))
    assert names(queue.take()) == "a3 a4"


def job_of(queue: ReadQueue, name: str) -> Job:
    """Let a read pass through the queue."""
    queue.put(job(name))
    [read] = batch = queue.take()
    queue.give_back(batch, [])
    return read


def test_a_closing_queue_gives_all_that_waits() -> None:
    queue = ReadQueue(Stopped())
    queue.took(job_of(queue, "a0"), 1.0)
    for name in ("a1", "a2", "a3"):
        queue.put(job(name))
    queue.end()
    taken = list[Job]()
    while batch := queue.take():
        taken += batch
    assert names(taken) == "a1 a2 a3"
