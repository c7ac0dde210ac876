"""Pause, activate and delete webhooks: the effects on waiting deliveries."""

import asyncio
from typing import Any

import pytest

from outbox import webhooks
from outbox.database.sql import items
from outbox.database.transaction import Database, Row, Tx
from outbox.queue.drain.fanout import FannedOut, fan_out
from outbox.queue.state.deliveries import Capacity
from outbox.queue.upkeep import keep_newest, parking
from outbox.webhooks import Draft, TooMany
from outbox.worker.windows import MOST_BYTES
from tests.support.drain import OWNER, add_webhook, drain, inbox, make, ring, rows

WAITS_FOR_FAN_OUT = """
select 1 from pg_locks where locktype = 'advisory' and not granted
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


async def lane(db: Database, webhook_id: str) -> Row:
    [row] = await db.read(rows, "select * from lanes where webhook_id = $1", webhook_id)
    return row


@pytest.mark.parametrize("choice", ["none", "newest", "all"])
async def test_each_choice_on_activation(db: Database, choice: Any) -> None:
    webhook_id = await paused(
        db, ("a", True), ("b", True), ("a", False), ("a", False), ("c", False), ("b", False)
    )
    assert await parking.activate(db, webhook_id, choice)
    numbers = {"none": [], "newest": [3, 4, 5], "all": [0, 1, 2, 3, 4, 5]}[choice]
    assert [i for i, row in enumerate(await seen(db)) if row[0] == "ready"] == numbers
    ended = [row for row in await seen(db) if row[0] != "ready"]
    assert all(row[:2] == ("cancelled", "parked") for row in ended)
    webhook = await db.read(webhooks.one, webhook_id)
    assert webhook is not None
    assert (webhook.state, webhook.version) == ("active", 3)
    row = await lane(db, webhook_id)
    assert row["active"]
    assert (row["due_at"] is None) == (choice == "none")
    assert not await parking.activate(db, webhook_id, choice)


@pytest.mark.slow
@pytest.mark.parametrize("choice", ["none", "newest"])
async def test_more_than_a_batch_may_be_parked(db: Database, choice: Any) -> None:
    records = [(f"r{n % 3}", n % 5 == 0) for n in range(parking.BATCH * 2 + 30)]
    webhook_id = await paused(db, *records)
    assert await parking.activate(db, webhook_id, choice)
    ready = [row for row in await seen(db) if row[0] == "ready"]
    assert sorted(row[2] for row in ready) == ([] if choice == "none" else ["r0", "r1", "r2"])
    assert [row[0] for row in (await seen(db))[-3:]].count("ready") == len(ready)


STATEMENTS: dict[str, tuple[str, tuple[Any, ...]]] = {
    "ready": (parking.END_READY, ("w", "", 0)),
    "held": (parking.END_HELD, ("w", "", 0)),
    "in flight": (parking.END_IN_FLIGHT, ("w", "", 0)),
    "count": (keep_newest.COUNT, ("w",)),
    "page": (keep_newest.PAGE_OF_READY, ("w", False, 0, "")),
    "page of held": (keep_newest.PAGE_OF_HELD, ("w", "", 0)),
    "older": (keep_newest.END_OLDER, ("[]", 0)),
}


@pytest.mark.parametrize("name", STATEMENTS)
async def test_no_batch_walks_the_log_on_sqlite(db: Database, name: str) -> None:
    if db.engine != "sqlite":
        return
    statement, arguments = STATEMENTS[name]
    plan = await db.read(rows, f"explain query plan {statement}", *arguments)
    steps = [str(row["detail"]) for row in plan]
    # Few deliveries are in flight, and they have an index of their own; the items are a list.
    walked = [
        step for step in steps
        if "SCAN" in step
        and not any(word in step for word in ("deliveries_claimed", "VIRTUAL", "CONSTANT"))
    ]  # fmt: skip
    assert walked == []
    assert not [step for step in steps if "deliveries_log" in step]


async def test_newest_takes_a_share_of_very_many_records_at_a_time(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keep_newest, "RECORDS", 7)
    records = [(f"r{n % 11}", n % 3 == 0) for n in range(40)]
    webhook_id = await paused(db, *records)
    assert await parking.activate(db, webhook_id, "newest")
    assert [n for n, row in enumerate(await seen(db)) if row[0] == "ready"] == [*range(29, 40)]


async def test_an_older_delivery_stays_when_the_newer_one_has_ended(db: Database) -> None:
    """Retention ended the newer one after this process had read it."""
    webhook_id, _ = await add_webhook(db, ring(), "https://x.example/")
    await db.write(parking.pause, webhook_id)
    first, second = await db.write(park, webhook_id, [("a", False), ("a", False)])
    sql = "update deliveries set state = 'cancelled' where id = $1"
    await db.write(rows, f"{sql} returning id", second)
    await db.write(rows, keep_newest.END_OLDER, items([(first, second)]), 0)
    assert [row[0] for row in await seen(db)] == ["ready", "cancelled"]


async def test_newest_keeps_one_of_an_event_and_its_replay(db: Database) -> None:
    webhook_id = await paused(db, ("a", False))

    async def again(tx: Tx) -> None:
        await tx.run(
            """insert into deliveries (id, owner_id, event_id, webhook_id, origin, state, retry,
                 next_at, tries, attempts, record_id, seq, created_at)
               select $1, owner_id, event_id, webhook_id, 'replay', state, retry, next_at, 0, 0,
                 record_id, seq, created_at from deliveries""",
            "f" * 24,
        )

    await db.write(again)
    assert await parking.activate(db, webhook_id, "newest")
    assert [row[0] for row in await seen(db)] == ["cancelled", "ready"]


async def test_an_activation_stops_another_one_from_cancelling(db: Database) -> None:
    """Two users decide at once: the second must not cancel deliveries that the first activated."""
    webhook_id = await paused(db, *[(f"r{n}", False) for n in range(parking.BATCH * 3)])
    done = await asyncio.gather(
        parking.activate(db, webhook_id, "all"),
        parking.activate(db, webhook_id, "none"),
        parking.activate(db, webhook_id, "newest"),
    )
    assert sum(done) == 1
    before = await seen(db)
    await parking.activate(db, webhook_id, "none")
    assert await seen(db) == before


async def test_activation_clears_past_failures(db: Database) -> None:
    webhook_id = await paused(db)

    async def fail(tx: Tx) -> None:
        await tx.run(
            """update webhooks set state = 'disabled', disabled_reason = 'gone', failures = 9,
                 failing_since = 1, circuit = 'open', circuit_opened_at = 1"""
        )
        await tx.run("update lanes set failing = true, wait_until = $1", 2**60)

    await db.write(fail)
    assert await parking.activate(db, webhook_id, "all")
    webhook = await db.read(webhooks.one, webhook_id)
    assert webhook is not None
    assert (webhook.failures, webhook.failing_since, webhook.circuit) == (0, None, "closed")
    assert webhook.disabled_reason is None
    row = await lane(db, webhook_id)
    assert (bool(row["failing"]), row["wait_until"]) == (False, 0)


async def test_a_deleted_webhook_leaves_its_log_and_nothing_unfinished(db: Database) -> None:
    webhook_id = await paused(db, *[("a", False)] * (parking.BATCH + 5))
    await db.write(park, webhook_id, [("b", False)], "held")
    await db.write(park, webhook_id, [("c", False)], "in_flight")
    await db.write(park, webhook_id, [("d", False)], "delivered")
    other = await paused(db, ("e", False))
    assert await parking.remove(db, webhook_id)
    deliveries = await seen(db)
    assert [row[0] for row in deliveries[-2:]] == ["delivered", "ready"]
    assert {row[:2] for row in deliveries[:-2]} == {("cancelled", "webhook deleted")}
    assert await db.read(webhooks.one, webhook_id) is None
    assert not await db.read(rows, "select * from lanes where webhook_id = $1", webhook_id)
    assert await db.read(webhooks.one, other) is not None
    assert not await parking.remove(db, webhook_id)


async def test_what_was_parked_is_sent_after_activation(db: Database) -> None:
    """With the real drain: no deliveries while paused, all of them after."""
    async with inbox() as box, drain(db, ring()) as running:
        webhook_id = await running.webhook(f"{box.url}/a")
        marker = await running.webhook(f"{box.url}/b")
        assert await db.write(parking.pause, webhook_id)
        await db.write(make, "r1")
        await db.write(make, "r2")
        await box.until(2, "/b")
        assert not [got for got in box.got if got.path == "/a"]
        assert await db.read(parking.count, webhook_id, 10) == 2
        assert await parking.activate(db, webhook_id, "all")
        await box.until(2, "/a")
        assert not await db.write(parking.pause, "0" * 24)
        assert await db.read(parking.count, marker, 10) == 0


@pytest.mark.slow
async def test_deleting_while_events_arrive_leaves_nothing_behind(db: Database) -> None:
    async with inbox() as box, drain(db, ring()) as running:
        webhook_id = await running.webhook(f"{box.url}/a")
        await running.webhook(f"{box.url}/b")
        writes = [asyncio.create_task(db.write(make, f"r{n}")) for n in range(60)]
        await box.until(3)
        assert await parking.remove(db, webhook_id)
        await asyncio.gather(*writes)
        await box.until(60, "/b")
        unfinished = await db.read(
            rows,
            "select * from deliveries where webhook_id = $1 and state in ('ready', 'in_flight')",
            webhook_id,
        )
        assert unfinished == []


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
    opened = webhooks.open_headers(webhook.headers, key, webhook_id)
    assert opened == [("Authorization", "Bearer hush")]


@pytest.mark.parametrize("db_url", ["postgres"], indirect=True)
async def test_deliveries_claimed_by_a_late_fan_out_end_with_their_webhook(db: Database) -> None:
    """A fan-out that read the webhook before its removal began and commits during the removal."""
    webhook_id, _ = await add_webhook(db, ring(), "http://127.0.0.1:9/")
    await db.write(make, "r")
    claimed, go_on = asyncio.Event(), asyncio.Event()

    async def late(tx: Tx) -> FannedOut:
        done = await fan_out(tx, Capacity("node", "claim", 8, 0, 0, {}, MOST_BYTES))
        claimed.set()
        await go_on.wait()
        return done

    fanning = asyncio.create_task(db.write(late))
    await claimed.wait()
    removing = asyncio.create_task(parking.remove(db, webhook_id))
    while not await db.read(rows, WAITS_FOR_FAN_OUT):
        await asyncio.sleep(0.02)
    go_on.set()
    assert [d.webhook_id for d in (await fanning).claimed] == [webhook_id]
    assert await removing
    [left] = await db.read(rows, "select state, reason, claim from deliveries")
    assert (left["state"], left["reason"], left["claim"]) == ("cancelled", "webhook deleted", None)
