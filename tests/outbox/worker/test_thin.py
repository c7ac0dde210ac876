"""Thin deliveries: the address of the record in the body instead of its data."""

from __future__ import annotations

import hashlib
import json

from standardwebhooks import Webhook

from outbox.database.transaction import Database
from outbox.queue.replays import replay
from outbox.sending.request import sign_body
from tests.support.chains import walked
from tests.support.drain import add_webhook, drain, inbox, make, ring, rows

SITE = "https://crm.example"


def link(event: str, record_id: str) -> str:
    return f"{SITE}/api/{event.partition('.')[0]}s/{record_id}"


async def test_a_thin_delivery_has_the_address_and_is_signed_over_it(db: Database) -> None:
    keys = ring()
    async with inbox() as box, drain(db, keys, links=link) as running:
        _, secret = await add_webhook(db, keys, f"{box.url}/thin", thin=True)
        await add_webhook(db, keys, f"{box.url}/whole")
        await db.write(make, "r1")
        await running.watch.until("delivery_finished", 2)
        [thin], [whole] = await box.until(1, "/thin"), await box.until(1, "/whole")
        sent = json.loads(whole.body)
        url = f"{SITE}/api/things/r1"
        expected = {**sent, "data": {"id": "r1", "type": "thing", "url": url}}
        assert thin.body == json.dumps(expected, separators=(",", ":")).encode()
        assert thin.headers["X-Webhook-Record-Url"] == url
        assert "X-Webhook-Record-Url" not in whole.headers
        assert thin.headers["X-Webhook-Timestamp"] == str(sent["timestamp"])
        assert thin.headers["X-Webhook-Signature"] == sign_body(secret, thin.body)
        Webhook(secret).verify(thin.body, thin.headers)
        [event] = await db.read(rows, "select body, body_digest from events")
        assert bytes(event["body"]) == whole.body, "the stored event is the whole one"
        assert event["body_digest"] == hashlib.sha256(whole.body).hexdigest()


async def test_a_replay_is_thin_too_and_the_log_verifies(db: Database, db_url: str) -> None:
    keys = ring()
    async with inbox() as box, drain(db, keys, links=link) as running:
        await add_webhook(db, keys, box.url, thin=True)
        await db.write(make, "r1")
        await running.watch.until("delivery_finished")
        [delivery] = await db.read(rows, "select id from deliveries")
        await db.write(replay.one, delivery["id"], "tester")
        await running.watch.until("delivery_finished", 2)
        first, second = await box.until(2)
        assert first.body == second.body
    verdict = await walked(db_url, keys)
    assert (verdict.faults, verdict.judge.signed) == ([], {"right": 2})
    edited = "update attempts set request_headers = replace(request_headers, 'crm', 'xyz')"
    await db.write(rows, f"{edited} returning number")
    assert (await walked(db_url, keys)).faults, "the log proves the address too"


async def test_without_addresses_nothing_is_sent_at_all(db: Database) -> None:
    async with inbox() as box, drain(db, ring()) as running:
        await running.webhook(box.url, thin=True)
        await db.write(make, "r1")
        await running.watch.until("unreadable")
        [row] = await db.read(rows, "select unreadable, state from webhooks")
        assert row["unreadable"] == "thing.made has no address for thin events here"
        [delivery] = await db.read(rows, "select state, attempts from deliveries")
        assert (delivery["state"], delivery["attempts"], box.got) == ("ready", 0, [])
