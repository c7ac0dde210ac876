"""The delivery log in the console, with the real drain: filter, pages, delivery, replay."""

import json
from collections.abc import AsyncIterator

import pytest
from aiohttp import web

from outbox.database.transaction import Database
from outbox.queue.log import delivery_log
from outbox.queue.log.delivery_types import Delivery
from outbox.queue.upkeep import personal_data
from tests.support.console import CONFIG, Guest
from tests.support.drain import Inbox
from tests.support.site import Site, serving
from tests.support.waiting import until

EVIL = "<script>alert(1)</script>\u202e\x07 & more"


@pytest.fixture
async def console(db: Database) -> AsyncIterator[Site]:
    """The gateway with its drain."""
    async with serving(db, CONFIG, role="all") as site:
        yield site


async def ended(site: Site, webhook_id: str, count: int = 1) -> list[Delivery]:
    """The finished deliveries of a webhook, once there are `count`."""

    async def found() -> list[Delivery]:
        health = await site.db.read(delivery_log.health, webhook_id, 50)
        done = [d for d in health.latest if d.last_outcome is not None]
        return done if len(done) >= count else []

    return await until(found)


async def test_a_response_is_shown_inert(console: Site, maria: Guest, box: Inbox) -> None:
    async def answer(request: web.Request) -> web.StreamResponse:
        return web.Response(status=500, text=EVIL, headers={"X-Evil": "<img src=x onerror=y>"})

    box.answer = answer
    webhook = await maria.webhook(f"{box.url}/hook?a=<b>", description="</title><script>")
    await maria.submit(
        f"/console/webhooks/{webhook.id}/test", at=f"/console/webhooks/{webhook.id}",
        event="contact.created",
    )  # fmt: skip
    [delivery] = await ended(console, webhook.id)
    for path in (
        f"/console/deliveries/{delivery.id}",
        f"/console/webhooks/{webhook.id}",
        f"/console/webhooks/{webhook.id}/edit",
        f"/console/webhooks/{webhook.id}/deliveries",
        "/console/webhooks",
    ):
        page = await maria.get(path)
        assert page.status == 200
        assert "<script>" not in page.html
        assert "<img src=x" not in page.html
        assert "\u202e" not in page.html
    page = await maria.get(f"/console/deliveries/{delivery.id}")
    assert page.test_id("response-body") == EVIL.replace("\u202e", "⟨202E⟩").replace(
        "\x07", "⟨0007⟩"
    )
    assert "server error" in page.html


async def test_an_attempt_shows_its_digest_and_an_erased_response_its_own(
    console: Site, maria: Guest, box: Inbox
) -> None:
    webhook = await maria.webhook(f"{box.url}/hook")
    at = f"/console/webhooks/{webhook.id}"
    await maria.submit(f"{at}/test", at=at, event="contact.created")
    [delivery] = await ended(console, webhook.id)
    path = f"/console/deliveries/{delivery.id}"
    [attempt] = await console.db.read(delivery_log.attempts, delivery.id)
    assert attempt.place == 1
    assert attempt.digest is not None
    page = await maria.get(path)
    assert page.test_id("digest") == f"{attempt.digest.hex()[:16]}…"
    assert page.test_id("erased-response") is None
    await console.db.write(personal_data.erase_bodies, [delivery.event_id])
    await console.db.write(personal_data.erase_answers, [delivery.id], 10)
    page = await maria.get(path)
    assert page.test_id("response-body") is None
    [attempt] = await console.db.read(delivery_log.attempts, delivery.id)
    assert attempt.answer_digest is not None
    assert page.test_id("erased-response") == f"{attempt.answer_digest.hex()[:16]}…"


async def test_a_test_event_arrives_marked_and_is_not_replayed(
    console: Site, maria: Guest, box: Inbox
) -> None:
    webhook = await maria.webhook(f"{box.url}/hook", "contact.created")
    other = await maria.webhook(f"{box.url}/other", "deal.created")
    path = f"/console/webhooks/{webhook.id}"
    await maria.submit(f"{path}/test", at=path, event="deal.created")
    [got] = await box.until(1)
    assert got.path == "/hook"
    assert got.headers["X-Webhook-Test"] == "1"
    assert json.loads(got.body)["event"] == "deal.created"
    [delivery] = await ended(console, webhook.id)
    assert (await console.db.read(delivery_log.health, other.id)).latest == ()
    page = await maria.get(f"/console/deliveries/{delivery.id}")
    assert "test event" in page.html
    refused = await maria.submit(
        f"/console/deliveries/{delivery.id}/replay", at=f"/console/webhooks/{webhook.id}"
    )
    assert refused.status == 409
    assert "send a new test" in refused.html


async def test_the_log_outlives_its_webhook(console: Site, maria: Guest, box: Inbox) -> None:
    webhook = await maria.webhook(f"{box.url}/hook")
    path = f"/console/webhooks/{webhook.id}"
    await maria.submit(f"{path}/test", at=path, event="contact.created")
    [delivery] = await ended(console, webhook.id)
    await maria.submit(f"{path}/delete")
    page = await maria.get(f"/console/deliveries/{delivery.id}")
    assert page.status == 200
    assert "deleted" in page.html
    assert "/replay" not in page.html
