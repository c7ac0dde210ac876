"""Rows that cannot be sent (R19): they end with a reason, and all others are delivered."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from outbox.database.transaction import Database, Tx
from tests.support.drain import OWNER, Inbox, add_webhook, drain, inbox, make, make_many, ring, rows
from tests.support.engines import Engine
from tests.system.damage import EVENT, KINDS, damage, deliveries_of, ended, run_damage, wrong_with

pytestmark = pytest.mark.timed

HEALTHY = 20
BIG = 5_000_000


async def enlarge(tx: Tx, event_id: str) -> None:
    """Longer than any possible write."""
    body = b"x" * BIG
    digest = hashlib.sha256(body).hexdigest()
    await tx.run(
        "update events set body = $2, body_digest = $3 where id = $1", event_id, body, digest
    )


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
async def test_a_damaged_row_ends_dead_or_waits_and_holds_up_nobody(
    db: Database, kind: str
) -> None:
    key = ring()
    async with inbox() as box:
        await add_webhook(db, key, f"{box.url}/fine")
        async with drain(db, key) as running:
            damaged = await damage(db, key, f"{box.url}/damaged", kind)
            await db.write(make_many, HEALTHY)
            await box.until(HEALTHY, "/fine", seconds=8)
            await running.watch.until("attempt", HEALTHY)
            assert wrong_with(await ended(db, damaged, seconds=8), kind) == []
            # The loop that met it continues.
            await db.write(make, "after")
            await box.until(HEALTHY + 1, "/fine", seconds=8)
        assert wrong_with(await deliveries_of(db, damaged), kind) == []
        assert [got.path for got in box.got] == ["/fine"] * (HEALTHY + 1)


SPOILED = {
    "schedule": "update webhooks set schedule = cast(x'5bff5d' as text) where owner_id = $1",
    "events": "update webhooks set events = cast(x'5bff5d' as text) where owner_id = $1",
    "url": "update webhooks set url = cast(x'68747470ff' as text) where owner_id = $1",
    "event's name": "update events set name = cast(x'ff' as text) where owner_id = $1",
    "record's id": "update events set record_id = cast(x'ff' as text) where owner_id = $1",
}
"""Text after a bit flip; PostgreSQL has no such text."""


async def spoil(tx: Tx, what: str, owner: str) -> None:
    assert await tx.run(SPOILED[what], owner) == 1


@pytest.mark.slow
@pytest.mark.parametrize("what", SPOILED)
@pytest.mark.parametrize("db_url", ["sqlite"], indirect=True)
async def test_text_that_is_not_utf8_any_more_holds_up_nobody(db: Database, what: str) -> None:
    key, owner = ring(), "1" * 24
    async with inbox() as box:
        damaged, _ = await add_webhook(db, key, f"{box.url}/damaged", owner=owner)
        await add_webhook(db, key, f"{box.url}/fine")
        await db.write(make, "damaged", owner=owner)
        await db.write(spoil, what, owner)
        await db.write(make_many, HEALTHY)
        async with drain(db, key) as running:
            await box.until(HEALTHY, "/fine", seconds=8)
            await running.watch.until("attempt", HEALTHY)
            for row in await deliveries_of(db, damaged):
                assert row["attempts"] <= 6
            assert "restarted" not in running.watch.counts
            assert "claimed error" not in running.watch.counts


async def test_one_webhook_that_cannot_be_read_leaves_its_owner_the_others(db: Database) -> None:
    key = ring()
    async with inbox() as box:
        await add_webhook(db, key, f"{box.url}/fine", EVENT)
        async with drain(db, key):
            kind = "events is not JSON"
            damaged = await damage(db, key, f"{box.url}/damaged", kind, OWNER)
            await box.until(1, "/fine", seconds=8)
            assert wrong_with(await ended(db, damaged, seconds=8), kind) == []


@pytest.mark.faults
@pytest.mark.timeout(600)
@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
async def test_damage_beside_traffic(engine: Engine) -> None:
    assert (await run_damage(engine, seed=1))["pass"]


@pytest.mark.slow
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
        # The test's receiver accepts a megabyte; the attempt must be made and logged.
        [attempt] = await db.read(
            rows, "select outcome from attempts where webhook_id = $1 and number = 1", big
        )
        assert ended["finished_at"]
        assert attempt["outcome"] in ("success", "http_4xx", "connect_error", "protocol_error")
        _nothing_else(box)


async def _deliveries(db: Database, webhook_id: str) -> list[Any]:
    return await db.read(rows, "select * from deliveries where webhook_id = $1", webhook_id)


def _nothing_else(box: Inbox) -> None:
    assert {got.path for got in box.got} <= {"/big", "/fine"}
