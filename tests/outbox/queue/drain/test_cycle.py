"""Claim, fan-out and settle in one transaction: together they stay within one capacity."""

from __future__ import annotations

from typing import Any

import pytest

from outbox.database.transaction import Database, Tx
from outbox.events import enqueue
from outbox.queue.drain import cycle
from outbox.queue.drain.cycle import take
from outbox.queue.drain.fanout import PRECLAIMED_BYTES, fan_out
from outbox.queue.state.deliveries import Capacity
from outbox.worker.windows import MOST_BYTES
from tests.support.drain import OWNER, add_webhook, drain, inbox, make, make_many, ring, rows

NONE = Capacity("node", "none", 0, 0, 0, {}, MOST_BYTES)


def room(slots: int, windows: dict[str, int], failing: int = 0) -> Capacity:
    return Capacity("node", "claim", slots, failing, 0, windows, MOST_BYTES)


async def taken(db: Database, capacity: Capacity) -> tuple[int, int]:
    """Return how many deliveries a turn claims from lanes, and of new events."""
    fanned, claims = await db.write(take, capacity)
    ids = [delivery.id for one in claims for delivery in one.claimed]
    born = [delivery.id for delivery in fanned.claimed]
    assert len({*ids, *born}) == len(ids) + len(born)
    return len(ids), len(born)


async def waiting(db: Database, count: int) -> str:
    """Return a webhook with `count` deliveries in its lane."""
    webhook_id, _ = await add_webhook(db, ring(), "http://127.0.0.1:9/")
    await db.write(make_many, count)
    await db.write(fan_out, NONE)
    return webhook_id


async def test_what_is_new_for_an_emptied_lane_is_claimed_as_it_is_created(db: Database) -> None:
    webhook_id = await waiting(db, 2)
    await db.write(make_many, 3)
    assert await taken(db, room(8, {webhook_id: 8})) == (2, 3)


async def test_behind_a_rest_of_its_lane_nothing_new_is_claimed(db: Database) -> None:
    webhook_id = await waiting(db, 3)
    await db.write(make_many, 2)
    assert await taken(db, room(8, {webhook_id: 2})) == (2, 0)


@pytest.mark.parametrize(("slots", "window"), [(3, 8), (8, 3)])
async def test_both_together_stay_within_slots_and_window(
    db: Database, slots: int, window: int
) -> None:
    webhook_id = await waiting(db, 2)
    await db.write(make_many, 5)
    assert await taken(db, room(slots, {webhook_id: window})) == (2, 1)


async def test_an_unknown_window_is_the_first_one(db: Database) -> None:
    await waiting(db, 1)
    await db.write(make_many, 5)
    assert await taken(db, room(8, {})) == (1, 1)


async def test_a_failing_webhook_gets_one_request_and_its_share(db: Database) -> None:
    await waiting(db, 1)
    await db.write(change, "update lanes set failing = true")
    await db.write(change, "update webhooks set failures = 1")
    await db.write(make_many, 5)
    assert await taken(db, room(8, {}, failing=4)) == (1, 0)


async def test_a_large_body_is_claimed_in_the_same_turn(db: Database) -> None:
    webhook_id = await waiting(db, 0)
    await db.write(large)
    await db.write(make, "small")
    assert await taken(db, room(8, {webhook_id: 8})) == (2, 0)


@pytest.mark.parametrize("db_url", ["postgres"], indirect=True)
async def test_a_claim_that_fails_beside_results_loses_nothing_of_them(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = 0

    async def broken(tx: Tx, *args: Any) -> Any:
        nonlocal tried
        tried += 1
        raise RuntimeError("a fault of ours")

    monkeypatch.setattr(cycle, "claim", broken)
    async with inbox() as box, drain(db, ring()) as running:
        await running.webhook(box.url)
        await db.write(make, "r1")
        await running.watch.until("delivery_finished")
        [attempt] = await db.read(rows, "select outcome, status, error from attempts")
        assert [attempt[n] for n in ("outcome", "status", "error")] == ["success", 200, None]
        assert tried
        assert not running.watch.counts.get("fenced")


async def change(tx: Tx, sql: str) -> int:
    return await tx.run(sql)


async def large(tx: Tx) -> str:
    return enqueue(
        tx, owner_id=OWNER, name="thing.made", record_id="large", record_version=1,
        data={"text": "x" * PRECLAIMED_BYTES},
    )  # fmt: skip
