"""Numbers of deliveries: 1 to n in each webhook, without a hole, whatever becomes of a delivery."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from outbox import webhooks
from outbox.database.transaction import Database, Tx
from outbox.queue.drain.fanout import fan_out
from outbox.queue.log import sequence_feed
from outbox.queue.replays import job_steps, jobs
from outbox.queue.state import lanes, sequences
from outbox.queue.state.claimed_deliveries import Capacity
from outbox.queue.upkeep import parking
from outbox.webhooks import Draft
from outbox.webhooks.conditions import Condition
from tests.support.drain import OWNER, add_webhook, make, make_many, ring, rows, run
from tests.support.lines import NONE, URL, fanned
from tests.support.work import Worked

ROOM = Capacity("node", "claim-0", 8, 8, 8, {}, 1024)
NUMBERS = """
select sequence, repeats, origin, event_id, record_id, state from deliveries where webhook_id = $1
order by coalesce(sequence, repeats), nth
"""
KEY = ring()
POSTGRES = pytest.mark.parametrize("db_url", ["postgres"], indirect=True)


async def numbered(db: Database, **options: Any) -> str:
    webhook_id, _ = await add_webhook(db, KEY, URL, sequenced=True, **options)
    return webhook_id


async def numbers(db: Database, webhook_id: str) -> list[int]:
    return [
        row["sequence"]
        for row in await db.read(rows, NUMBERS, webhook_id)
        if row["sequence"] is not None
    ]


async def test_what_is_not_made_has_no_number(db: Database) -> None:
    webhook_id = await numbered(db, conditions=(Condition("id", "record-2"),))
    both = await numbered(db)
    await db.write(make_many, 4)
    await fanned(db)
    assert await numbers(db, webhook_id) == [1]
    assert await numbers(db, both) == [1, 2, 3, 4]


@POSTGRES
async def test_a_page_reads_nothing_that_other_webhooks_have_repeated(db: Database) -> None:
    """Although the planner takes it for little."""
    mine, other = await numbered(db), await numbered(db)
    await db.write(make_many, 100)
    await fanned(db)
    await db.write(run, "update deliveries set state = 'dead' where webhook_id = $1", mine)
    await db.write(run, "analyze deliveries")
    repeated = "update deliveries set state = 'delivered', repeats = 1 where webhook_id = $1"
    await db.write(run, repeated, other)

    worked = Worked(db, [])
    page = await worked.write(sequence_feed.page, mine, 1, 100, 100)
    assert len(page.entries) == 100
    assert worked.most() < 250


async def test_numbers_go_on_after_the_option_was_off(db: Database) -> None:
    webhook_id, _ = await add_webhook(db, KEY, URL)
    version = 1
    for record, on in enumerate((False, True, False, True)):
        draft = Draft(url=URL, events=("thing.made",), sequenced=on)
        assert await db.write(webhooks.change, webhook_id, version, draft, KEY)
        version += 1
        await db.write(make, f"record-{record}")
        await fanned(db)
    made = await db.read(rows, "select record_id, sequence from deliveries order by seq")
    assert [row["sequence"] for row in made] == [None, 1, None, 2]


async def test_a_backfill_has_numbers_of_its_own_and_a_recovery_repeats(db: Database) -> None:
    await db.write(make_many, 3)
    await fanned(db)
    webhook_id = await numbered(db)
    await db.write(make, "new")
    await fanned(db)
    for ends in ((), ("cancelled",)):
        if ends:
            await db.write(parking.pause, webhook_id)
            await parking.activate(db, webhook_id, "none")
        now = db.clock.wall()
        draft = jobs.Draft(ends, None, now - 3_600_000_000, now + 1, 1_000)
        job_id = await db.write(
            jobs.create, owner_id=OWNER, webhook_id=webhook_id, user_id=OWNER, draft=draft, total=0
        )
        await db.write(run, "update jobs set paced_at = paced_at - 1000000 where id = $1", job_id)
        job = await db.read(jobs.one, job_id)
        assert job is not None
        page = await db.read(job_steps.find, job)
        assert page is not None
        assert await db.write(job_steps.advance, job, page) is not None
    made = await db.read(rows, NUMBERS, webhook_id)
    assert [(row["sequence"], row["repeats"], row["record_id"]) for row in made] == [
        (1, None, "new"), (None, 1, "new"), (2, None, "record-0"), (None, 2, "record-0"),
        (3, None, "record-1"), (None, 3, "record-1"), (4, None, "record-2"),
        (None, 4, "record-2"),
    ]  # fmt: skip


async def test_a_delivery_that_exists_already_leaves_no_hole(db: Database) -> None:
    webhook_id = await numbered(db)
    events = await db.write(make_many, 5)
    existing = """
    insert into deliveries (id, owner_id, event_id, webhook_id, origin, state, retry, next_at,
      tries, attempts, record_id, seq, created_at)
    values ($1, $2, $3, $4, 'event', 'cancelled', false, 0, 0, 0, 'record-2', 0, 0)
    """
    await db.write(run, existing, "d" * 24, OWNER, events[2], webhook_id)
    result = await db.write(fan_out, ROOM)
    assert await numbers(db, webhook_id) == [1, 2, 3, 4]
    claimed = {one.event.record_id: one.sequence for one in result.claimed}
    claimed.pop("record-2", None)
    stored = await db.read(rows, NUMBERS, webhook_id)
    assert claimed.items() <= {row["record_id"]: row["sequence"] for row in stored}.items()
    await db.write(make, "next")
    await fanned(db)
    assert await numbers(db, webhook_id) == [1, 2, 3, 4, 5]


@POSTGRES
async def test_two_that_number_at_once_give_no_number_twice(db: Database) -> None:
    webhook_id = await numbered(db)
    await _crowd(db, webhook_id)
    last = (await db.read(rows, "select last from sequences"))[0]["last"]
    assert await numbers(db, webhook_id) == [*range(1, last + 1)]


@POSTGRES
async def test_without_the_lock_numbering_at_once_is_found(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    webhook_id = await numbered(db)
    give = sequences.give

    async def late(tx: Tx, taken: Mapping[str, tuple[int, int]]) -> None:
        # The other transaction commits between the read of the last number and its change.
        await db.write(sequences.take, webhook_id, 1)
        await give(tx, taken)

    monkeypatch.setattr(sequences, "give", late)
    monkeypatch.setattr(lanes, "NO_FAN_OUT", "select true as held")
    await db.write(make, "a")
    with pytest.raises(sequences.NumbersTaken):
        await db.write(fan_out, NONE)
    monkeypatch.setattr(sequences, "give", give)
    await fanned(db)
    assert await numbers(db, webhook_id) == [2]


async def _crowd(db: Database, webhook_id: str) -> None:
    """Fan out on several connections, while others take numbers for deliveries of their own."""
    own = """
    insert into deliveries (id, owner_id, event_id, webhook_id, origin, state, retry, next_at,
      tries, attempts, record_id, seq, created_at, sequence)
    values ($1, $2, $1, $3, 'replay', 'ready', false, 0, 0, 0, 'own', 0, 0, $4)
    """

    async def job(tx: Tx) -> None:
        first = await sequences.take(tx, webhook_id, 2)
        assert first is not None
        for number in (first, first + 1):
            await tx.run(own, tx.new_id(), OWNER, webhook_id, number)

    async def fanning() -> None:
        for _ in range(20):
            await db.write(make_many, 3)
            await db.write(fan_out, NONE)

    async def others() -> None:
        for _ in range(20):
            await db.write(job)

    await asyncio.gather(fanning(), fanning(), others(), others())
    await fanned(db)
