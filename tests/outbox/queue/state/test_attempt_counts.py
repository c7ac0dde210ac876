"""The figures of the charts equal the log, whoever counts, and end with their webhook and time."""

from __future__ import annotations

import asyncio

from outbox.database.transaction import Database, Tx
from outbox.durations import DAY, HOUR
from outbox.queue.drain import rescue
from outbox.queue.state import attempt_counts
from outbox.queue.state.attempt_counts import SPANS, STEP
from outbox.queue.upkeep.retention import Retention
from tests.support.drain import add_webhook, ring, rows
from tests.support.figures import in_longest, of_log, stored
from tests.support.lines import WAITS

ADD = """
insert into figures
select $1, cast($2 as bigint), cast($3 as bigint), $4, 2, 10, 0, 2, 0,0,0,0,0,0,0,0,0,0,0,0
"""


async def test_a_result_that_is_lost_or_recorded_late_counts_once(db: Database) -> None:
    """A rescue that ends a delivery counts it; one that does not, counts nothing."""
    key = ring()
    webhook_id, _ = await add_webhook(db, key, "http://127.0.0.1:9/")
    for number, rescues in enumerate((8, 9)):
        await db.write(insert_in_flight, webhook_id, delivery_id=f"{number:024x}", rescues=rescues)
    assert len(await db.write(rescue.rescue, "node", WAITS)) == 2
    counts = await db.read(stored)
    assert counts == await db.read(of_log)
    assert [(what, n) for (_, _, what, _), n in counts.items()] == [("dead", 1)]


async def insert_in_flight(tx: Tx, webhook_id: str, delivery_id: str, rescues: int) -> None:
    await tx.run(
        """
        insert into deliveries (id, owner_id, event_id, webhook_id, origin, state, retry, next_at,
          tries, attempts, claim, node_id, record_id, seq, created_at, rescues)
        values ($1, 'o', 'e', $2, 'replay', 'in_flight', false, 0, 0, 1, 'c', 'node', 'r', 0, 0, $3)
        """,
        delivery_id, webhook_id, rescues,
    )  # fmt: skip


async def add(tx: Tx, webhook_id: str, at: int, result: str = "success", span: int = STEP) -> None:
    """Store two attempts of 5 microseconds in the second step of durations."""
    await tx.run(ADD, webhook_id, span, at, result)


async def test_old_steps_become_longer_ones_and_nothing_is_lost(db: Database) -> None:
    now = db.clock.wall()
    hours = (0, 1, 2, 4, 5, 20, 23, 26, 30, 100, 166, 170, 180, 300, 700)
    for hour in hours:
        for step in range(12):
            at = (now - hour * HOUR - step * STEP) // STEP * STEP
            await db.write(add, f"w{step % 2}", at, "timeout" if step % 3 else "success")
    before = await db.read(stored)
    keep = Retention(db, deliveries_days=30, events_days=30)
    await keep.counts()
    assert in_longest(await db.read(stored)) == in_longest(before)
    steps = await db.read(rows, "select span, at from figures")
    ages = {span: [(now - row["at"]) / HOUR for row in steps if row["span"] == span]
            for span in SPANS}  # fmt: skip
    # A range of three hours and its first step find steps of five minutes, and so on.
    assert max(ages[SPANS[0]]) < 4
    assert 4 < min(ages[SPANS[1]]) < max(ages[SPANS[1]]) < 27
    assert 26 < min(ages[SPANS[2]]) < max(ages[SPANS[2]]) < 7 * 24 + 8
    assert min(ages[SPANS[3]]) > 7 * 24
    # A late result, and a second run: the longer step takes it in.
    await db.write(add, "w0", (now - 60 * HOUR) // STEP * STEP)
    again = await db.read(stored)
    await keep.counts()
    assert in_longest(await db.read(stored)) == in_longest(again)
    assert not await db.read(
        rows, "select 1 as one from figures where span = $1 and at < $2", STEP,
        now - 5 * HOUR,
    )  # fmt: skip


async def test_folding_in_the_middle_of_counting_loses_nothing(db: Database) -> None:
    """Writers add to the very steps that are folded; on PostgreSQL at the same time."""
    old = db.clock.wall() // SPANS[-1] * SPANS[-1] - 240 * HOUR

    async def count(webhook_id: str, number: int) -> None:
        counts = {(webhook_id, old + number % 12 * STEP, "success"): [1] * len(attempt_counts.SUMS)}
        await db.write(attempt_counts.add, STEP, counts)

    async def fold_often() -> None:
        for _ in range(20):
            await db.write(attempt_counts.fold, db.clock.wall(), 7)

    await asyncio.gather(*(count(f"w{n % 3}", n) for n in range(200)), fold_often(), fold_often())
    folded = await db.read(stored)
    assert sum(n for (*_, what), n in folded.items() if what == "count") == 200


async def test_retention_ends_figures_and_keeps_the_others(db: Database) -> None:
    now = db.clock.wall() // SPANS[-1] * SPANS[-1] - SPANS[-1]
    for days, span in ((8, SPANS[-1]), (6, SPANS[-2]), (8, STEP), (0, STEP)):
        for number in range(300):
            await db.write(add, f"w{number}", now - days * DAY, span=span)
    await Retention(db, deliveries_days=7, events_days=7).run_once()
    steps = await db.read(rows, "select at, count(*) as n from figures group by at")
    assert {row["at"]: row["n"] for row in steps} == {now - 6 * DAY: 300, now: 300}
