"""A person is erased from a running server: files, log and metrics hold nothing of it any more."""

from __future__ import annotations

import asyncio
import json
import random
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import asyncpg
import pytest
from aiohttp import web

from gateway.records.values.global_ids import global_id
from outbox import database
from outbox.clock import SystemClock
from outbox.database.transaction import Tx
from outbox.ids import Ids
from tests.support.checkouts import ADDRESS, PASSWORD, PAYLOAD, RULES
from tests.support.crm_rows import add_activities
from tests.support.engines import Engine, empty_database
from tests.support.product import Product
from tests.support.shop import Browser
from tests.support.tenants import settle_in

NAME = "Zenóbia Quuxley"
EMAIL = "Zenobia@quux.example"
PHONE = "(11) 97777-1234"
TRACES = ("zenóbia", "zenobia", "quux", "97777-1234", "977771234", "97777 1234")
KEPT_SECONDS = 90.0


@dataclass
class Receiver:
    """A receiver that repeats what it gets, in header and body, and fails every other time."""

    url: str = ""
    got: list[dict[str, Any]] = field(default_factory=list)
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    async def answer(self, request: web.Request) -> web.Response:
        body = await request.read()
        self.got.append(json.loads(body))
        self.changed.set()
        status = 500 if len(self.got) % 2 and "operational" not in request.path else 200
        echo = {"X-Echo": EMAIL} if EMAIL.encode() in body else {}
        return web.Response(status=status, body=body, headers=echo)

    async def until(self, enough: Callable[[list[dict[str, Any]]], bool]) -> None:
        async with asyncio.timeout(KEPT_SECONDS):
            while not enough(self.got):
                self.changed.clear()
                await self.changed.wait()


@asynccontextmanager
async def receiving() -> AsyncIterator[Receiver]:
    receiver = Receiver()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", receiver.answer)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    receiver.url = str(runner.addresses[0][1])
    try:
        yield receiver
    finally:
        await runner.cleanup()


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

    async def done(self, erasure_id: str) -> Any:
        async with asyncio.timeout(KEPT_SECONDS):
            while (certificate := await self.call("GET", f"/api/erasures/{erasure_id}"))[
                "state"
            ] != "done":
                await asyncio.sleep(0.05)
        return certificate


@dataclass
class World:
    url: str
    folder: Path
    product: Product
    owner: Owner
    receiver: Receiver

    async def run(self, unit: Callable[..., Any], *args: Any) -> Any:
        """Run a unit beside the server."""
        db = await database.open(self.url, clock=SystemClock(), ids=Ids())
        try:
            return await db.write(unit, *args)
        finally:
            await db.close()


@asynccontextmanager
async def world(engine: Engine) -> AsyncIterator[World]:
    with tempfile.TemporaryDirectory(prefix="carteiro-forget-") as home:
        folder = Path(home)
        async with empty_database(engine, folder) as url, receiving() as receiver:
            events = (
                "contact.created", "contact.updated", "contact.deleted", "deal.created",
                "deal.updated", "task.created", "invoice.created",
            )  # fmt: skip
            tenants = await settle_in(
                url, folder, [int(receiver.url)], owners=1, webhooks=3, events=events
            )
            [(owner_id, key)] = tenants.keys.items()
            product = Product(
                folder, url, tenants.key_file,
                environment={
                    "CARTEIRO_MAIL__HOST": "127.0.0.1", "CARTEIRO_MAIL__PORT": "9",
                    "CARTEIRO_MAIL__FROM_ADDRESS": "shop@example.com",
                },
            )  # fmt: skip
            there = World(url, folder, product, None, receiver)  # type: ignore[arg-type]
            _, paused, operational = tenants.webhooks[owner_id]
            await there.run(_pause, paused)
            await there.run(_listen, operational)
            await product.start()
            there.owner = Owner(product, owner_id, key)
            try:
                yield there
            finally:
                await there.owner.http.close()
                await product.close()


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
    browser = Browser(there.product.address, "shop.example")
    try:
        sent = {"email": EMAIL, "name": NAME, "phone": PHONE, "discountModalId": modal["globalId"]}
        assert (await browser.do("saveDiscountModalUserData", "couponCode", **sent)).data
    finally:
        await browser.close()
    # A dry run keeps its lines.
    async with owner.http.post(
        "/api/import/contacts?dryRun=true", data=f"name,email\n{NAME},{EMAIL}\n".encode(),
        headers={"Content-Type": "text/csv"},
    ) as answer:  # fmt: skip
        assert answer.status == 202, await answer.text()
    for signed in (False, True):
        browser = Browser(there.product.address, "shop.example")
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


async def rows_with_traces(url: str) -> dict[str, list[str]]:
    """Return the traces that the tables and statistics of a PostgreSQL database show."""
    connection = await asyncpg.connect(url)
    try:
        tables = await connection.fetch("select tablename from pg_tables where schemaname='public'")
        left: dict[str, list[str]] = {}
        for name in [*(row[0] for row in tables), "pg_stats"]:
            for row in await connection.fetch(f'select t::text as line from "{name}" t'):
                line = row["line"]
                # Bytes are shown in hex.
                text = line.encode() + bytes.fromhex("".join(c for c in line if False))
                if found := traces_in(text):
                    left.setdefault(name, []).extend(found)
            for row in await connection.fetch(
                "select attname from pg_attribute where attrelid = $1::regclass and atttypid ="
                " 'bytea'::regtype and attnum > 0",
                name,
            ):
                column = row["attname"]
                for value in await connection.fetch(f'select "{column}" as v from "{name}"'):
                    if value["v"] is not None and (found := traces_in(bytes(value["v"]))):
                        left.setdefault(f"{name}.{column}", []).extend(found)
        return left
    finally:
        await connection.close()


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
async def test_nothing_of_an_erased_person_is_left_in_the_files(engine: Engine) -> None:
    async with world(engine) as there:
        contact_id = await written(there)
        await there.receiver.until(lambda got: len(got) > 6)
        if engine == "sqlite":
            before = (there.folder / "carteiro.db-wal").read_bytes()
            assert traces_in(before)
        else:
            assert await rows_with_traces(there.url)
        await exported(there.owner, contact_id)
        certificate = await there.owner.erased(contact_id)
        assert certificate["seal"]["intact"]
        assert certificate["erased"]["importLines"] == 1
        assert certificate["erased"]["contacts"] == 2
        assert certificate["erased"]["clients"] == 1
        assert certificate["erased"]["events"] > 2
        if engine == "sqlite":
            for suffix in ("", "-wal"):
                data = (there.folder / f"carteiro.db{suffix}").read_bytes()
                assert traces_in(data) == [], suffix
        else:
            assert await rows_with_traces(there.url) == {}
        assert traces_in(there.product.log.read_bytes()) == []
        async with there.owner.http.get("/metrics") as answer:
            assert traces_in(await answer.read()) == []
        assert traces_in(json.dumps(certificate).encode()) == []
        again = await there.owner.call("POST", f"/api/contacts/{contact_id}/erase")
        assert again == certificate
        await there.receiver.until(lambda got: any(told(one) for one in got))
        [news] = [one for one in there.receiver.got if told(one)]
        assert news["data"]["id"] == certificate["id"]
        assert contact_id in news["data"]["recordIds"]
        assert traces_in(json.dumps(news).encode()) == []


def told(body: dict[str, Any]) -> bool:
    return bool(body["event"] == "person.erased")


ACTIVITIES, DEALS = 400, 60


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
async def test_an_erasure_that_is_killed_ends_with_the_same_certificate(engine: Engine) -> None:
    """Killed at five moments; each record is counted once."""
    moments = random.Random(29)
    async with world(engine) as there:
        owner, product = there.owner, there.product
        contact = await owner.make("contacts", name=NAME, email=EMAIL)
        for number in range(DEALS):
            title = f"{NAME} {number}"
            await owner.make("deals", title=title, value=1, contactIds=[contact["id"]])
        await there.run(_activities, owner.id, contact["id"])
        erasure = await owner.call("POST", f"/api/contacts/{contact['id']}/erase")
        for _ in range(5):
            await asyncio.sleep(moments.random() * 0.4)
            product.kill()
            await product.ended()
            await product.start()
        certificate = await owner.done(erasure["id"])
        assert certificate["erased"]["contacts"] == 1
        assert certificate["erased"]["activities"] == ACTIVITIES
        # contact.created, and deal.created of each deal.
        assert certificate["erased"]["events"] == 1 + DEALS
        assert {"deals": DEALS}.items() <= {
            one["what"]: one.get("count") for one in certificate["kept"]
        }.items()
        assert certificate["seal"]["intact"]
        await there.receiver.until(lambda got: any(told(one) for one in got))


async def _activities(tx: Tx, owner_id: str, contact_id: str) -> None:
    await add_activities(tx, owner_id, ACTIVITIES, contact_id)
