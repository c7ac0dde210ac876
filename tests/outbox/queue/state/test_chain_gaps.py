"""Retention deletes rows in any order, and the chains still verify."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest

from outbox.database.transaction import Database
from outbox.queue.proof.chain_walk import Fault
from outbox.queue.state import chain_gaps
from outbox.queue.state.chain import Head
from outbox.queue.upkeep import parking, retention
from outbox.queue.upkeep.retention import Retention
from outbox.webhooks.secrets import KeyRing
from tests.support.chains import delivered, walked
from tests.support.drain import rows

Log = tuple[Database, KeyRing, list[str]]


@pytest.fixture
async def log(db: Database) -> Log:
    keys, webhooks = await delivered(db, 12, urls=2)
    return db, keys, webhooks


async def purge(db: Database, ids: list[str]) -> None:
    """Delete these deliveries as retention does."""
    while ids:
        done, _, _ = await db.write(retention.purge_deliveries, ids, 2**62, db.clock)
        ids = ids[done:]


@pytest.mark.slow
async def test_a_log_verifies_after_each_deletion_and_keeps_one_gap(log: Log, db_url: str) -> None:
    db, keys, webhooks = log
    ids = [row["id"] for row in await db.read(rows, "select id from deliveries")]
    random.Random(12).shuffle(ids)
    while ids:
        some, ids = ids[:3], ids[3:]
        await purge(db, some)
        assert (await walked(db_url, keys)).faults == []
        stored = await db.read(rows, "select * from chain_gaps order by webhook_id, first_place")
        for before, after in pairwise(stored):
            apart = before["webhook_id"] != after["webhook_id"]
            assert apart or before["last_place"] + 1 < after["first_place"]
    stored = await db.read(rows, "select * from chain_gaps")
    heads = (await walked(db_url, keys)).heads
    assert {row["webhook_id"]: (row["first_place"], row["last_place"]) for row in stored} == {
        webhook_id: (1, heads[webhook_id][0]) for webhook_id in webhooks
    }


async def test_nothing_stays_of_a_deleted_webhook_without_attempts(log: Log, db_url: str) -> None:
    db, keys, webhooks = log
    await parking.remove(db, webhooks[0])
    ended = await db.read(rows, "select id from deliveries where webhook_id = $1", webhooks[0])
    keep = ended[0]["id"]
    past = Retention(db, deliveries_days=30, events_days=30)
    await purge(db, [row["id"] for row in ended[1:]])
    assert await db.write(chain_gaps.forget, 10) == 0
    await purge(db, [keep])
    await past.deliveries()
    assert await db.read(rows, "select * from chain_ends") == []
    assert await db.read(rows, "select * from chain_gaps where webhook_id = $1", webhooks[0]) == []
    assert (await walked(db_url, keys)).faults == []


@pytest.mark.slow
async def test_a_noted_end_must_still_be_there(log: Log, db_url: str) -> None:
    """Whoever computes a whole chain again cannot know a digest that somebody has noted."""
    db, keys, webhooks = log

    async def noting(noted: Head) -> list[Fault]:
        return (await walked(db_url, keys, webhooks[0], noted)).faults

    [row] = await db.read(
        rows, "select * from attempts where webhook_id = $1 and place = 5", webhooks[0]
    )
    digest, end = bytes(row["digest"]).hex(), (await walked(db_url, keys)).heads[webhooks[0]]
    assert await noting((5, digest)) == []
    assert await noting(end) == []
    for wrong in ((5, "00" * 32), (end[0], digest), (end[0] + 1, digest)):
        [fault] = await noting(wrong)
        assert fault.place == wrong[0]
    ids = await db.read(rows,
        "select distinct delivery_id from attempts where webhook_id = $1 and place <= 5",
        webhooks[0],
    )  # fmt: skip
    await purge(db, [one["delivery_id"] for one in ids])
    # Of what was deleted, only the last digest of a gap is known.
    for gap in await db.read(rows, "select * from chain_gaps where webhook_id = $1", webhooks[0]):
        assert await noting((gap["last_place"], bytes(gap["digest"]).hex())) == []
        [fault] = await noting((gap["last_place"], "00" * 32))
        assert fault.missing
