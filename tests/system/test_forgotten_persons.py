"""A person is erased from a running server: files, log and metrics hold nothing of it any more."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp
import asyncpg
from aiohttp import web

from gateway.records.values.global_ids import global_id
from outbox.database.transaction import Tx
from tests.support.checkouts import ADDRESS, PASSWORD, PAYLOAD, RULES
from tests.support.crm_rows import add_activities
from tests.support.deployed import Deployed, deployed
from tests.support.drain import Inbox, inbox
from tests.support.engines import Engine
from tests.support.faults import ENGINES
from tests.support.product import Product
from tests.support.shop import Browser
from tests.support.waiting import until

NAME = "Zenóbia Quuxley"
EMAIL = "Zenobia@quux.example"
PHONE = "(11) 97777-1234"
TRACES = ("zenóbia", "zenobia", "quux", "97777-1234", "977771234", "97777 1234")
KEPT_SECONDS = 90.0
SUBSCRIBED = (
    "contact.created", "contact.updated", "contact.deleted", "deal.created", "deal.updated",
    "task.created", "invoice.created",
)  # fmt: skip
MAIL = {
    "CARTEIRO_MAIL__HOST": "127.0.0.1", "CARTEIRO_MAIL__PORT": "9",
    "CARTEIRO_MAIL__FROM_ADDRESS": "shop@example.com",
}  # fmt: skip
TABLES = "select tablename from pg_tables where schemaname = 'public'"
BYTES = """
select attname from pg_attribute where attrelid = $1::regclass and atttypid = 'bytea'::regtype
  and attnum > 0
"""


class Owner:
    """An owner of the running server, by API key."""

    def __init__(self, product: Product, owner_id: str, key: str) -> None:
        self.id = owner_id
        self.made = 0
        self.http = aiohttp.ClientSession(product.address, headers={"X-API-Key": key})

    async def call(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        named = {name.replace("_", "-"): text for name, text in headers.items()}
        async with self.http.request(method, path, json=body, headers=named) as answer:
            shown = await answer.json()
            assert answer.status < 300, (method, path, answer.status, shown)
            return shown

    async def make(self, plural: str, **body: Any) -> Any:
        self.made += 1
        # Every other key names the person, too.
        key = f"{plural}-{self.made}-{EMAIL if self.made % 2 else ''}."
        return await self.call("POST", f"/api/{plural}", body, Idempotency_Key=key)

    async def erased(self, contact_id: str) -> Any:
        """Wait until the erasure is done; return the certificate."""
        erasure = await self.call("POST", f"/api/contacts/{contact_id}/erase")
        return await self.done(erasure["id"])

    async def done(self, erasure_id: str, seconds: float = KEPT_SECONDS) -> Any:
        async with asyncio.timeout(seconds):
            while (certificate := await self.call("GET", f"/api/erasures/{erasure_id}"))[
                "state"
            ] != "done":
                await asyncio.sleep(0.05)
        return certificate


@dataclass
class World:
    """A server, its owner, and a receiver that repeats what it gets and fails every other time."""

    site: Deployed
    owner: Owner
    box: Inbox

    @property
    def bodies(self) -> list[dict[str, Any]]:
        return [json.loads(got.body) for got in self.box.got]

    async def until_told(self) -> dict[str, Any]:
        """Wait for the event about the person; return it."""
        await until(lambda: any(map(told, self.bodies)), KEPT_SECONDS)
        [news] = [one for one in self.bodies if told(one)]
        return news


@asynccontextmanager
async def world(engine: Engine) -> AsyncIterator[World]:
    async with inbox() as box:

        async def answer(request: web.Request) -> web.Response:
            body = await request.read()
            status = 500 if len(box.got) % 2 and "operational" not in request.path else 200
            echo = {"X-Echo": EMAIL} if EMAIL.encode() in body else {}
            return web.Response(status=status, body=body, headers=echo)

        box.answer = answer
        async with deployed(
            engine, 29, ports=[int(box.url.rpartition(":")[2])], owners=1, webhooks=3,
            events=SUBSCRIBED, settings=MAIL, started=False,
        ) as site:  # fmt: skip
            [(owner_id, key)] = site.tenants.keys.items()
            _, paused, operational = site.tenants.webhooks[owner_id]
            await site.run(_pause, paused)
            await site.run(_listen, operational)
            await site.product.start()
            owner = Owner(site.product, owner_id, key)
            try:
                yield World(site, owner, box)
            finally:
                await owner.http.close()


async def _pause(tx: Tx, webhook_id: str) -> None:
    await tx.run("update webhooks set state = 'paused' where id = $1", webhook_id)
    await tx.run("update lanes set active = false where webhook_id = $1", webhook_id)


async def _listen(tx: Tx, webhook_id: str) -> None:
    """Make a webhook operational, with the event about persons."""
    await tx.run(
        "update webhooks set operational = true, events = $2, url = url || '/operational'"
        " where id = $1",
        webhook_id, '["person.erased"]',
    )  # fmt: skip


async def written(there: World) -> str:
    """Write the person everywhere by API and storefront; return the id of the contact."""
    owner = there.owner
    contact = await owner.make(
        "contacts", name=NAME, email=EMAIL, phone=PHONE, notes=f"{NAME} likes tea."
    )
    contact_id = str(contact["id"])
    await owner.call("PATCH", f"/api/contacts/{contact_id}", {"position": "Quuxley's boss"})
    await owner.make("contacts", name="Z. Quuxley", email=EMAIL.lower())
    await owner.make(
        "activities", type="call", description=f"Called {NAME}", relatedTo=contact_id,
        relatedType="contact",
    )  # fmt: skip
    await owner.make("deals", title=f"Deal of {NAME}", value=10, contactIds=[contact_id])
    await owner.make("tasks", title="Call Zenóbia", contactId=contact_id)
    items = [{"description": f"Gift for {NAME}", "quantity": 1, "unitPrice": 5}]
    await owner.make(
        "invoices", contactId=contact_id, items=items, notes=EMAIL, dueDate="2030-01-01"
    )
    await owner.make("quotes", contactId=contact_id, items=items, notes=f"For {PHONE}")
    store = await owner.call(
        "POST", "/api/stores",
        {"hostname": "shop.example", "name": "Shop", "shippingRules": RULES, "orderMails": True},
    )  # fmt: skip
    product = await owner.call(
        "POST", "/api/products",
        {"name": "Tea", "price": 30, "stock": 100, "storeId": store["id"], "published": True},
    )  # fmt: skip
    modal = await owner.call(
        "POST", "/api/discount-modals",
        {"storeId": store["id"], "title": "10%", "prefix": "TEN", "discountPercentage": 10},
    )  # fmt: skip
    browser = Browser(there.site.product.address, "shop.example")
    try:
        sent = {"email": EMAIL, "name": NAME, "phone": PHONE, "discountModalId": modal["globalId"]}
        assert (await browser.do("saveDiscountModalUserData", "couponCode", **sent)).data
    finally:
        await browser.close()
    # An import that waits keeps its lines.
    async with owner.http.post(
        "/api/import/contacts?hold=true", data=f"name,email\n{NAME},{EMAIL}\n".encode(),
        headers={"Content-Type": "text/csv"},
    ) as answer:  # fmt: skip
        assert answer.status == 202, await answer.text()
    for signed in (False, True):
        browser = Browser(there.site.product.address, "shop.example")
        try:
            await _shop(browser, global_id("Product", product["id"]), signed=signed)
        finally:
            await browser.close()
    return contact_id


async def _shop(browser: Browser, product: str, *, signed: bool) -> None:
    if signed:
        account = {"name": NAME, "email": EMAIL, "phone": PHONE, "password": PASSWORD}
        assert (await browser.do("clientSignup", "token", **account)).data
        address = {**ADDRESS, "street": "Rua Quux"}
        assert (await browser.do("clientAddressSave", "address { id }", **address, name=NAME)).data
        review = {"productId": product, "stars": 5, "text": "Zenóbia loves it."}
        assert (await browser.do("createReview", "review { id }", **review)).data
    assert (await browser.do("lead", "success", email=EMAIL, name=NAME, phone=PHONE)).data
    added = await browser.do(
        "shoppingCartAddProduct", "shoppingCart { id }", productId=product, quantity=1
    )
    assert added.data
    shipping = {"cep": ADDRESS["cep"], "type": "express"}
    assert (await browser.do("shoppingCartSetShipping", "shoppingCart { id }", **shipping)).data
    buyer = {
        "email": EMAIL, "name": NAME, "phone": PHONE, "notes": "For Zenobia.",
        "address": {**ADDRESS, "street": "Rua Quux"}, "idempotencyKey": f"key {EMAIL}",
    }  # fmt: skip
    assert (await browser.do("checkout", PAYLOAD, **buyer)).data


async def exported(owner: Owner, contact_id: str) -> None:
    """The file names the person in each of its parts; its request is in the log."""
    assert (await owner.call("GET", f"/api/contacts?search={EMAIL}"))["total"] >= 2
    async with owner.http.get(f"/api/contacts/{contact_id}/data-export") as answer:
        assert answer.status == 200
        assert "attachment" in answer.headers["Content-Disposition"]
        file = await answer.json()
    parts = (
        "contacts", "clients", "activities", "deals", "tasks", "invoices", "quotes", "orders",
        "reviews", "coupons", "mails", "events", "audit",
    )  # fmt: skip
    assert [part for part in parts if not file.get(part)] == []
    assert len(file["orders"]) == 2
    assert any(one["deliveries"] for one in file["events"])
    assert all(one["recordId"] for one in file["audit"])


def traces_in(data: bytes) -> list[str]:
    """Return what stands around each trace in some bytes."""
    found = []
    for trace in TRACES:
        for form in {trace, trace.upper(), trace.title()}:
            place = data.find(form.encode())
            if place >= 0:
                found.append(f"{form}: {data[max(place - 60, 0) : place + 60]!r}")
    return found


async def traces_at(site: Deployed) -> dict[str, list[str]]:
    """Return the traces in the files of the database, or in its tables and statistics."""
    if site.engine == "sqlite":
        files = {end: (site.folder / f"carteiro.db{end}").read_bytes() for end in ("", "-wal")}
        return {name: found for name, data in files.items() if (found := traces_in(data))}
    left: dict[str, list[str]] = {}
    # One connection for all: what waits would be over otherwise.
    connection = await asyncpg.connect(site.url)
    try:
        tables = await connection.fetch(TABLES)
        for name in [*(row[0] for row in tables), "pg_stats"]:
            rows = await connection.fetch(f'select t::text from "{name}" t')
            lines = [row[0].encode() for row in rows]
            # Bytes are shown in hex there.
            for (column,) in await connection.fetch(BYTES, name):
                rows = await connection.fetch(f'select "{column}" from "{name}"')
                lines += [bytes(row[0]) for row in rows if row[0] is not None]
            if traces := [trace for line in lines for trace in traces_in(line)]:
                left[name] = traces
    finally:
        await connection.close()
    return left


@ENGINES
async def test_nothing_of_an_erased_person_is_left_in_the_files(engine: Engine) -> None:
    async with world(engine) as there:
        contact_id = await written(there)
        await until(lambda: len(there.box.got) > 6, KEPT_SECONDS)
        assert await traces_at(there.site)
        await exported(there.owner, contact_id)
        certificate = await there.owner.erased(contact_id)
        assert certificate["seal"]["intact"]
        counts = {"importLines": 1, "contacts": 2, "clients": 1}
        assert counts.items() <= certificate["erased"].items()
        assert certificate["erased"]["events"] > 2
        assert await traces_at(there.site) == {}
        assert traces_in(there.site.product.log.read_bytes()) == []
        _, metrics = await there.site.product.get("/metrics")
        assert traces_in(metrics.encode()) == []
        assert traces_in(json.dumps(certificate).encode()) == []
        assert await there.owner.call("POST", f"/api/contacts/{contact_id}/erase") == certificate
        news = await there.until_told()
        assert news["data"]["id"] == certificate["id"]
        assert contact_id in news["data"]["recordIds"]
        assert traces_in(json.dumps(news).encode()) == []


def told(body: dict[str, Any]) -> bool:
    return bool(body["event"] == "person.erased")


ACTIVITIES, DEALS = 400, 60


@ENGINES
async def test_an_erasure_that_is_killed_ends_with_the_same_certificate(engine: Engine) -> None:
    """Killed at five moments; each record is counted once."""
    async with world(engine) as there:
        owner, site = there.owner, there.site
        contact = await owner.make("contacts", name=NAME, email=EMAIL)
        for number in range(DEALS):
            title = f"{NAME} {number}"
            await owner.make("deals", title=title, value=1, contactIds=[contact["id"]])
        await site.run(add_activities, owner.id, ACTIVITIES, contact["id"])
        erasure = await owner.call("POST", f"/api/contacts/{contact['id']}/erase")
        for _ in range(5):
            await asyncio.sleep(site.dice.random() * 0.4)
            site.product.kill()
            await site.product.ended()
            await site.product.start()
        certificate = await owner.done(erasure["id"])
        # contact.created, and deal.created of each deal.
        counts = {"contacts": 1, "activities": ACTIVITIES, "events": 1 + DEALS}
        assert counts.items() <= certificate["erased"].items()
        kept = {one["what"]: one.get("count") for one in certificate["kept"]}
        assert kept["deals"] == DEALS
        assert certificate["seal"]["intact"]
        await there.until_told()
