"""Recording results while lanes are locked and the loop has errors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import pytest

from outbox.database.transaction import Batch, Database
from outbox.errors import DatabaseUnavailable, OutcomeUnknown, OwnerElsewhere
from outbox.queue.drain.settle import Settlement
from outbox.queue.state.claimed_deliveries import Result
from outbox.queue.state.policy import again
from outbox.worker.settling import DEFERRED_SECONDS, Settling
from tests.support.clocks import Stopped
from tests.support.drain import Counted, claimed


class HeldLanes:
    """A database that settles everything except results in locked lanes."""

    one_writer = False
    batch = Batch(10_000, 1024)

    def __init__(self) -> None:
        self.observer = Counted()
        self.held: set[str] = set()
        self.settled: list[str] = []
        self.down = False
        self.moving: set[str] = set()
        """Webhooks of owners whose rows refuse each change."""
        self.silent = False
        """Whether COMMIT gets no reply."""

    async def write(self, _: Any, batch: list[Result]) -> Settlement:
        if self.down:
            raise DatabaseUnavailable("busy", "for a test")
        if any(s.delivery.webhook_id in self.moving for s in batch):
            raise OwnerElsewhere
        deferred = [s for s in batch if s.delivery.webhook_id in self.held]
        there = [s.delivery.id for s in batch if s.delivery.webhook_id not in self.held]
        done = [delivery_id for delivery_id in there if delivery_id not in self.settled]
        self.settled += done
        if self.silent:
            raise OutcomeUnknown("connection", "for a test")
        return Settlement(frozenset(done), deferred, None)


def result(delivery_id: str, webhook_id: str) -> Result:
    delivery = claimed(webhook_id, delivery_id=delivery_id)
    return Result(delivery, again("test"), None, 0, (), "http://127.0.0.1:9/", "node")


async def test_results_in_locked_lanes_do_not_postpone_earlier_ones() -> None:
    lanes, clock = HeldLanes(), Stopped()
    settling = Settling(cast(Database, lanes), clock)
    lanes.held = {"held for a moment", "busy"}
    settling.put(result("first", "held for a moment"))
    await settling.write()
    lanes.held = {"busy"}
    for n in range(10):
        clock.now += DEFERRED_SECONDS / 4
        settling.put(result(f"later-{n}", "busy"))
        await settling.write()
    assert lanes.settled == ["first"]
    lanes.held = set()
    clock.now += DEFERRED_SECONDS
    await settling.write()
    assert len(lanes.settled) == 11
    assert not settling


async def test_many_results_are_recorded_in_batches_in_their_order() -> None:
    lanes = HeldLanes()
    lanes.batch = Batch(2, 1024)
    settling = Settling(cast(Database, lanes), Stopped())
    for n in range(5):
        settling.put(result(f"r{n}", "idle"))
    lanes.down = True
    assert await settling.write() is None
    # All of them keep their slots, not only those of the batch.
    assert settling.unwritten == 5
    lanes.down = False
    assert await settling.write() == 0
    assert (lanes.settled, settling.unwritten) == (["r0", "r1"], 0)
    assert await settling.write() == 0
    assert await settling.write() == float("inf")
    assert lanes.settled == [f"r{n}" for n in range(5)]
    assert not settling


@pytest.mark.parametrize("more", [False, True])
async def test_an_owner_who_moves_holds_up_no_result_of_others(more: bool) -> None:
    """His claims are taken away, so that his results count as those of another worker."""
    lanes = HeldLanes()
    lanes.moving = {"moving"}
    settling = Settling(cast(Database, lanes), Stopped())
    for n in range(4):
        settling.put(result(f"r{n}", "moving" if n == 1 else "idle"))

    async def with_a_claim(batch: Sequence[Result]) -> Settlement:
        return await lanes.write(None, [*batch])

    assert await settling.write(with_a_claim if more else None) is not None
    assert lanes.settled == ["r0", "r2", "r3"]
    assert (settling.unwritten, settling.unstored) == (0, set())
    assert lanes.observer.counts["fenced"] == 1
