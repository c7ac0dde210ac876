"""Pause, activate and delete webhooks: the effects on waiting deliveries."""

import asyncio
from typing import Any

import pytest

from outbox import webhooks
from outbox.database.transaction import Database, Tx
from outbox.queue.drain.rescue import Waits, rescue
from outbox.queue.state import attempt_counts, deleted_webhooks, lanes
from outbox.queue.state.policy import Schedule
from outbox.queue.upkeep import keep_newest, parking
from outbox.webhooks import Draft, TooMany, sealed_settings
from tests.support.drain import OWNER, add_webhook, ring, rows, run

POSTGRES = pytest.mark.parametrize("db_url", ["postgres"], indirect=True)
LOCK_AWAITED = """
select 1 as one from pg_locks where locktype = 'advisory' and not granted
  and database = (select oid from pg_database where datname = current_database())
"""
STATES = "select state, reason, record_id from deliveries order by seq, id"


async def park(
    tx: Tx, webhook_id: str, records: list[tuple[str, bool]], state: str = "ready"
) -> list[str]:
    """Events with a waiting delivery each: (record, whether it is a retry), oldest first."""
    ids = []
    last = await tx.one("select coalesce(max(seq), 0) as seq from events")
    assert last is not None
    for number, (record, tried) in enumerate(records, last["seq"] + 1):
        event_id, delivery_id = tx.new_id(), tx.new_id()
        await tx.run(
            """insert into events (id, seq, owner_id, name, record_id, record_version,
                 occurred_at, body, body_digest)
               values ($1, $2, $3, 'thing.made', $4, 1, $5, $6, '')""",
            event_id, number, OWNER, record, tx.now, b"{}",
        )  # fmt: skip
        await tx.run(
            """insert into deliveries (id, owner_id, event_id, webhook_id, origin, state, retry,
                 next_at, tries, attempts, record_id, seq, created_at)
               values ($1, $2, $3, $4, 'event', $5, $6, $7, 0, 0, $8, $9, $10)""",
            delivery_id, OWNER, event_id, webhook_id, state, tried, 1000 + number % 7, record,
            number, tx.now,
        )  # fmt: skip
        ids.append(delivery_id)
    return ids


async def paused(db: Database, *records: tuple[str, bool]) -> str:
    """A paused webhook with these deliveries parked."""
    webhook_id, _ = await add_webhook(db, ring(), "https://x.example/")
    assert await db.write(parking.pause, webhook_id)
    await db.write(park, webhook_id, list(records))
    return webhook_id


async def seen(db: Database) -> list[tuple[str, str | None, str]]:
    return [(r["state"], r["reason"], r["record_id"]) for r in await db.read(rows, STATES)]


@pytest.mark.slow
@pytest.mark.parametrize("choice", ["none", "newest"])
async def test_more_than_a_batch_may_be_parked(db: Database, choice: Any) -> None:
    records = [(f"r{n % 3}", n % 5 == 0) for n in range(parking.BATCH * 2 + 30)]
    webhook_id = await paused(db, *records)
    assert await parking.activate(db, webhook_id, choice)
    ready = [row for row in await seen(db) if row[0] == "ready"]
    assert sorted(row[2] for row in ready) == ([] if choice == "none" else ["r0", "r1", "r2"])
    assert [row[0] for row in (await seen(db))[-3:]].count("ready") == len(ready)


async def test_newest_takes_a_share_of_very_many_records_at_a_time(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keep_newest, "RECORDS", 7)
    records = [(f"r{n % 11}", n % 3 == 0) for n in range(40)]
    webhook_id = await paused(db, *records)
    assert await parking.activate(db, webhook_id, "newest")
    assert [n for n, row in enumerate(await seen(db)) if row[0] == "ready"] == [*range(29, 40)]


async def test_a_deleted_webhook_leaves_its_log_and_nothing_unfinished(db: Database) -> None:
    webhook_id = await paused(db, *[("a", False)] * (parking.BATCH + 5))
    await db.write(park, webhook_id, [("b", False)], "held")
    await db.write(park, webhook_id, [("c", False)], "in_flight")
    await db.write(run, "update deliveries set node_id = 'n', claim = 'c' where record_id = 'c'")
    await db.write(park, webhook_id, [("d", False)], "delivered")
    other = await paused(db, ("e", False))
    assert await parking.remove(db, webhook_id) == parking.Removed(parking.BATCH + 6, 1)
    await db.write(rescue, "n", Waits(Schedule(), lambda: 0.5))
    assert ("cancelled", "the process ended while sending; webhook deleted", "c") in await seen(db)
    deliveries = [row for row in await seen(db) if row[2] != "c"]
    assert [row[0] for row in deliveries[-2:]] == ["delivered", "ready"]
    assert {row[:2] for row in deliveries[:-2]} == {("cancelled", "webhook deleted")}
    assert await db.read(webhooks.one, webhook_id) is None
    assert not await db.read(rows, "select * from lanes where webhook_id = $1", webhook_id)
    assert await db.read(webhooks.one, other) is not None
    assert not await parking.remove(db, webhook_id)


class Activating:
    """A database in which a webhook is activated after the first batch of its removal."""

    def __init__(self, db: Database, webhook_id: str) -> None:
        self._db = db
        self._webhook_id = webhook_id

    def __getattr__(self, name: str) -> Any:
        return getattr(self._db, name)

    async def write(self, unit: Any, *args: Any) -> Any:
        result = await self._db.write(unit, *args)
        if [row for row in await seen(self._db) if row[0] == "cancelled"]:
            await parking.activate(self._db, self._webhook_id, "all")
        return result


async def test_a_webhook_that_is_activated_during_its_removal_keeps_its_counts(
    db: Database,
) -> None:
    webhook_id = await paused(db, *[("a", False)] * (parking.BATCH + 5))
    await db.write(attempt_counts.count_fan_out, (), (), {webhook_id: 1})
    activating: Any = Activating(db, webhook_id)
    assert await parking.remove(activating, webhook_id) is None
    assert await db.read(webhooks.one, webhook_id) is not None
    assert await db.read(rows, "select 1 as one from figures where subject_id = $1", webhook_id)


@POSTGRES
async def test_a_deleted_webhook_keeps_no_counts_from_fan_out(db: Database) -> None:
    webhook_id = await paused(db)
    await db.write(attempt_counts.count_fan_out, (), (), {webhook_id: 1})
    other = db.apart("migration")

    async def counts(tx: Tx) -> asyncio.Task[parking.Removed | None]:
        """Count as a fan-out that has the lock while the removal asks for it."""
        await tx.one(lanes.NO_FAN_OUT)
        removing = asyncio.create_task(parking.remove(db, webhook_id))
        while not await tx.all(LOCK_AWAITED):
            await asyncio.sleep(0)
        # The server would end one of two transactions that wait for each other.
        await tx.run("set local lock_timeout = 10")
        await attempt_counts.count_fan_out(tx, (), (), {webhook_id: 1})
        return removing

    removing = await other.write(counts)
    assert await removing == parking.Removed(0, 0)
    assert not await db.read(rows, "select 1 as one from figures where subject_id = $1", webhook_id)


async def test_what_a_sender_gives_back_ends_and_is_counted(db: Database) -> None:
    webhook_id = await paused(db)
    await db.write(park, webhook_id, [("a", False), ("b", False)], "in_flight")
    assert await parking.remove(db, webhook_id) == parking.Removed(0, 2)
    await db.write(run, "update deliveries set state = 'ready'")
    await db.write(deleted_webhooks.end_all_left)
    assert {row[:2] for row in await seen(db)} == {("cancelled", "webhook deleted")}
    left = await db.read(deleted_webhooks.one, webhook_id)
    assert left is not None
    assert left.cancelled == 2


async def test_creations_at_once_do_not_pass_the_limit(db: Database) -> None:
    async def one() -> bool:
        try:
            await db.write(
                webhooks.create, owner_id=OWNER, draft=Draft("https://x.example/", ("a.b",)),
                secret="whsec_x", ring=ring(), most=3,
            )  # fmt: skip
        except TooMany:
            return False
        return True

    assert sum(await asyncio.gather(*[one() for _ in range(10)])) == 3
    assert len(await db.read(webhooks.listed, OWNER)) == 3


async def test_custom_headers_are_sealed(db: Database) -> None:
    key = ring()
    webhook_id, _ = await add_webhook(
        db, key, "https://x.example/", headers=(("Authorization", "Bearer hush"),)
    )
    webhook = await db.read(webhooks.one, webhook_id)
    assert webhook is not None
    assert webhook.headers is not None
    assert b"hush" not in webhook.headers
    opened = sealed_settings.open_headers(webhook.headers, key, webhook_id)
    assert opened == [("Authorization", "Bearer hush")]
