"""Retention deletes old rows, in short transactions, and nothing else."""

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import pytest

from outbox import database
from outbox.database import free_pages, times
from outbox.database.transaction import Database, Tx
from outbox.durations import DAY
from outbox.ids import Ids
from outbox.observer import Observer
from outbox.queue.replays import jobs
from outbox.queue.state import notices
from outbox.queue.upkeep import retention
from outbox.queue.upkeep.retention import Retention
from outbox.sending.request import new_secret
from outbox.states import End
from outbox.webhooks import secret_rotation
from tests.support.clocks import Wall
from tests.support.counted import CountedTx
from tests.support.drain import OWNER, add_webhook, ring
from tests.support.rows import add_webhooks, pause, webhook_id

DELIVERY = """
insert into deliveries (id, owner_id, event_id, webhook_id, origin, state, retry, next_at, tries,
  attempts, record_id, seq, created_at, finished_at)
values ($1, 'owner', $2, $3, $4, $5, false, 0, 0, 1, 'record', 0, $6, $7)
"""
ATTEMPT = """
insert into attempts (owner_id, delivery_id, webhook_id, event_id, number, kind, outcome,
  started_at, total_us, url, request_headers, response_body, truncated, node_id)
values ('owner', $1, 'w', 'e', $2, 'event', 'success', 0, 0, 'u', '[]', $3, false, 'n')
"""
EVENT = """
insert into events (id, seq, owner_id, name, record_id, record_version, occurred_at, body_digest)
values ($1, $2, 'owner', 'contact.created', 'record', 1, $3, 'd')
"""


@dataclass
class Told(Observer):
    """An observer that records its calls."""

    gone: Counter[str] = field(default_factory=Counter)
    clean: list[str] = field(default_factory=list)
    ended: Counter[tuple[str, End]] = field(default_factory=Counter)

    def purged(self, table: str, count: int) -> None:
        self.gone[table] += count

    def swept(self, table: str) -> None:
        self.clean.append(table)

    def delivery_finished(self, webhook_id: str, end: End, latency: float | None) -> None:
        self.ended[webhook_id, end] += 1


class Past:
    """Creates rows as if they were a number of days old."""

    def __init__(self, db: Database) -> None:
        self.db = db
        self._now = db.clock.wall()
        self._seq = 0

    async def delivery(
        self, made: float, state: str, ended: float | None = None, *,
        event: str = "event", webhook: int = 1, attempts: int = 1, body: bytes = b"",
        origin: str = "replay",
    ) -> str:  # fmt: skip
        """Create a delivery; `made` and `ended` are days ago. Return its id."""
        at = self._now - round(made * DAY)
        delivery_id = self.db.ids.new(at)
        finished = None if ended is None else self._now - round(ended * DAY)

        async def unit(tx: Tx) -> None:
            await tx.run(
                DELIVERY, delivery_id, event, webhook_id(webhook), origin, state, at, finished
            )
            for number in range(attempts):
                await tx.run(ATTEMPT, delivery_id, number + 1, body)

        await self.db.write(unit)
        return delivery_id

    async def event(self, made: float, *, seen: bool = True) -> str:
        at = self._now - round(made * DAY)
        event_id = self.db.ids.new(at)
        self._seq += 1
        await self.db.write(lambda tx: tx.run(EVENT, event_id, self._seq if seen else None, at))
        return event_id


async def ids_of(db: Database, table: str, column: str = "id") -> set[str]:
    rows = await db.read(lambda tx: tx.all(f"select {column} as id from {table}"))
    return {row["id"] for row in rows}


@pytest.fixture
async def past(db: Database) -> Past:
    await db.write(add_webhooks, 1, 3)
    await db.write(pause, 2)
    return Past(db)


def thirty_days(db: Database, told: Told) -> Retention:
    db.observer = told
    return Retention(db, deliveries_days=30, events_days=30)


async def test_finished_deliveries_are_deleted_with_their_attempts(past: Past) -> None:
    db, counts = past.db, Told()
    gone = [
        await past.delivery(31, state, 30.5, attempts=2)
        for state in ("delivered", "exhausted", "gone", "cancelled", "dead")
    ]
    ids = [
        await past.delivery(31, "delivered", 29.5),
        await past.delivery(29, "delivered", 29),
        await past.delivery(40, "ready"),
        await past.delivery(40, "in_flight"),
        await past.delivery(40, "held"),
    ]
    await thirty_days(db, counts).deliveries()
    assert await ids_of(db, "deliveries") == set(ids)
    assert await ids_of(db, "attempts", "delivery_id") == set(ids)
    assert counts.gone == {"deliveries": len(gone), "attempts": 2 * len(gone)}
    assert set(counts.clean) == {"deliveries", "attempts"}
    assert not counts.ended


async def test_what_was_parked_for_too_long_ends_cancelled_and_is_counted(past: Past) -> None:
    db, counts = past.db, Told()
    ended = {await past.delivery(31, state, webhook=2) for state in ("ready", "held")}
    ids = {
        await past.delivery(29, "ready", webhook=2),
        await past.delivery(31, "in_flight", webhook=2),
        await past.delivery(31, "ready", webhook=1),
    }
    await thirty_days(db, counts).deliveries()
    rows = await db.read(lambda tx: tx.all("select * from deliveries"))
    cancelled = {row["id"]: row for row in rows if row["state"] == "cancelled"}
    assert cancelled.keys() == ended
    assert {row["reason"] for row in cancelled.values()} == {"retention"}
    assert all(row["finished_at"] > row["created_at"] for row in cancelled.values())
    assert {row["id"] for row in rows} == ended | ids
    assert counts.ended == {(webhook_id(2), "cancelled"): 2}
    # They stay in the log as long as other deliveries that ended now.
    await thirty_days(db, counts).deliveries()
    assert await ids_of(db, "deliveries") == ended | ids


@pytest.mark.parametrize("column", ["active", "turning"])
async def test_a_webhook_activated_or_being_turned_meanwhile_keeps_its_deliveries(
    past: Past, column: str
) -> None:
    db = past.db
    waiting = await past.delivery(31, "ready", webhook=2)
    await db.write(lambda tx: tx.run(f"update lanes set {column} = true"))
    done, ended = await db.write(retention.expire_parked, [waiting], db.clock)
    assert (done, ended) == (1, {})


async def test_events_are_deleted_unless_a_delivery_is_unfinished(past: Past) -> None:
    db, counts = past.db, Told()
    gone = [await past.event(31), await past.event(31)]
    await past.delivery(31, "delivered", 20, event=gone[1])
    ids = [await past.event(29), await past.event(31, seen=False)]
    for state, origin in (("ready", "event"), ("in_flight", "replay"), ("held", "event")):
        event = await past.event(31)
        await past.delivery(1, state, event=event, origin=origin)
        ids.append(event)
    await thirty_days(db, counts).events()
    assert await ids_of(db, "events") == set(ids)
    assert counts.gone == {"events": len(gone)}
    assert counts.clean == ["events"]


async def test_what_a_whole_run_sweeps_last(past: Past) -> None:
    """The rule RetentionStale takes this table as proof of the whole run."""
    told = Told()
    await thirty_days(past.db, told).run_once()
    assert told.clean == ["deliveries", "attempts", "events", "figures"]


@pytest.mark.parametrize("ahead", [1.1, 2.1, 30.1, 400])
async def test_a_wall_clock_that_is_ahead_for_a_moment_removes_nothing(
    db_url: str, ahead: float
) -> None:
    clock = Wall()
    db = await database.open(db_url, clock=clock, ids=Ids(), serving=True)
    keys = ring()
    hook, _ = await add_webhook(db, keys, "http://127.0.0.1:9/")
    await db.write(secret_rotation.stage, hook, new_secret(Ids().token(32)), keys)
    await db.write(secret_rotation.activate, hook)
    await db.write(notices.add, OWNER, hook, "disabled", "failing")
    now = clock.wall()
    drafts = [jobs.Draft(("dead",), None, now - DAY, now, 10)] * 2
    running, ended = [
        await db.write(
            jobs.create, owner_id=OWNER, webhook_id=hook, user_id="u", draft=draft, total=5
        )
        for draft in drafts
    ]
    await db.write(jobs.cancel, ended)
    clock.offset = round(ahead * DAY)
    assert await db.write(retention.expire_secrets, 100) == 0
    assert await db.write(times.by_earlier, notices.EXPIRY.purge, 100) == 0
    assert await db.write(jobs.purge, 100) == 0
    assert (await db.read(secret_rotation.standing, hook)).old_until is not None
    clock.offset = 0
    rows = await db.read(lambda tx: tx.all("select id, state from jobs"))
    assert {r["id"]: r["state"] for r in rows} == {running: "running", ended: "cancelled"}
    await db.close()


# Reads of the statements on a table whose statistics are from when it was empty.


@pytest.mark.slow
@pytest.mark.parametrize("db_url", ["sqlite"], indirect=True)
async def test_the_file_shrinks_after_large_deletes(db: Database, tmp_path: Path) -> None:
    await db.write(add_webhooks, 1, 1)
    past = Past(db)
    for _ in range(40):
        await past.delivery(31, "delivered", 31, attempts=10, body=b"x" * 16_384)

    async def pages(tx: Tx) -> tuple[int, int]:
        free = await tx.one("pragma freelist_count")
        there = await tx.one("pragma page_count")
        assert free is not None
        assert there is not None
        return free[0], there[0]

    _, before = await db.read(pages)
    await thirty_days(db, Told()).deliveries()
    free, _ = await db.read(pages)
    assert free > before / 2
    await free_pages.give_back(db)
    free, after = await db.read(pages)
    assert free <= free_pages.KEPT + free_pages.STEP
    assert after < before / 2
    assert not await db.write(free_pages.shrink)


@pytest.mark.parametrize("db_url", ["postgres"], indirect=True)
async def test_no_lane_lock_is_awaited_after_delivery_locks(
    past: Past, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Locking lanes of a later chunk after deliveries of an earlier one caused a deadlock."""
    await past.db.write(pause, 1)
    await past.db.write(pause, 3)
    ids = [await past.delivery(40, "ready", webhook=webhook) for webhook in (3, 1)]
    monkeypatch.setattr(retention, "CHUNKS", {"postgres": 1})
    monkeypatch.setattr(retention, "UNIT_SECONDS", 60)
    ran: list[str] = []

    async def unit(tx: Tx) -> None:
        await retention.expire_parked(cast(Tx, CountedTx(tx, ran)), ids, past.db.clock)

    await past.db.write(unit)
    locks = [text for text in ran if text in (retention.TAKE_LANES, retention.TAKE_PARKED)]
    assert locks == [retention.TAKE_LANES, retention.TAKE_PARKED, retention.TAKE_PARKED]
