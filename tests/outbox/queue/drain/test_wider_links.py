"""What a digest of an attempt covers beside it: the state of the delivery, and its event."""

from __future__ import annotations

from typing import Any

import pytest

from outbox.clock import SystemClock
from outbox.database import transfer_ends
from outbox.database.transaction import Database
from outbox.database.transfer import Place
from outbox.durations import DAY
from outbox.ids import Ids
from outbox.queue.proof.chain_walk import SLACK
from outbox.queue.proof.verification import Verdict, verify
from outbox.queue.upkeep import retention
from outbox.webhooks.secrets import KeyRing
from tests.support.chains import TABLES, delivered, walked
from tests.support.drain import OWNER, add_webhook, drain, inbox, make, ring, rows, run
from tests.support.old_rows import OldRows

Log = tuple[Database, KeyRing, list[str]]


@pytest.fixture
async def log(db: Database) -> Log:
    keys, webhooks = await delivered(db, 6)
    return db, keys, webhooks


async def judged(url: str, keys: KeyRing, past: int) -> Verdict:
    """Verify with a limit of retention."""
    async with transfer_ends.snapshot(Place(url, SystemClock(), Ids()), TABLES) as source:
        return await verify(source, keys, past=past)


async def test_a_gap_behind_a_new_row_is_forged(log: Log, db_url: str) -> None:
    db, keys, [webhook_id] = log
    now = db.clock.wall()
    [row] = await db.read(rows, "select * from attempts where place = 3")
    await db.write(run, "delete from attempts where delivery_id = $1 and number = $2",
        row["delivery_id"], row["number"],
    )  # fmt: skip
    await db.write(run, "insert into chain_gaps (webhook_id, first_place, last_place, digest)"
        " values ($1, 3, 3, $2)", webhook_id, row["digest"],
    )  # fmt: skip
    [fault] = (await judged(db_url, keys, now - 30 * DAY)).faults
    assert (fault.place, fault.missing) == (3, True)
    # The negative control: the same when all of it is older than what retention keeps.
    assert (await judged(db_url, keys, now)).faults == []


async def test_a_gap_at_the_start_of_a_new_webhook_is_forged(log: Log, db_url: str) -> None:
    db, keys, _ = log
    [row] = await db.read(rows, "select * from attempts where place = 1")
    await db.write(retention.purge_deliveries, [row["delivery_id"]], 2**62, db.clock)
    now = db.clock.wall()
    [fault] = (await judged(db_url, keys, now - 30 * DAY)).faults
    assert (fault.place, fault.missing) == (1, True)
    await db.write(run, "update webhooks set created_at = $1", now - 31 * DAY - SLACK)
    assert (await judged(db_url, keys, now - 30 * DAY)).faults == []


@pytest.mark.parametrize("state", ["exhausted", "cancelled", "ready"])
async def test_a_changed_state_of_a_delivery_is_found(log: Log, db_url: str, state: str) -> None:
    db, keys, [webhook_id] = log
    [row] = await db.read(rows, "select * from attempts where place = 2")
    await db.write(run, "update deliveries set state = $1 where id = $2", state, row["delivery_id"])
    [fault] = (await walked(db_url, keys)).faults
    assert (fault.webhook_id, fault.what) == (webhook_id, "the state of its delivery was changed")
    await db.write(run, "delete from deliveries where id = $1", row["delivery_id"])
    [fault] = (await walked(db_url, keys)).faults
    assert fault.what == "its delivery is missing"


@pytest.mark.parametrize(
    ("column", "value"),
    [("name", "other.name"), ("record_id", "x"), ("record_version", 77), ("occurred_at", 1)],
)
async def test_a_changed_event_is_found(log: Log, db_url: str, column: str, value: Any) -> None:
    db, keys, [webhook_id] = log
    [row] = await db.read(rows, "select event_id from attempts where place = 2")
    change = f"update events set {column} = $1 where id = $2"
    await db.write(run, change, value, row["event_id"])
    [fault] = (await walked(db_url, keys)).faults
    assert fault.webhook_id == webhook_id
    assert fault.what == "name, record, version or time of its event was changed"
    # Also when its body is gone with its person.
    await db.write(run, "update events set body = null, erased_at = 1")
    [fault] = (await walked(db_url, keys)).faults
    assert fault.what == "name, record, version or time of its event was changed"


async def test_links_of_a_released_version_verify_and_are_counted(
    db: Database, db_url: str
) -> None:
    """New ones continue them, and cover more."""
    keys = ring()
    async with inbox() as box:
        webhook_id, _ = await add_webhook(db, keys, box.url)
        await OldRows(db, OWNER, [webhook_id], 1).add(20, 1.0)
        verdict = await walked(db_url, keys)
        assert (verdict.faults, verdict.judge.narrow, verdict.attempts) == ([], 20, 20)
        async with drain(db, keys) as running:
            await db.write(make, "record")
            await running.watch.until("delivery_finished", 1)
    verdict = await walked(db_url, keys)
    assert (verdict.faults, verdict.judge.narrow, verdict.attempts) == ([], 20, 21)
    # A new link cannot pass for an old one.
    await db.write(run, "update attempts set event_digest = null, state = null where place = 21")
    [fault] = (await walked(db_url, keys)).faults
    assert (fault.place, fault.what) == (21, "its content does not match its digest")
