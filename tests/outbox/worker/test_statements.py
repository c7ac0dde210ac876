"""How many transactions and statements a delivery takes; on PostgreSQL each is a round trip.

Rows that are put off are written with one more, which is counted nowhere.
"""

from collections.abc import Awaitable, Callable
from typing import cast

import pytest

from outbox.database.transaction import Database, Tx
from outbox.durations import SECOND
from outbox.queue.upkeep import parking
from tests.support.counted import Counted
from tests.support.drain import drain, inbox, make, ring

TAKES = {
    "sqlite": [("take", 6), ("settle_and_take", 4)],
    "postgres": [("turn", 1), ("turn", 1)],
}

DRAIN = (
    "take", "claim_due", "settle", "settle_and_look", "settle_and_take", "fan_out_and_look", "turn",
)  # fmt: skip


def changes(statement: str) -> bool:
    return statement.split(maxsplit=1)[0] in ("insert", "update", "delete") or (
        "drain_at_once" in statement
    )


async def test_a_delivery_alone_takes_two_transactions(db: Database) -> None:
    counted = Counted(db)
    async with inbox() as box, drain(cast(Database, counted), ring()) as running:
        await running.webhook(box.url)
        await db.write(make, "r0")
        await running.watch.until("delivery_finished")
        counted.reset()
        await db.write(make, "r1")
        await running.watch.until("delivery_finished", 2)
        took = [
            (unit, len(statements))
            for unit, statements in counted.written
            if unit in DRAIN and any(map(changes, statements))
        ]
        assert took == TAKES[db.engine]


async def paused(tx: Tx, webhook_id: str) -> None:
    await parking.pause(tx, webhook_id)


async def down(tx: Tx, webhook_id: str) -> None:
    """Let a webhook wait for an hour, as after failures."""
    later = "update lanes set failing = true, wait_until = due_now() + $2 where webhook_id = $1"
    await tx.run(later, webhook_id, 3600 * SECOND)


@pytest.mark.parametrize("db_url", ["postgres"], indirect=True)
@pytest.mark.parametrize("waits", [paused, down])
async def test_an_event_of_which_all_waits_costs_a_turn_and_no_claim(
    db: Database, waits: Callable[[Tx, str], Awaitable[None]]
) -> None:
    counted = Counted(db)
    async with inbox() as box, drain(cast(Database, counted), ring()) as running:
        await db.write(waits, await running.webhook(box.url, "thing.gone"))
        await running.webhook(box.url)
        await db.write(make, "r0")
        await running.watch.until("delivery_finished")
        counted.reset()
        await db.write(make, "r1", "thing.gone")
        # One more, so that what the first has made necessary has been done.
        await db.write(make, "r2")
        await running.watch.until("delivery_finished", 2)
        assert "claim_due" not in [unit for unit, _ in counted.written]
