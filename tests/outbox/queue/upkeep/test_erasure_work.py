"""Erasures read by index, owners take turns, and each unit of them is small."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import pytest

from outbox.database.transaction import Database, Tx
from outbox.observer import Observer
from outbox.queue.replays import replay
from outbox.queue.upkeep import erasure, erasure_requests
from outbox.queue.upkeep.erasure import Erasure
from outbox.states import End
from tests.support.drain import OWNER, add_webhook, drain, inbox, make, ring, rows, run
from tests.support.lines import URL, fanned

OTHER = "b" * 24


@dataclass
class Order(Observer):
    """An observer that lists the webhooks of ended deliveries in their order."""

    ended: list[str] = field(default_factory=list)
    began: asyncio.Event = field(default_factory=asyncio.Event)

    def delivery_finished(self, webhook_id: str, end: End, latency: float | None) -> None:
        self.ended.append(webhook_id)
        self.began.set()


async def _waiting(db: Database, owner: str, records: dict[str, int]) -> str:
    """Make events that wait at a webhook of the owner, so many of each record; return its id."""
    webhook_id, _ = await add_webhook(db, ring(), URL, owner=owner)
    for record, count in records.items():
        await db.write(_made, owner, record, count)
    await fanned(db)
    return webhook_id


async def _made(tx: Tx, owner: str, record: str, count: int) -> None:
    for _ in range(count):
        await make(tx, record, owner=owner)


async def _ask(db: Database, owner: str, *records: str) -> None:
    for record in records:
        await db.write(erasure_requests.request, owner, [record])


async def test_another_owner_does_not_wait_for_the_end(db: Database) -> None:
    many = await _waiting(db, OWNER, {f"r-{number}": 60 for number in range(5)})
    one = await _waiting(db, OTHER, {"r": 1})
    await _ask(db, OWNER, *(f"r-{number}" for number in range(5)))
    await _ask(db, OTHER, "r")
    db.observer = order = Order()
    await Erasure(db).run_once()
    assert len(order.ended) == 301
    assert order.ended.count(many) == 300
    # Each turn cancels 50 at most.
    assert order.ended.index(one) <= 50


async def test_requests_of_an_owner_go_together(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And not more of them than WORK allows."""
    await _waiting(db, OWNER, {f"r-{number}": 1 for number in range(20)})
    await _ask(db, OWNER, *(f"r-{number}" for number in range(20)))
    requests, _, _ = await db.read(erasure_requests.next_open, "")
    ends = {one.id: 100 for one in requests}
    page = await db.read(erasure_requests.look, requests, ends)
    assert len(page.sizes) == len(page.reached) == 20
    monkeypatch.setattr(erasure_requests, "WORK", 10)
    # A statement and a row each.
    assert len((await db.read(erasure_requests.look, requests, ends)).reached) == 5
    await Erasure(db).run_once()
    assert await db.read(rows, "select id from events where body is not null") == []
    assert await db.read(rows, "select id from erasures") == []


@pytest.mark.parametrize("db_url", ["sqlite"], indirect=True)
async def test_an_error_in_one_request_stops_no_other_of_its_owner(db: Database) -> None:
    """Together they fail, so each is taken alone."""
    webhook_id = await _waiting(db, OWNER, {"bad": 1, "good": 1})
    # A response that is a number has no digest.
    await db.write(run,
        "insert into attempts (owner_id, delivery_id, webhook_id, event_id, number, kind,"
        " outcome, started_at, total_us, url, request_headers, response_body, truncated, node_id)"
        " select owner_id, id, $1, event_id, 1, 'event', 'success', 0, 0, 'u', '[]', -1.5, false,"
        " 'n' from deliveries where record_id = 'bad'",
        webhook_id,
    )  # fmt: skip
    await _ask(db, OWNER, "bad", "good")
    with pytest.raises(TypeError):
        await Erasure(db).run_once()
    [left] = await db.read(rows, "select record_ids from erasures")
    assert "bad" in left["record_ids"]
    events = await db.read(rows, "select erased_at from events where record_id = 'good'")
    assert all(row["erased_at"] is not None for row in events)


async def test_a_transaction_erases_a_megabyte_at_most() -> None:
    sizes = {"a": 600_000, "b": 600_000, "c": 2_000_000, "d": 1, "e": 2, "f": 0}
    request = erasure_requests.Request("", "", (), (), 0, 0)
    chunks = erasure.chunked(sizes, request)
    assert chunks == [["a"], ["b"], ["c"], ["d", "e", "f"]]
    many = {str(number): 1 for number in range(250)}
    assert [len(chunk) for chunk in erasure.chunked(many, request)] == [100, 100, 50]


async def test_deliveries_are_passed_in_pages(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """First ones and replays, at several webhooks."""
    for name, most in (("DELIVERIES", 2), ("DELIVERIES_AT_ONCE", 1), ("ANSWERS_AT_ONCE", 1)):
        monkeypatch.setattr(erasure, name, most)
    keys = ring()
    async with inbox() as box, drain(db, keys) as running:
        for number in range(3):
            await running.webhook(f"{box.url}/{number}")
        for record in ("r", "r", "another"):
            await db.write(make, record)
        await running.watch.until("delivery_finished", 9)
        for row in await db.read(rows, "select id from deliveries where record_id = 'r'"):
            await db.write(replay.one, row["id"], "user")
        await running.watch.until("delivery_finished", 15)
    await _ask(db, OWNER, "r")
    await Erasure(db).run_once()
    bodies = await db.read(rows, """
        select d.record_id from attempts a join deliveries d on d.id = a.delivery_id
        where a.answer_digest is null""",
    )  # fmt: skip
    assert [row["record_id"] for row in bodies] == ["another"] * 3
    assert await db.read(rows, "select id from erasures") == []
