"""Readings of waiting deliveries: correct for any pieces, and each of them short."""

import random
from collections import Counter

import pytest

from outbox.database.transaction import Database, Tx
from outbox.queue.log.gauges import Gauges, Readings
from outbox.queue.state.lanes import due_now
from tests.support.drain import make, run
from tests.support.rows import add_waiting, add_webhooks, pause

AHEAD = 3_600_000_000


async def complete(readings: Readings) -> Gauges:
    """Return the reading that ends a pass."""
    for _ in range(1_000):
        reading = await readings.take(lambda _: [])
        if readings.complete:
            return reading
    raise AssertionError("it never comes to an end")


async def anew(db: Database, rows: int) -> Gauges:
    return await complete(Readings(db, seconds=0.0, rows=rows))


async def _counted(tx: Tx) -> dict[str, int]:
    rows = await tx.all(
        "select webhook_id, count(*) as n from deliveries where state = 'ready' group by webhook_id"
    )
    return {row["webhook_id"]: row["n"] for row in rows}


async def _mixed(tx: Tx, dice: random.Random) -> Counter[str]:
    """Create queues of many shapes, with many rows due at the same time; return their counts."""
    now = await due_now(tx)
    await add_webhooks(tx, 1, 40)
    expected: Counter[str] = Counter()
    for number in range(1, 41, 3):
        parked = dice.random() < 0.3
        if parked:
            await pause(tx, number)
        for retry in (False, True):
            for ahead in (False, True):
                count = dice.choice((0, 1, 2, 7, 30))
                if count:
                    at = now + AHEAD if ahead else now - AHEAD
                    await add_waiting(tx, number, count, at, dice.choice((0, 1)), retry)
                expected["parked" if parked else "scheduled" if ahead else "ready"] += count
    return expected


@pytest.mark.parametrize("rows", [1, 29, 30, 31, 10_000])
async def test_every_row_is_counted_once_whatever_the_pieces(db: Database, rows: int) -> None:
    expected = await db.write(_mixed, random.Random(rows))
    reading = await anew(db, rows)
    counts = {state: n for state, n in reading.states.items() if state in expected}
    assert counts == {state: n for state, n in expected.items() if n}
    counted = await db.read(_counted)
    assert {name: waits.pending for name, waits in reading.waiting.items()} == counted
    for waits in reading.waiting.values():
        assert waits.oldest_age == pytest.approx(AHEAD / 1e6, abs=60) or waits.oldest_age == 0


async def test_a_reading_goes_on_where_the_last_one_stopped(db: Database) -> None:
    await db.write(_mixed, random.Random(7))
    readings = Readings(db, seconds=0.0, rows=5)
    await complete(readings)

    async def drain(tx: Tx) -> None:
        await tx.run("update deliveries set state = 'delivered' where webhook_id < 'w000020'")
        await add_waiting(tx, 21, 3, 5)

    await db.write(drain)
    counted = await db.read(_counted)
    readings.complete = False
    reading = await complete(readings)
    # One pass later the old counts are gone.
    readings.complete = False
    reading = await complete(readings)
    assert {name: waits.pending for name, waits in reading.waiting.items()} == counted


async def test_ages_are_of_what_is_due_and_could_go(db: Database) -> None:
    async def fill(tx: Tx) -> None:
        now = await due_now(tx)
        await add_webhooks(tx, 1, 4)
        await add_waiting(tx, 1, 3, now - 50_000_000)
        await add_waiting(tx, 2, 3, now - 90_000_000)
        await pause(tx, 2)
        await add_waiting(tx, 3, 3, now - 80_000_000)
        await tx.run("update lanes set failing = true where webhook_id = 'w000003'")
        await tx.run("update webhooks set circuit = 'open' where id = 'w000003'")
        await add_waiting(tx, 4, 3, now - 70_000_000)
        await tx.run("update lanes set wait_until = $1 where webhook_id = 'w000004'", now - 5)

    await db.write(fill)
    reading = await anew(db, 100)
    assert reading.oldest_ready_age == pytest.approx(50, abs=10)
    assert reading.waiting["w000002"].oldest_age == pytest.approx(90, abs=10)
    assert reading.endpoints == {
        ("active", "closed"): 2,
        ("active", "open"): 1,
        ("paused", "closed"): 1,
    }


@pytest.mark.parametrize("db_url", ["postgres"], indirect=True)
async def test_the_age_is_also_of_events_that_no_node_has_fanned_out(db: Database) -> None:
    await db.write(make, "r0")
    await db.write(run, "update events set due_at = due_at - 70000000")
    assert (await anew(db, 100)).oldest_ready_age == pytest.approx(70, abs=10)
    await db.write(run, "update events set seq = 1")
    assert (await anew(db, 100)).oldest_ready_age == 0


async def test_owners_that_move(db: Database) -> None:
    before = await anew(db, 100)
    assert (before.closed_age, before.move_changes) == (0, 0)

    async def fill(tx: Tx) -> None:
        for owner, state, age in (
            ("a", "leaving", 20), ("b", "leaving", 30), ("c", "gone", 900), ("d", "here", 900),
        ):  # fmt: skip
            await tx.run(
                "insert into owners (id, state, move_id, peer, changed_at)"
                " values ($1, $2, 'm', '', $3)", owner, state, tx.now - age * 1_000_000,
            )  # fmt: skip
            await tx.run(
                "insert into move_changes (mover, name, key) values ($1, 'contacts', '[]')", owner
            )

    await db.write(fill)
    reading = await anew(db, 100)
    assert reading.moves == {"leaving": 2, "gone": 1}
    assert reading.closed_age == pytest.approx(30, abs=10)
    assert reading.move_changes == 4
