"""The certification on the page of a webhook: its own secret, test events alone, within limits."""

from __future__ import annotations

import asyncio

import pytest
from aiohttp import web

from gateway.console.webhooks import certification as page
from gateway.server.config import Config, Egress, Limits
from outbox.database.transaction import Database
from tests.gateway.console.webhooks.test_doctor import change, count
from tests.support.console import Guest, Seen, guest
from tests.support.faulty_receivers import FAULTY, Careful
from tests.support.receiver import receiver
from tests.support.site import serving


async def certify(who: Guest, webhook_id: str, *, htmx: bool = False) -> Seen:
    path = f"/console/webhooks/{webhook_id}/certify"
    fields = [("csrf_token", (await who.get(path)).csrf)]
    return await (who.post(path, fields, HX_Request="true") if htmx else who.post(path, fields))


async def test_a_careful_receiver_passes_and_nothing_is_stored(maria: Guest) -> None:
    careful = Careful("")
    async with receiver(answer=careful.handle) as there:
        webhook = await maria.webhook(f"{there.url}/hook", "deal.updated", headers="X-Own: s3cret")
        careful.secret = webhook.test_id("webhook-secret") or ""
        before = await maria.site.db.read(count)
        seen = await certify(maria, webhook.id)
        assert "The receiver passes." in seen.html
        assert await maria.site.db.read(count) == before == [0, 0, 0]
        for one in there.requests:
            headers = {name.lower(): value for name, value in one.headers.items()}
            assert (headers["x-webhook-test"], headers["x-own"]) == ("1", "s3cret")
            assert headers["x-webhook-event"] in ("deal.updated", "certification.unknown")
    assert "s3cret" not in seen.html
    assert careful.secret not in seen.html


async def test_a_damaged_secret_is_named(maria: Guest) -> None:
    webhook = await maria.webhook("https://hooks.example.com/")
    await maria.site.db.write(
        change, "update webhooks set secret = $2 where id = $1", webhook.id, b"damaged"
    )
    seen = await certify(maria, webhook.id)
    assert seen.status == 200
    assert "Nothing can be sent: the webhook&#39;s secret cannot be decrypted" in seen.html


async def test_it_ends_when_its_time_is_over(maria: Guest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "SECONDS", 1.0)
    slow = FAULTY["works too long"]("")
    async with receiver(answer=slow.handle) as there:
        webhook = await maria.webhook(f"{there.url}/hook", "deal.created")
        slow.secret = webhook.test_id("webhook-secret") or ""
        seen = await certify(maria, webhook.id)
    assert "Not tried, because time ran out." in seen.html
    assert "The receiver could not be judged." in seen.html


async def test_it_takes_the_place_and_the_tokens_of_examinations(still: Database) -> None:
    ready, release = asyncio.Event(), asyncio.Event()

    async def holds(request: web.Request) -> web.StreamResponse:
        ready.set()
        await release.wait()
        return web.Response(status=401)

    config = Config(
        limits=Limits(sign_in_per_minute=0, write_per_second=5, burst=4),
        egress=Egress(allow_http=True, allow=("127.0.0.0/8",)),
    )
    async with (
        serving(still, config) as site,
        guest(site) as somebody,
        receiver(answer=holds) as there,
    ):
        await site.user()
        await somebody.sign_in()
        webhook = await somebody.webhook(there.url)
        running = asyncio.create_task(certify(somebody, webhook.id))
        await ready.wait()
        busy = await certify(somebody, webhook.id)
        assert busy.status == 429
        assert "Another examination is running" in busy.html
        release.set()
        assert (await running).status == 200
        # Twenty tokens are there at most, and one takes fifteen.
        assert (await certify(somebody, webhook.id)).status == 429
