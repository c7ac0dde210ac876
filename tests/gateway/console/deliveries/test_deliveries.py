"""The delivery log in the console, with the real drain: filter, pages, delivery, replay."""

import asyncio
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

EVIL = "<script>alert(1)</script>\u202e\x07 & more"


@pytest.fixture
async def console(db: Database) -> AsyncIterator[Site]:
    """The gateway with its drain."""
    async with serving(db, CONFIG, role="all") as site:
        yield site


async def ended(site: Site, webhook_id: str, count: int = 1) -> list[Delivery]:
    """The finished deliveries of a webhook, once there are `count`."""
    async with asyncio.timeout(20):
        while True:
            health = await site.db.read(delivery_log.health, webhook_id, 50)
            done = [d for d in health.latest if d.last_outcome is not None]
            if len(done) >= count:
                return done
            # The drain runs on this loop too: let it work.
            await asyncio.sleep(0)


async def test_a_write_shows_up_with_its_exact_body(
    console: Site, maria: Guest, box: Inbox
) -> None:
    webhook = await maria.webhook(f"{box.url}/hook", "contact.created")
    key = (await maria.submit("/console/keys", name="k", scopes=["read", "write"])).test_id(
        "api-key"
    )
    assert key
    async with console.http.post(
        "/api/contacts", json={"name": "João <b>"}, headers={"X-API-Key": key}
    ) as answer:
        assert answer.status == 201
        request_id = answer.headers["X-Request-Id"]
    [got] = await box.until(1)
    [delivery] = await ended(console, webhook.id)
    rows = await maria.get(f"/console/webhooks/{webhook.id}/deliveries")
    assert f"/console/deliveries/{delivery.id}" in rows.html
    page = await maria.get(f"/console/deliveries/{delivery.id}")
    assert page.test_id("delivery-body") == got.body.decode()
    assert request_id in page.html
    assert got.headers["X-Webhook-Signature"] in page.html
    assert "Connected to" in page.html


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


async def test_replay_sends_the_same_bytes_again(console: Site, maria: Guest, box: Inbox) -> None:
    webhook = await maria.webhook(f"{box.url}/hook", "contact.created")
    page = await maria.submit("/console/keys", name="k", scopes=["read", "write"])
    headers = {"X-API-Key": page.test_id("api-key") or ""}
    async with console.http.post("/api/contacts", json={"name": "Ana"}, headers=headers) as answer:
        assert answer.status == 201
    await box.until(1)
    [first] = await ended(console, webhook.id)
    path = f"/console/deliveries/{first.id}"
    page = await maria.submit(f"{path}/replay", at=path, confirmed="delivered")
    assert page.id != first.id
    assert page.path.endswith("?done=replayed")
    one, two = await box.until(2)
    assert one.body == two.body
    await ended(console, webhook.id, 2)
    page = await maria.get(f"/console/deliveries/{page.id}")
    assert "requested by Maria" in page.html
    assert first.id in page.html


async def test_a_replay_of_a_delivered_or_waiting_delivery_needs_confirmation(
    console: Site, maria: Guest, box: Inbox
) -> None:
    """The server requires the confirmation: a form without it gets the question, not a replay."""
    gate = asyncio.Event()

    async def answer(request: web.Request) -> web.StreamResponse:
        if request.path == "/slow":
            await gate.wait()
        return web.Response(status=410 if request.path == "/gone" else 200)

    async def one(path: str) -> Delivery:
        webhook = await maria.webhook(f"{box.url}{path}", "contact.created")
        # Counted before the write: its delivery may arrive before the answer to the write.
        before = len(box.got)
        async with console.http.post(
            "/api/contacts", json={"name": "Ana"}, headers=headers
        ) as answer:
            assert answer.status == 201
        await box.until(before + 1)
        [found] = (
            await ended(console, webhook.id)
            if path != "/slow"
            else (await console.db.read(delivery_log.health, webhook.id)).latest
        )
        await maria.submit(
            f"/console/webhooks/{webhook.id}/pause", at=f"/console/webhooks/{webhook.id}"
        )
        return found

    async def count(delivery: Delivery) -> int:
        return len((await console.db.read(delivery_log.health, delivery.webhook_id)).latest)

    box.answer = answer
    page = await maria.submit("/console/keys", name="k", scopes=["read", "write"])
    headers = {"X-API-Key": page.test_id("api-key") or ""}
    for path, said, right, wrong in (
        ("/ok", "The receiver accepted it", "delivered", "waiting"),
        ("/slow", "will still be sent", "waiting", "delivered"),
    ):
        delivery = await one(path)
        where = f"/console/deliveries/{delivery.id}"
        assert f'href="{where}/replay"' in (await maria.get(where)).html
        for said_yes in ([], [wrong], ["yes"]):
            asked = await maria.submit(f"{where}/replay", at="/console/keys", confirmed=said_yes)
            assert (asked.status, asked.path) == (200, f"{where}/replay")
            assert said in asked.html
            assert f'name="confirmed" value="{right}"' in asked.html
            assert await count(delivery) == 1
        done = await maria.submit(f"{where}/replay", confirmed=right)
        assert "?done=replay" in done.path
        assert await count(delivery) == 2
    gate.set()
    # A failed delivery is replayed without a question.
    delivery = await one("/gone")
    where = f"/console/deliveries/{delivery.id}"
    done = await maria.submit(f"{where}/replay", at=where)
    assert "?done=replay" in done.path


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


@pytest.mark.slow
async def test_the_log_has_pages_and_a_filter(console: Site, maria: Guest, box: Inbox) -> None:
    webhook = await maria.webhook(f"{box.url}/hook", "contact.created")
    path = f"/console/webhooks/{webhook.id}"
    token = (await maria.get(path)).csrf
    for _ in range(55):
        fields = [("csrf_token", token), ("event", "task.created")]
        assert (await maria.post(f"{path}/test", fields, follow=False)).status == 303
    await box.until(55)
    await ended(console, webhook.id, 50)
    first = await maria.get(f"{path}/deliveries")
    assert first.html.count('scope="row"') == 50
    link = first.html.partition('rel="next" href="')[2].partition('"')[0].replace("&amp;", "&")
    second = await maria.get(link)
    assert second.html.count('scope="row"') == 5
    assert "hx-get" not in second.html
    for state in ("exhausted", "dead", "failed", "held", "waiting", "ready", "parked"):
        page = await maria.get(f"{path}/deliveries?state={state}")
        assert "No deliveries in this state" in page.html
    for odd in ("state=nonsense", "state=ready&after=%00", "after='; drop table users"):
        assert (await maria.get(f"{path}/deliveries?{odd}")).status == 200


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
