"""The programs of recipes.md: what they do with events that come twice, late or in disorder."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import sys
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from outbox import database
from outbox.clock import SystemClock
from outbox.ids import Ids
from outbox.sending.request import new_secret, sign_standard
from tests.docs.receivers import EXAMPLES, Running, started
from tests.docs.test_receivers import certified
from tests.support.carts import sell
from tests.support.checkouts import put
from tests.support.databases import SqliteFiles
from tests.support.drain import inbox
from tests.support.process import free_port
from tests.support.provider import stage
from tests.support.rest import UNLIMITED, Person, RestApi
from tests.support.shop import Shop, open_shop
from tests.support.site import serving

SECRET = new_secret(b"r" * 32)
BAD = "v1,AAAA"


def running(name: str, folder: Path, **settings: str) -> AbstractAsyncContextManager[Running]:
    """Run a recipe."""
    words = (sys.executable, str(EXAMPLES / "recipes" / f"{name}.py"))
    settings |= {"PYTHONPATH": str(EXAMPLES / "receivers" / "python")}
    return started(words, folder, free_port(), **settings)


async def deliver(
    there: Running,
    event_id: str,
    name: str,
    data: Mapping[str, Any],
    version: int = 1,
    **changed: str,
) -> int:
    """Send an event as Carteiro does; return the status."""
    now = int(time.time())
    body = json.dumps({"event": name, "timestamp": now, "data": data}).encode()
    headers = {
        "webhook-id": event_id, "webhook-timestamp": str(now),
        "webhook-signature": sign_standard([SECRET], event_id, now, body),
        "X-Webhook-Record-Version": str(version), "Content-Type": "application/json",
        **{header.replace("_", "-"): text for header, text in changed.items()},
    }  # fmt: skip
    async with (
        aiohttp.ClientSession() as http,
        http.post(there.url, data=body, headers=headers) as answer,
    ):
        return answer.status


async def test_a_won_deal_is_told_once(tmp_path: Path) -> None:
    async with inbox() as chat:
        settings = {"WEBHOOK_SECRET": SECRET, "CHAT_URL": chat.url}
        down = asyncio.Event()

        async def answer(_: web.Request) -> web.Response:
            return web.Response(status=503 if down.is_set() else 200)

        chat.answer = answer
        async with running("deal_to_chat", tmp_path, **settings) as there:
            won = {"id": "d1", "title": "Coffee machines"}
            for _ in range(3):
                assert await deliver(there, "e1", "deal.updated", won) == 204
            assert await deliver(there, "e2", "deal.updated", won, webhook_signature=BAD) == 401
            await chat.until(1)
            # The chat is away, and the program ends meanwhile: the message is not lost.
            down.set()
            assert await deliver(there, "e4", "deal.updated", {"id": "d2", "title": "Beans"}) == 204
            await chat.until(2)
        down.clear()
        async with running("deal_to_chat", tmp_path, **settings):
            await chat.until(3)
        told = [json.loads(got.body)["text"] for got in chat.got]
        assert told == ["Deal won: Coffee machines", "Deal won: Beans", "Deal won: Beans"]


@pytest.fixture
async def api(tmp_path: Path, sqlite_files: SqliteFiles) -> AsyncIterator[RestApi]:
    url = await sqlite_files.fresh(tmp_path)
    db = await database.open(url, clock=SystemClock(), ids=Ids(), serving=True)
    async with serving(db, UNLIMITED) as site:
        yield RestApi(site)
    await db.close()


def stored(folder: Path) -> dict[str, tuple[int, Any]]:
    """Return the version and the fields of each record of the ERP."""
    db = sqlite3.connect(folder / "erp.db")
    rows = db.execute("select id, version, fields from records").fetchall()
    db.close()
    return {key: (version, fields and json.loads(fields)) for key, version, fields in rows}


async def test_an_erp_has_what_carteiro_has(api: RestApi, tmp_path: Path) -> None:
    ana = await api.person()
    before = [await _made(ana, f"Before {number}") for number in range(120)]
    settings = {
        "CARTEIRO_URL": api.site.url, "CARTEIRO_KEY": ana.headers["X-API-Key"],
        "WEBHOOK_SECRET": SECRET,
    }  # fmt: skip
    async with running("erp_sync", tmp_path, **settings) as there:
        new = await _made(ana, "New")
        path = f"/api/contacts/{new}"
        assert (await ana.call("PATCH", path, {"name": "Newer"})).status == 200
        # The update comes first, then the creation, late and twice.
        for event, version in (("updated", 2), ("created", 1), ("created", 1)):
            status = await deliver(there, f"e{version}", f"contact.{event}", {"id": new}, version)
            assert status == 204
        assert set(stored(tmp_path)) == {*before, new}
        version, fields = stored(tmp_path)[new]
        assert (version, fields["name"]) == (2, "Newer")
        assert (await ana.delete(path)).status == 200
        assert await deliver(there, "e3", "contact.deleted", {"id": new}, 3) == 204
        # What was under way before the deletion comes after it.
        assert await deliver(there, "e2", "contact.updated", {"id": new}, 2) == 204
        assert stored(tmp_path)[new] == (3, None)
        late = await deliver(there, "e9", "contact.updated", {"id": new}, 2, webhook_signature=BAD)
        assert late == 401


@pytest.mark.proof
@pytest.mark.parametrize("name", ["deal_to_chat", "erp_sync"])
async def test_a_recipe_that_receives_is_certified(name: str, api: RestApi, tmp_path: Path) -> None:
    ana = await api.person()
    async with inbox() as chat:
        settings = {
            "CARTEIRO_URL": api.site.url, "CARTEIRO_KEY": ana.headers["X-API-Key"],
            "WEBHOOK_SECRET": SECRET, "CHAT_URL": chat.url,
        }  # fmt: skip
        async with running(name, tmp_path, **settings) as there:
            await certified(there.url, SECRET, tmp_path)


async def _made(owner: Person, name: str) -> str:
    made = await owner.post("/api/contacts", {"name": name})
    assert made.status == 201, made.text
    return str(made.body["id"])


async def _ordered(shop: Shop) -> dict[str, Any]:
    browser = shop.browser()
    await put(browser, await sell(shop, 30, stock=10))
    buyer = {"email": "maria@example.com", "name": "Maria", "paymentMethod": "pix"}
    answer = await browser.do("checkout", "order { number payment { pixCode } }", **buyer)
    found: dict[str, Any] = answer.data["checkout"]["order"]
    return found


async def test_a_pix_pays_its_order(api: RestApi, tmp_path: Path) -> None:
    shop = await open_shop(api, pixKey="pix@shop.example.com")
    try:
        secret = await stage(shop)
        order = await _ordered(shop)
        txid = order["number"].replace("-", "")
        assert txid in order["payment"]["pixCode"]
        settings = {
            "CARTEIRO_URL": api.site.url, "STORE_ID": shop.store["id"], "PAYMENT_SECRET": secret,
        }  # fmt: skip
        async with running("pix_report", tmp_path, **settings) as there:
            pix = {"endToEndId": "E123", "txid": txid, "valor": "30.00"}
            wrong = {**pix, "endToEndId": "E000", "valor": "1.00"}
            other = {**pix, "endToEndId": "E999", "txid": "SOMETHINGELSE"}
            for body in ([wrong, other], [pix], [pix]):
                async with (
                    aiohttp.ClientSession() as http,
                    http.post(there.url, json={"pix": body}) as said,
                ):
                    assert said.status == 200
            assert there.process.stdout is not None
            lines = [await there.process.stdout.readline() for _ in range(3)]
        assert [line.rstrip()[-5:-1] for line in lines] == [b" 400", b" 200", b" 200"]
        [found] = (await shop.owner.get("/api/orders")).body["data"]
        assert (found["number"], found["status"]) == (order["number"], "paid")
    finally:
        await shop.close()
