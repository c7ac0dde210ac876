"""Every end of a delivery is reported once, whatever ends it."""

from __future__ import annotations

import pytest

from outbox.database.transaction import Database
from outbox.queue.order import ordering
from outbox.queue.state.policy import MOST_RESCUES
from outbox.queue.upkeep import parking
from outbox.worker import claimer
from tests.support.drain import Counted, add_webhook, drain, make, ring, rows, run
from tests.support.lines import URL, written

ENDS = "select state, count(*) as n from deliveries where finished_at is not null group by state"


async def ended(db: Database) -> dict[str, int]:
    """Return the finished deliveries by end, as they are stored."""
    return {row["state"]: int(row["n"]) for row in await db.read(rows, ENDS)}


def reported(watch: Counted, *webhooks: str) -> dict[str, int]:
    """Return the finished deliveries by end, as they were reported."""
    ends: dict[str, int] = {}
    for webhook_id in webhooks:
        for end in ("delivered", "exhausted", "gone", "cancelled", "dead"):
            if count := watch.counts.get(f"delivery_finished {webhook_id} {end}"):
                ends[end] = ends.get(end, 0) + count
    return ends


async def test_a_removal_in_many_transactions_reports_each_end_once(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parking, "BATCH", 2)
    for name in ("END_READY", "END_HELD"):
        few = getattr(parking, name).replace("limit 500", "limit 2")
        monkeypatch.setattr(parking, name, few)
    webhook_id, _ = await add_webhook(db, ring(), URL)
    await written(db, *"abcabca")
    await ordering.turn(db, webhook_id, True)
    db.observer = watch = Counted()
    assert await parking.remove(db, webhook_id)
    assert await ended(db) == reported(watch, webhook_id) == {"cancelled": 7}


CLAIMED = """
update deliveries set state = 'in_flight', node_id = $1, claim = 'lost', rescues = $2
where state = 'ready'
"""


@pytest.mark.slow
async def test_what_ends_with_the_rescue_of_a_lost_result_is_reported(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claimer, "CHECK_SECONDS", 0.0)
    key = ring()
    async with drain(db, key) as running:
        webhook_id = await running.webhook(URL)
        await db.write(parking.pause, webhook_id)
        await db.write(make, "a")
        await running.watch.until("fanned_out")
        [row] = await db.read(rows, "select id from deliveries")
        running.worker._settling.unstored.add(row["id"])
        await db.write(run, CLAIMED, running.worker.node_id, MOST_RESCUES - 1)
        await running.watch.until("rescued unheld 1")
        assert await ended(db) == reported(running.watch, webhook_id) == {"dead": 1}
