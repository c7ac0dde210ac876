"""Two nodes that claim from the same lanes at the same time claim nothing twice."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest

import outbox.queue.drain.claim
from outbox import database
from outbox.clock import SystemClock
from outbox.database.transaction import Database
from outbox.ids import Ids
from outbox.queue.drain.claim import claim
from outbox.queue.drain.fanout import fan_out
from outbox.queue.state.claimed_deliveries import Capacity
from outbox.worker.windows import MOST_BYTES
from tests.support.drain import add_webhook, make_many, ring

POSTGRES = pytest.mark.parametrize("db_url", ["postgres"], indirect=True)
LANES = 4
EACH = 250
SLOTS = 16
LOCK = "for update skip locked"


async def twice(db: Database, url: str) -> int:
    """Let two nodes claim a backlog to its end; return how many claims took a claimed delivery."""
    key = ring()
    ids = [(await add_webhook(db, key, "http://127.0.0.1:9/"))[0] for _ in range(LANES)]
    await db.write(make_many, EACH)
    nothing = Capacity("none", "none", 0, 0, 0, {}, MOST_BYTES)
    while (await db.write(fan_out, nothing)).more:
        pass
    other = await database.open(url, clock=SystemClock(), ids=Ids())
    counts: Counter[str] = Counter()

    async def node(handle: Database, name: str) -> None:
        number = 0
        while counts.total() < LANES * EACH and number < LANES * EACH:
            number += 1
            capacity = Capacity(
                name, f"{name}-{number}", SLOTS, 0, 0, dict.fromkeys(ids, SLOTS), MOST_BYTES
            )
            claims = await handle.write(claim, capacity, {})
            counts.update(delivery.id for delivery in claims.claimed)
            await handle.write(look_again)

    try:
        await asyncio.gather(node(db, "one"), node(other, "two"))
    finally:
        await other.close()
    assert counts.total() >= LANES * EACH
    return sum(count - 1 for count in counts.values())


async def look_again(tx: Any) -> None:
    """Update lanes as a settle does."""
    await tx.run(
        "update lanes set due_at = turned_at where webhook_id in"
        " (select webhook_id from lanes for update skip locked)"
    )


@POSTGRES
async def test_two_nodes_take_nothing_twice(db: Database, db_url: str) -> None:
    assert await twice(db, db_url) == 0


@POSTGRES
async def test_without_its_locks_two_nodes_take_the_same(
    db: Database, db_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control: the test above fails when a claim does not lock its rows."""
    module: Any = outbox.queue.drain.claim
    for name in ("DUE_LANES", "CLAIM"):
        assert LOCK in getattr(module, name)
        monkeypatch.setattr(module, name, getattr(module, name).replace(LOCK, ""))
    assert await twice(db, db_url) > 0
