"""What visitors of a store do arrives at the webhook of its owner, through the running product."""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from standardwebhooks import Webhook, WebhookVerificationError

from gateway.domain.accounts import api_keys, users
from gateway.domain.catalogue import EVENT_NAMES
from outbox import database, webhooks
from outbox.clock import SystemClock
from outbox.database.migrate import migrate
from outbox.database.transaction import Tx
from outbox.ids import Ids
from outbox.sending.request import new_secret
from outbox.webhooks import Draft
from outbox.webhooks.key_files import read_key_file, write_key_file
from outbox.webhooks.secrets import KeyRing
from tests.support.checkouts import BUYER, PASSWORD
from tests.support.databases import SOURCES
from tests.support.engines import Engine, empty_database
from tests.support.product import Product
from tests.support.receiver import Received, Receiver, receiver
from tests.support.rest import Person
from tests.support.shop import Browser

STEPS = {
    "lead": ["contact.created"],
    "lead again": ["contact.updated"],
    "signup": ["contact.created"],
    "checkout": ["contact.created", "deal.created", "invoice.created"],
    "payment": ["invoice.paid", "deal.updated"],
    "second checkout": ["deal.created", "invoice.created"],
    "cancellation": ["invoice.updated", "deal.updated"],
}
"""The events of each step, for the store's owner alone."""


@dataclass
class Owner:
    """An account with an API key and a webhook for every event."""

    key: str
    secret: str


async def run_steps(engine: Engine) -> dict[str, Any]:
    """Do each step at the running product, and return the record of what its webhook received."""
    findings: list[str] = []
    with tempfile.TemporaryDirectory(prefix="carteiro-shop-") as home:
        folder = Path(home)
        async with (
            empty_database(engine, folder) as url,
            receiver() as hers,
            receiver() as another,
        ):
            owner = await _settle(url, folder, hers.url, another.url)
            hers.secret = owner.secret
            product = Product(folder, url, folder / "carteiro.key")
            try:
                await product.start()
                counted = await _steps(product.address, owner, hers, findings)
                await product.stop()
            finally:
                await product.close()
            findings += _judged(hers.requests, owner)
            if another.requests:
                findings.append(f"another account received {len(another.requests)} deliveries")
            if _verifies(hers.requests[0], new_secret(b"x" * 32)):
                findings.append("a delivery verifies with another secret: the check proves nothing")
    return {"deliveries": counted, "findings": findings, "pass": not findings}


async def _settle(url: str, folder: Path, place: str, another: str) -> Owner:
    """Create the store's owner and another account, each with a webhook."""
    clock, ids = SystemClock(), Ids()
    write_key_file(folder / "carteiro.key", ids, clock.wall())
    ring = read_key_file(folder / "carteiro.key", ids)
    db = await database.open(url, clock=clock, ids=ids)
    try:
        await migrate(db, SOURCES)
        await db.write(_account, "other@example.com", another, ids, ring)
        return await db.write(_account, "owner@example.com", place, ids, ring)
    finally:
        await db.close()


async def _account(tx: Tx, email: str, place: str, ids: Ids, ring: KeyRing) -> Owner:
    owner_id = await users.add(tx, email=email, name="Owner", password_hash="x")
    owner = Owner(api_keys.make(ids), new_secret(ids.token(32)))
    await api_keys.add(
        tx, owner_id=owner_id, name="shop", text=owner.key, scopes=["read", "write"],
        expires_at=None,
    )  # fmt: skip
    draft = Draft(url=f"{place}/hook", events=EVENT_NAMES)
    await webhooks.create(tx, owner_id=owner_id, draft=draft, secret=owner.secret, ring=ring)
    return owner


async def _steps(address: str, owner: Owner, hers: Receiver, findings: list[str]) -> dict[str, int]:
    """Do the steps one by one, and compare the events that arrive after each."""
    async with aiohttp.ClientSession(address) as http:
        rest = Person(http, "", {"X-API-Key": owner.key})
        store = (await rest.post("/api/stores", {"hostname": "shop.example", "name": "Shop"})).body
        body = {"name": "Coffee", "price": 89.9, "stock": 5, "storeId": store["id"]}
        made = (await rest.post("/api/products", body)).body
        await hers.wait(1)
        browser = Browser(address, "shop.example")
        try:
            for step, wanted in STEPS.items():
                known = len(hers.requests)
                await _step(step, browser, rest, made["id"])
                await hers.wait(known + len(wanted))
                found = [_event(one) for one in hers.requests[known:]]
                if Counter(found) != Counter(wanted):
                    findings.append(f"{step}: {found}, wanted {wanted}")
        finally:
            await browser.close()
    return dict(Counter(map(_event, hers.requests)))


async def _step(step: str, browser: Browser, rest: Person, product_id: str) -> None:
    lead = {"email": "lead@example.com", "name": "Lead", "source": "footer"}
    match step:
        case "lead":
            assert (await browser.do("lead", "success", **lead)).data
        case "lead again":
            assert (await browser.do("lead", "success", **lead, phone="11 98888-7777")).data
        case "signup":
            who = {"name": "Ana", "email": "ana@example.com", "password": PASSWORD}
            assert (await browser.do("clientSignup", "token", **who)).data
        case "checkout" | "second checkout":
            sold = await browser.ask("products(hostname: $h) { nodes { id } } ")
            [node] = sold["products"]["nodes"]
            put = await browser.do(
                "shoppingCartAddProduct", "shoppingCart { total }", productId=node["id"]
            )
            assert put.data
            assert (await browser.do("checkout", "order { number }", **BUYER)).data
        case "payment":
            [order] = (await rest.get("/api/orders")).body["data"]
            assert (await rest.post(f"/api/invoices/{order['invoiceId']}/pay", {})).status == 200
            assert (await rest.get(f"/api/products/{product_id}")).body["stock"] == 4
        case "cancellation":
            order = (await rest.get("/api/orders?status=pending")).body["data"][0]
            done = await browser.do("orderCancel", "order { status }", number=order["number"])
            assert done.data["orderCancel"]["order"]["status"] == "canceled"


def _judged(requests: list[Received], owner: Owner) -> list[str]:
    """Return what is wrong with the deliveries: a signature, a repeat."""
    findings = [
        f"{_event(one)} is not signed" for one in requests if not _verifies(one, owner.secret)
    ]
    ids = [_header(one, "X-Webhook-Id") for one in requests]
    if len(set(ids)) != len(ids):
        findings.append(f"{len(ids)} deliveries of {len(set(ids))} events")
    return findings


def _verifies(one: Received, secret: str) -> bool:
    try:
        Webhook(secret).verify(one.body, dict(one.headers))
    except WebhookVerificationError:
        return False
    return True


def _event(one: Received) -> str:
    return str(json.loads(one.body)["event"])


def _header(one: Received, name: str) -> str:
    return next(value for known, value in one.headers if known.lower() == name.lower())


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
async def test_each_step_ends_in_its_deliveries(engine: Engine) -> None:
    told = await run_steps(engine)
    assert told["pass"], told
