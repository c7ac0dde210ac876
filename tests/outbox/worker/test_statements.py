"""How many transactions and statements a delivery takes; on PostgreSQL each is a round trip.

Rows that are put off are written with one more, which is counted nowhere.
"""

from typing import cast

from outbox.database.transaction import Database
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
