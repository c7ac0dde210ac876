"""The doctor's page: the verdict of a delivery, no more than the log shows, within limits."""

from __future__ import annotations

import asyncio
from base64 import b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from html import escape
from typing import Any

import pytest
from aiohttp import web

from gateway import texts
from gateway.console.layout.told_steps import step_text
from gateway.domain.accounts import users
from gateway.domain.webhooks import pings
from gateway.records.audit import Actor
from gateway.server.app_keys import DOCTOR, KEYRING
from gateway.server.config import Config, Egress, Limits
from outbox.database.transaction import Database, Row, Tx
from outbox.sending.request import restored
from tests.gateway.console.deliveries.test_deliveries import EVIL
from tests.outbox.worker.test_doctor import patients
from tests.support.console import CONFIG, Guest, Seen, guest
from tests.support.drain import Inbox, add_webhook, inbox, rows
from tests.support.hostilities import ODD, says_and_closes
from tests.support.receiver import Visit, hostile, receiver
from tests.support.site import Site, serving
from tests.support.waiting import until


async def count(tx: Tx) -> list[int]:
    tables = ("events", "deliveries", "attempts")
    counts = [await tx.one(f"select count(*) as had from {table}") for table in tables]
    return [row["had"] for row in counts if row is not None]


async def change(tx: Tx, sql: str, *args: Any) -> None:
    await tx.run(sql, *args)


async def examine(who: Guest, webhook_id: str, **headers: Any) -> Seen:
    path = f"/console/webhooks/{webhook_id}/doctor"
    page = await who.get(path)
    return await who.post(path, [("csrf_token", page.csrf)], **headers)


async def actor_of(site: Site) -> Actor:
    user = await site.db.read(users.by_email, "maria@example.com")
    assert user is not None
    return Actor(user["id"], "session")


@asynccontextmanager
async def delivering(db: Database, config: Config = CONFIG) -> AsyncIterator[tuple[Site, Guest]]:
    """Run a gateway with its drain, and a signed-in user."""
    async with serving(db, config, role="all") as site, guest(site) as somebody:
        await site.user()
        await somebody.sign_in()
        yield site, somebody


async def first_attempt(site: Site, webhook_id: str) -> Row:
    """Wait for the first attempt of the webhook in the log."""
    first = "select * from attempts where webhook_id = $1 and number = 1"
    return (await until(lambda: site.db.read(rows, first, webhook_id)))[0]


@pytest.mark.proof
async def test_the_verdict_is_that_of_a_delivery(db: Database) -> None:
    async with patients() as all_of_them, delivering(db) as (site, somebody):
        actor = await actor_of(site)
        for patient in all_of_them:
            seconds = "1" if patient.outcome == "timeout" else "30"
            webhook = await somebody.webhook(patient.url, "contact.created", timeout=seconds)
            page = await examine(somebody, webhook.id)
            assert page.status == 200
            sent = await site.db.read(pings.of_webhook, actor, webhook.id)
            examination = await site.app[DOCTOR].examine_webhook(site.app[KEYRING], *sent)
            path = f"/console/webhooks/{webhook.id}"
            await somebody.submit(f"{path}/test", at=path, event="contact.created")
            real = await first_attempt(site, webhook.id)
            outcome = examination.outcome
            assert outcome is not None
            assert (outcome.outcome, outcome.status, outcome.error) == (
                real["outcome"], real["status"], real["error"],
            ), patient.name  # fmt: skip
            assert (outcome.address, outcome.response_body) == (
                real["address"], bytes(real["response_body"] or b""),
            )  # fmt: skip
            logged = restored(
                real["request_headers"], real["event_id"], real["number"], real["started_at"]
            )
            names = [name for name, _ in logged]
            # This test event was caused by a request with a trace.
            assert [name for name, _ in examination.headers] == names[:-1]
            assert names[-1] == "traceparent"
            if patient.step is None:
                assert "A delivery to this receiver would succeed." in page.html
            else:
                assert examination.failed is not None
                assert examination.failed.name == patient.step
                assert "A delivery would fail at this step" in page.html
                assert escape(step_text(texts.of("en"), examination.failed)) in page.html


async def test_a_response_is_shown_inert(maria: Guest) -> None:
    async def answer(request: web.Request) -> web.StreamResponse:
        return web.Response(status=500, text=EVIL, headers={"X-Evil": "<img src=x onerror=y>"})

    async with receiver(answer=answer) as there:
        webhook = await maria.webhook(f"{there.url}/hook?a=<b>")
        page = await examine(maria, webhook.id)
    assert "<script>" not in page.html
    assert "<img src=x" not in page.html
    assert "\u202e" not in page.html
    assert "server error" in page.html


async def test_an_odd_response_is_told_in_both_languages(maria: Guest) -> None:
    async with hostile(says_and_closes(ODD)) as there:
        webhook = await maria.webhook(there.url)
        page = await examine(maria, webhook.id)
        assert "the version of the response is not HTTP/1.1" in page.html
        assert page.test_id("response-body") == "não \ufffd"
        assert page.test_id("response-bytes") == b64encode(ODD.partition(b"\n\n")[2]).decode()
        page = await examine(maria, webhook.id, Accept_Language="pt-BR")
        assert "a versão da resposta não é HTTP/1.1" in page.html
        there.script = says_and_closes(b"SSH-2.0-OpenSSH_9.2\r\n")
        page = await examine(maria, webhook.id, Accept_Language="pt-BR")
        assert page.html.count("A resposta não é HTTP/1.1: vem de um servidor SSH.") == 2


async def test_examinations_are_limited_per_second_and_to_one_at_a_time(still: Database) -> None:
    ready = asyncio.Event()
    release = asyncio.Event()

    async def holds(visit: Visit) -> None:
        await visit.request()
        ready.set()
        await release.wait()
        await visit.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")

    config = Config(
        limits=Limits(sign_in_per_minute=0, write_per_second=5, burst=2),
        egress=Egress(allow_http=True, allow=("127.0.0.0/8",)),
    )
    async with serving(still, config) as site, guest(site) as somebody, hostile(holds) as there:
        await site.user()
        await somebody.sign_in()
        webhook = await somebody.webhook(there.url)
        running = asyncio.create_task(examine(somebody, webhook.id))
        await ready.wait()
        busy = await examine(somebody, webhook.id)
        assert (busy.status, busy.headers["Retry-After"]) == (429, "1")
        assert "Another examination is running" in busy.html
        assert there.visits == 1
        release.set()
        assert (await running).status == 200
        # The limit of writes is five a second with a burst of two seconds, and this costs five.
        answers = [(await examine(somebody, webhook.id)).status for _ in range(3)]
        assert answers[0] == 200
        assert 429 in answers[1:]
        path = f"/console/webhooks/{webhook.id}"
        page = await somebody.get(path)
        fields = [("csrf_token", page.csrf), ("event", "contact.created")]
        tests = [
            (await somebody.post(f"{path}/test", fields, follow=False)).status for _ in range(20)
        ]
        assert 429 in tests
        # The API has its own tokens.
        key = await site.key((await actor_of(site)).owner_id)
        async with site.http.post(
            "/api/contacts", json={"name": "Ana"}, headers={"X-API-Key": key}
        ) as answer:
            assert answer.status == 201


async def test_a_webhook_saved_under_other_rules_is_refused_without_a_word_of_the_network(
    db: Database,
) -> None:
    async with inbox() as box, serving(db, Config()) as site, guest(site) as somebody:
        owner = await site.user()
        await somebody.sign_in()
        for url in (f"{box.url}/hook".replace("http:", "https:"), "https://localhost:8443/"):
            webhook_id, _ = await add_webhook(
                db, site.app[KEYRING], url, "contact.created", owner=owner
            )
            page = await examine(somebody, webhook_id)
            assert "Egress rules" in page.html
            assert "Deliveries to this address are not allowed" in page.html
            assert "<b>Connection</b>" not in page.html
        assert box.got == []


async def test_a_damaged_secret_is_named(maria: Guest) -> None:
    webhook = await maria.webhook("https://hooks.example.com/")
    await maria.site.db.write(
        change, "update webhooks set secret = $2 where id = $1", webhook.id, b"damaged"
    )
    page = await examine(maria, webhook.id)
    assert page.status == 200
    assert "Nothing can be sent: the webhook&#39;s secret cannot be decrypted" in page.html
    assert "The delivery would wait, and use up no attempt" in page.html


async def test_a_paused_webhook_is_examined_with_a_note(maria: Guest, box: Inbox) -> None:
    webhook = await maria.webhook(f"{box.url}/hook")
    path = f"/console/webhooks/{webhook.id}"
    await maria.submit(f"{path}/pause", at=path)
    page = await examine(maria, webhook.id)
    assert "The webhook is not active" in page.html
    assert len(box.got) == 1


@pytest.fixture
async def box() -> AsyncIterator[Inbox]:
    async with inbox() as other:
        yield other
