"""Rows that nobody can send, first in the queue (R19): they end with a reason, all else goes on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from outbox.database import Database, Tx
from tests.support.drain import Inbox, add_webhook, drain, inbox, make, make_many, ring, rows

HEALTHY = 20
BIG = 5_000_000

SPOILS: dict[str, tuple[str, Sequence[Any], str]] = {
    "secret": ("update webhooks set secret = $2 where id = $1", [b"not sealed"], "secret"),
    "headers": ("update webhooks set headers = $2 where id = $1", [b"not sealed"], ""),
    "schedule": ("update webhooks set schedule = $2 where id = $1", ["not JSON"], ""),
    "body": ("update events set body = null where webhook_id = $1", [], "no body"),
}
"""By name: the statement that spoils a webhook or its event, and a word of the reason."""


async def spoil(tx: Tx, webhook_id: str, sql: str, values: Sequence[Any]) -> None:
    assert await tx.run(sql, webhook_id, *values) > 0


async def enlarge(tx: Tx, event_id: str) -> None:
    """Longer than any write of ours could make it."""
    await tx.run("update events set body = $2 where id = $1", event_id, b"x" * BIG)


@pytest.mark.parametrize("kind", SPOILS)
async def test_a_poisoned_row_ends_dead_and_holds_up_nobody(db: Database, kind: str) -> None:
    key = ring()
    sql, values, word = SPOILS[kind]
    async with inbox() as box:
        poisoned, _ = await add_webhook(db, key, f"{box.url}/poisoned", "poison.made")
        await _event_for(db, poisoned)
        await db.write(spoil, poisoned, sql, values)
        await add_webhook(db, key, f"{box.url}/fine")
        await db.write(make_many, HEALTHY)
        async with drain(db, key) as running:
            await box.until(HEALTHY, "/fine")
            await running.watch.until("delivery_finished", HEALTHY + 1)
        assert not [got for got in box.got if got.path == "/poisoned"]
        [ended] = await _deliveries(db, poisoned)
        assert ended["state"] == "dead"
        assert ended["reason"]
        assert word in ended["reason"]
        assert ended["attempts"] == 1


async def test_five_megabytes_hold_up_nobody(db: Database) -> None:
    key = ring()
    async with inbox() as box:
        big, _ = await add_webhook(db, key, f"{box.url}/big", "big.made")
        await db.write(enlarge, await db.write(make, "r", "big.made"))
        await add_webhook(db, key, f"{box.url}/fine")
        await db.write(make_many, HEALTHY)
        async with drain(db, key) as running:
            await box.until(HEALTHY, "/fine")
            await running.watch.until("delivery_finished", HEALTHY + 1)
        [ended] = await _deliveries(db, big)
        # The test's receiver takes a megabyte; what counts is that the attempt was made and logged.
        [attempt] = await db.read(
            rows, "select outcome from attempts where webhook_id = $1 and number = 1", big
        )
        assert ended["finished_at"]
        assert attempt["outcome"] in ("success", "http_4xx", "connect_error", "protocol_error")
        _nothing_else(box)


async def _event_for(db: Database, webhook_id: str) -> None:
    """An event of this webhook alone, so that it can be told from the healthy ones."""
    event_id = await db.write(make, "r", "poison.made")

    async def aim(tx: Tx) -> None:
        await tx.run("update events set webhook_id = $2 where id = $1", event_id, webhook_id)

    await db.write(aim)


async def _deliveries(db: Database, webhook_id: str) -> list[Any]:
    return await db.read(rows, "select * from deliveries where webhook_id = $1", webhook_id)


def _nothing_else(box: Inbox) -> None:
    assert {got.path for got in box.got} <= {"/big", "/fine"}
