"""Fan-out: the size of a round, the order inside a lane, and which events are older."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import pytest

from outbox import webhooks
from outbox.database.transaction import Database, Tx
from outbox.queue.drain.fanout import FannedOut, fan_out
from outbox.queue.state import lanes
from outbox.queue.state.claimed_deliveries import Capacity
from outbox.queue.state.creation_snapshots import forget_since
from outbox.queue.upkeep import owner_moves
from outbox.sending.request import new_secret
from outbox.webhooks import Draft
from tests.support.drain import (
    OWNER,
    add_webhook,
    all_forgotten,
    drain,
    inbox,
    make,
    ring,
    rows,
    run,
)
from tests.support.lines import NONE, URL, fanned, lane_locked
from tests.support.waiting import until

ALL = Capacity("node", "claim-1", 256, 64, 16, {}, 1_000_000)

POSTGRES = pytest.mark.parametrize("db_url", ["postgres"], indirect=True)


async def test_a_damaged_subscription_makes_a_dead_delivery_with_a_reason(db: Database) -> None:
    broken, _ = await add_webhook(db, ring(), URL)
    fine, _ = await add_webhook(db, ring(), URL)
    await db.write(run, "update webhooks set events = '5' where id = $1", broken)
    await db.write(make, "r")
    done = await db.write(fan_out, ALL)
    assert [delivery.webhook_id for delivery in done.claimed] == [fine]
    assert done.dead == [broken]
    [row] = await db.read(rows, "select * from deliveries where webhook_id = $1", broken)
    assert (row["state"], row["attempts"]) == ("dead", 0)
    assert "list of events is damaged" in row["reason"]
    assert row["finished_at"]
    [shown, _] = sorted(await db.read(webhooks.listed, OWNER), key=lambda w: w.id != broken)
    assert shown.events == ()


async def create(tx: Tx) -> str:
    return await webhooks.create(
        tx, owner_id=OWNER, draft=Draft(url=URL, events=("thing.made",)),
        secret=new_secret(b"s" * 32), ring=ring(),
    )  # fmt: skip


@POSTGRES
async def test_events_committed_after_a_webhook_reach_it_at_any_position(db: Database) -> None:
    began, go_on = asyncio.Event(), asyncio.Event()

    async def slow(tx: Tx) -> None:
        """Take a position in `events` first, and commit last."""
        await tx.run(
            """
            insert into events (id, owner_id, name, record_id, record_version, occurred_at, body,
              body_digest) values ($1, $2, 'thing.made', 'slow', 1, $3, '{}', '')
            """,
            tx.new_id(), OWNER, tx.now,
        )  # fmt: skip
        began.set()
        await go_on.wait()

    under_way = asyncio.create_task(db.write(slow))
    await began.wait()
    await db.write(make, "before")
    webhook_id = await db.write(create)
    await db.write(make, "after")
    # The gap is still open: events older than the webhook do not reach it, newer ones do.
    await fanned(db)
    assert await reached(db, webhook_id) == {"after"}
    await db.write(forget_since)
    assert (await db.read(rows, "select since_snapshot from webhooks"))[0]["since_snapshot"]
    go_on.set()
    await under_way
    await fanned(db)
    assert await reached(db, webhook_id) == {"slow", "after"}
    await until(lambda: all_forgotten(db))


async def reached(db: Database, webhook_id: str) -> set[str]:
    deliveries = await db.read(
        rows, "select record_id from deliveries where webhook_id = $1", webhook_id
    )
    return {row["record_id"] for row in deliveries}


@POSTGRES
async def test_fan_out_waits_for_no_lane(db: Database) -> None:
    held, _ = await add_webhook(db, ring(), URL)
    free, _ = await add_webhook(db, ring(), URL)
    async with lane_locked(db, held):
        await db.write(make, "r")
        done = await db.write(fan_out, NONE)
        assert done.noted
        assert await db.write(lanes.wake_noted), "it is still held"
        assert not await db.read(owner_moves.is_fanned_out, OWNER), "a move waits for the note"
        due = {r["webhook_id"]: r["due_at"] for r in await db.read(rows, "select * from lanes")}
        assert due[free]
        assert due[held] is None
    assert not await db.write(lanes.wake_noted)
    due = {r["webhook_id"]: r["due_at"] for r in await db.read(rows, "select * from lanes")}
    assert due[held]
    assert await db.read(rows, "select * from wakes") == []
    assert await db.read(owner_moves.is_fanned_out, OWNER)


@POSTGRES
async def test_any_node_handles_the_notes_of_a_dead_node(db: Database) -> None:
    key = ring()
    async with inbox() as box, drain(db, key) as running:
        webhook_id, _ = await add_webhook(db, key, box.url)
        await db.write(make, "first")
        await box.until(1)
        await running.watch.until("delivery_finished", 1)
        for number in range(3):
            await _noted_by_a_stranger(db, webhook_id)
            await box.until(2 + number)


class _TurnedAway(Exception):
    """Another node is fanning out."""


async def _noted_by_a_stranger(db: Database, webhook_id: str) -> None:
    """Fan out an event to a locked lane; the node does nothing more about it."""
    locked, go_on = asyncio.Event(), asyncio.Event()

    async def hold(tx: Tx) -> None:
        await lanes.lock(tx, [webhook_id])
        locked.set()
        await go_on.wait()

    async def make_and_fan_out(tx: Any) -> FannedOut:
        await make(tx, "next")
        done = await fan_out(tx, NONE)
        if done.turned_away:
            # The drain is fanning out. Undone, so that the event is not left for the drain.
            raise _TurnedAway
        return done

    holding = asyncio.create_task(db.apart("migration").write(hold))
    await locked.wait()
    while True:
        with suppress(_TurnedAway):
            done = await db.write(make_and_fan_out)
            break
    go_on.set()
    await holding
    assert done.noted
