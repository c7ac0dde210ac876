"""Operational webhooks: what they are told, in which transaction, and what they never get."""

from __future__ import annotations

import json
from typing import Any

import pytest
from aiohttp import web

from outbox import webhooks
from outbox.database.transaction import Database, Row, Tx
from outbox.durations import DAY
from outbox.events import enqueue, event_feed
from outbox.queue.state import owner_reports
from outbox.queue.state.circuits import Transition
from outbox.queue.state.policy import Schedule
from outbox.queue.upkeep import parking
from outbox.webhooks import TooMany
from outbox.webhooks.operational import MOST, NAMES
from tests.support.drain import OWNER, Inbox, add_webhook, drain, inbox, make, ring, rows, run

NOTICES = "select webhook_id, kind, reason from notices order by created_at, id"


def answers(status: int) -> Any:
    """Return an answer of this status for deliveries, and of 200 for what is told of them."""

    async def answer(request: web.Request) -> web.Response:
        return web.Response(status=200 if request.path == "/told" else status)

    return answer


async def told(box: Inbox, count: int = 1) -> list[dict[str, Any]]:
    """Wait for `count` operational events; return their bodies."""
    return [json.loads(got.body) for got in await box.until(count, "/told")]


async def test_a_webhook_that_is_gone_is_told_to_the_operational_webhook(db: Database) -> None:
    async with inbox() as box, drain(db, ring()) as running:
        box.answer = answers(410)
        away = await running.webhook(f"{box.url}/away?token=secret", description="the shop")
        listener = await running.webhook(f"{box.url}/told", *NAMES)
        await db.write(make, "r1")
        [body] = await told(box)
        assert body["event"] == "endpoint.disabled"
        data = body["data"]
        assert data.pop("failingSince")
        assert data == {
            "id": away, "url": f"{box.url}/away", "description": "the shop", "state": "disabled",
            "reason": "gone", "failures": 1, "lastSuccessAt": None, "lastOutcome": "http_4xx",
            "lastStatus": 410,
        }  # fmt: skip
        [got] = await box.until(1, "/told")
        assert got.headers["X-Webhook-Event"] == "endpoint.disabled"
        assert got.headers["X-Webhook-Record-Version"] == "1"
        assert got.headers["webhook-signature"].startswith("v1,")
        assert "X-Webhook-Test" not in got.headers
        await running.watch.until("delivery_finished", 2)
    log = "select origin, state, attempts from deliveries where webhook_id = $1"
    [row] = await db.read(rows, log, listener)
    assert [row["origin"], row["state"], row["attempts"]] == ["event", "delivered", 1]
    [notice] = await db.read(rows, NOTICES)
    assert [notice[n] for n in ("webhook_id", "kind", "reason")] == [away, "disabled", "gone"]
    page = await db.read(event_feed.page, OWNER, age=DAY, limit=10)
    assert [entry.name for entry in page.entries] == ["thing.made"]
    counted = "select count from figures where subject_id = $1 and result = 'event'"
    [events] = await db.read(rows, counted, OWNER)
    assert events["count"] == 1


async def test_each_delivery_that_is_given_up_is_told(db: Database) -> None:
    async with inbox() as box, drain(db, ring(), schedule=Schedule((0.01,))) as running:
        box.answer = answers(500)
        away = await running.webhook(f"{box.url}/away")
        await running.webhook(f"{box.url}/told", "delivery.exhausted")
        event_id = await db.write(make, "r1")
        [body] = await told(box)
        [row] = await db.read(rows, "select id from deliveries where webhook_id = $1", away)
        data = body["data"]
        assert data.pop("createdAt") <= data.pop("exhaustedAt")
        assert data == {
            "id": row["id"], "webhookId": away, "url": f"{box.url}/away", "description": None,
            "eventId": event_id, "event": "thing.made", "recordId": "r1", "attempts": 2,
            "lastOutcome": "http_5xx", "lastStatus": 500,
        }  # fmt: skip
        assert body["event"] == "delivery.exhausted"


async def test_nothing_is_told_about_an_operational_webhook_or_a_test(db: Database) -> None:
    async with inbox() as box, drain(db, ring(), schedule=Schedule(())) as running:
        box.answer = answers(500)
        away = await running.webhook(f"{box.url}/away")
        deaf = await running.webhook(f"{box.url}/deaf", *NAMES)
        await running.webhook(f"{box.url}/told", *NAMES)
        await db.write(sample, away)
        await running.watch.until("delivery_finished")
        await db.write(make, "r1")
        # The delivery, and what is told of it at /told and, in vain, at /deaf.
        await running.watch.until("delivery_finished", 4)
        box.answer = answers(410)
        await db.write(sample, deaf)
        await running.watch.until("delivery_finished", 5)
        [body] = await told(box)
        assert body["data"]["webhookId"] == away
    names = "select name from events where webhook_id is not null and about_id is not null"
    assert [row["name"] for row in await db.read(rows, names)] == ["delivery.exhausted"] * 2
    # By mail the owner hears of it all the same.
    [notice] = await db.read(rows, NOTICES)
    assert notice["webhook_id"] == deaf


async def test_an_owner_who_activates_what_was_disabled_has_recovered_it(db: Database) -> None:
    webhook_id, _ = await add_webhook(db, ring(), "http://127.0.0.1:9/")
    await add_webhook(db, ring(), "http://127.0.0.1:9/told", *NAMES)
    await db.write(parking.pause, webhook_id)
    await parking.activate(db, webhook_id, "none")
    assert not await db.read(rows, "select 1 from events")
    for trouble in ("state = 'disabled'", "circuit = 'open', state = 'paused'"):
        await db.write(run, f"update webhooks set {trouble} where id = $1", webhook_id)
        await parking.activate(db, webhook_id, "none")
    reasons = [(row["name"], json.loads(row["body"])["data"]["reason"]) for row in await events(db)]
    assert reasons == [("endpoint.recovered", "activated")] * 2
    assert not await db.read(rows, "select 1 from notices")


async def test_operational_webhooks_are_few(db: Database) -> None:
    for _ in range(MOST):
        await add_webhook(db, ring(), "http://127.0.0.1:9/", "endpoint.failing")
    with pytest.raises(TooMany) as refused:
        await add_webhook(db, ring(), "http://127.0.0.1:9/", "endpoint.failing")
    assert refused.value.most == MOST
    await add_webhook(db, ring(), "http://127.0.0.1:9/")
    await add_webhook(db, ring(), "http://127.0.0.1:9/", "endpoint.failing", owner="another")
    listed = await db.read(webhooks.listed, OWNER)
    assert [bool(one.operational) for one in listed] == [False] + [True] * MOST


async def test_a_late_success_at_a_disabled_webhook_is_no_recovery(db: Database) -> None:
    webhook_id, _ = await add_webhook(db, ring(), "http://127.0.0.1:9/")
    await add_webhook(db, ring(), "http://127.0.0.1:9/told", *NAMES)
    closed = Transition(webhook_id, OWNER, "closed", "timeout", 1)
    await db.write(run, "update webhooks set state = 'disabled' where id = $1", webhook_id)
    await db.write(owner_reports.tell, [closed])
    assert not await events(db)
    await db.write(run, "update webhooks set state = 'active' where id = $1", webhook_id)
    await db.write(owner_reports.tell, [closed])
    [event] = await events(db)
    assert json.loads(event["body"])["data"]["reason"] == "success"


async def test_a_damaged_address_does_not_stop_the_telling(db: Database) -> None:
    webhook_id, _ = await add_webhook(db, ring(), "http://127.0.0.1:9/")
    await add_webhook(db, ring(), "http://127.0.0.1:9/told", *NAMES)
    await add_webhook(db, ring(), "http://127.0.0.1:9/damaged", *NAMES)
    await db.write(run, "update webhooks set url = 'http://[' where id = $1", webhook_id)
    damage = "update webhooks set events = '{' where url like '%damaged'"
    await db.write(run, damage)
    await db.write(owner_reports.tell, [Transition(webhook_id, OWNER, "open", "timeout", 1)])
    [event] = await events(db)
    assert json.loads(event["body"])["data"]["url"] == ""


async def events(db: Database) -> list[Row]:
    return await db.read(rows, "select name, body from events order by pos")


async def sample(tx: Tx, webhook_id: str) -> str:
    """Write a test event for one webhook."""
    return enqueue(
        tx, owner_id=OWNER, name="thing.made", record_id="r", record_version=1, data={},
        webhook_id=webhook_id,
    )  # fmt: skip
