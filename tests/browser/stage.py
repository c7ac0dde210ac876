"""An owner with something on every page of the console, and the addresses of all pages.

The addresses come from the router, so that a new page is visited without a line here. Names, values
and answers of receivers are as long as they may be.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from math import pi, sin
from typing import Any

import msgspec
from aiohttp import web

from gateway.domain.accounts import account_tokens, users
from gateway.domain.catalogue import RESOURCES
from gateway.domain.imports.importing import Importing
from gateway.domain.privacy.persons import Persons
from gateway.records import audit
from gateway.records.audit import Actor
from gateway.server.app_keys import KEYRING
from gateway.server.config import Connect, Retry, Service
from outbox.database.transaction import Tx
from outbox.durations import DAY, HOUR
from outbox.queue.state.attempt_counts import STEP
from outbox.webhooks.operational import NAMES
from tests.gateway.console.webhooks.test_connect import Zappy
from tests.support import orders
from tests.support.codes import enrol
from tests.support.console import CONFIG, Guest
from tests.support.drain import Inbox, make, rows
from tests.support.figures import fill
from tests.support.process import free_port
from tests.support.provider import adapter
from tests.support.provider import stage as stage_secret
from tests.support.rest import Person, RestApi
from tests.support.shop import Shop
from tests.support.site import HASHED, Site
from tests.support.stocked import stock
from tests.support.waiting import until

APP = Zappy("https://zappy.example", "https://hooks.zappy.example")
HOUSE = msgspec.structs.replace(
    CONFIG,
    # The longest name that a configuration may give.
    service=Service(name="Carteiro-" + "W" * 31),
    connect=Connect((APP.app,)),
    # What failed once stays as it is while the pages are looked at.
    retry=Retry(schedule=(3600.0, 7200.0)),
)
EMAIL = "m" * 60 + "@" + ".".join(["example" * 8] * 3) + ".com"
LONG = "Companhia Brasileira de Torrefação e Comércio de Cafés Especiais do Sul de Minas " * 2
HOSTILE = "<img src=x onerror=alert(1)>\u202e" + "W" * 60
WIDE = "W" * 180
ITEMS = [
    {"description": "Café torrado em grãos, pacote de 1 kg", "quantity": 12.5, "unitPrice": 89.9},
    {"description": "Entrega", "quantity": 1, "unitPrice": 35, "discount": 5},
]
PAGES = re.compile(
    r"/console/(?!static|sign-in|first-account|forgotten-password|reset-password|confirm-email)"
)
NO_PAGES = re.compile(
    r"/suggest$|/pdf$|\.txt$|\.csv$|/file$|/export$|/login$|/made$|/changes$|/console$"
)
"""Files, parts of a page, what only the form before it shows, and the first page of all."""
ALIKE = re.compile(
    r"/console/(?:"
    r"(?:activities|categories|clients|companies|coupons|discount-modals|ebooks|invoices|products)"
    r"|(?:deals|tasks|orders|quotes|reviews|stores)/(?:new|\{id\}/(?:delete|events))"
    r"|(?:deals|tasks|reviews)/\{id\}/edit|(?:tasks|reviews|quotes)/\{id\}$|(?:deals|quotes|stores)$"
    r"|quotes/\{id\}/(?:accept|reject|cancel|send)|deals/\{id\}/lose|orders/\{id\}/cancel"
    r"|tasks/due/(?:day|upcoming)|webhooks/(?:new|\{id\}/deliveries)|contacts/new|privacy$)"
)
"""Routes whose page is like that of another resource, verb or state."""
NO_DOCUMENT = "/documents?token=none"
"""The page of a link that leads nowhere, which answers 404."""
PUBLIC = (
    "/console/sign-in", "/console/first-account", "/console/forgotten-password",
    "/console/reset-password?token=reset", "/console/reset-password",
    "/console/confirm-email?token=email",
)  # fmt: skip
TWO_FACTOR = "two@example.com"
"""An account with two-factor authentication."""
STATES = (
    "/console/deliveries?select=1", "/console/webhooks/new?kind=operational",
    "/console/privacy?q=hostile", "/console/find?q=a",
)  # fmt: skip
MORE_STATES = (
    "/console?range=30d", "/console/deliveries?state=waiting", "/console/deliveries?q=nothing",
    "/console/events?q=nobody", "/console/audit?record=0", "/console/contacts?search=nobody",
    "/console/orders?status=pending&select=1", "/console/reviews?status=rejected",
    "/console/deals?status=open&minValue=1&column=value",
)  # fmt: skip


@dataclass
class House:
    """A furnished gateway: the records that its pages need."""

    site: Site
    guest: Guest
    api: Person
    hooks: dict[str, str] = field(default_factory=dict)
    """The paths of webhooks by what they are like."""
    ids: dict[str, str] = field(default_factory=dict)
    """An id by the word that its addresses begin with."""
    at: dict[str, str] = field(default_factory=dict)
    """An address for a route whose record must be in a certain state."""
    states: list[str] = field(default_factory=lambda: [*STATES])
    """Pages in another state that shows what no other page has."""
    more: list[str] = field(default_factory=lambda: [*MORE_STATES])
    """Pages in further states."""

    def paths(self, *, whole: bool) -> list[str]:
        """Return the addresses of a page of each type, or of every page in every state."""
        found = []
        for resource in self.site.app.router.resources():
            route = resource.canonical.replace("{plural}", "contacts")
            shown = any(each.method == "GET" for each in resource) and PAGES.match(route)
            if not shown or NO_PAGES.search(route) or (not whole and ALIKE.match(route)):
                continue
            record = self.ids[route.split("/")[2]] if "{id}" in route else ""
            found.append(self.at.get(route) or route.replace("{id}", record))
        return [*found, *self.states, *(self.more if whole else ())]

    async def made(self, plural: str, **fields: Any) -> dict[str, Any]:
        """Create a record."""
        reply = await self.api.post(f"/api/{plural}", fields)
        assert reply.status == 201, reply.text
        return dict(reply.body)

    def leads(self, plural: str, record: str, *verbs: str) -> None:
        """Visit the pages of verbs with a record that allows them."""
        for verb in verbs:
            self.at[f"/console/{plural}/{{id}}/{verb}"] = f"/console/{plural}/{record}/{verb}"


async def answer(request: web.Request) -> web.StreamResponse:
    """Answer as the receiver that the path names."""
    kind = request.path.split("/")[1]
    if kind == "ok":
        return web.Response(headers={"X-" + "Long" * 40: "v" * 300}, text="x" * 3000)
    if kind == "moved":
        return web.Response(status=302, headers={"Location": "y" * 300})
    if kind == "gone":
        return web.Response(status=410)
    return web.Response(status=500, text="<script>alert(1)</script> " + "out of order " * 30)


async def furnish(site: Site, box: Inbox, guest: Guest) -> House:
    """Fill every page of a new owner, whose session the guest has then."""
    box.answer = answer
    owner_id = await site.db.write(users.add, email=EMAIL, name="N" * 200, password_hash=HASHED)
    await guest.sign_in(EMAIL)
    house = House(site, guest, await RestApi(site).key_of(owner_id))
    stocked = await stock(site.db, owner_id, 3)
    house.ids |= {one.plural: stocked[one.table] for one in RESOURCES}
    house.hooks = await add_webhooks(house, box)
    await add_records(house)
    await add_documents(house)
    await add_store(house)
    await site.db.write(make, "stuck", "company.updated", owner=owner_id)
    await site.db.write(make, "stuck", "company.updated", owner=owner_id)
    await until(lambda: settled(site), 120)
    await add_account(house)
    for name, path in house.hooks.items():
        shown = house.states if name == "ordered" else house.more
        shown.append(path)
        sent = await site.db.read(
            rows, "select id from deliveries where webhook_id = $1 order by id", path[-24:]
        )
        if sent and name == "good":
            house.ids["deliveries"] = sent[0]["id"]
        elif sent:
            shown.append(f"/console/deliveries/{sent[0]['id']}")
    return house


async def settled(site: Site) -> bool:
    """Whether each event and each delivery is done with for now."""
    waiting = """
    select 1 as one from events where seq is null union all
    select 1 as one from deliveries d join webhooks w on w.id = d.webhook_id
    where d.state = 'in_flight'
      or (d.state = 'ready' and d.attempts = 0 and w.state = 'active' and w.circuit = 'closed')
    limit 1
    """
    return not await site.db.read(rows, waiting)


async def add_webhooks(house: House, box: Inbox) -> dict[str, str]:
    """Return the paths of webhooks by what they are like, each with an event of its own."""
    headers = "\r\n".join(f"X-{'Header' * 8}-{n}: {'v' * 100}" for n in range(10))
    wanted: tuple[tuple[str, str, dict[str, Any]], ...] = (
        ("good", f"{box.url}/ok/{'p' * 500}", {
            "description": "D" * 200, "headers": headers, "conditions": "status = open",
            "schedule": "5s, 5m, 2h",
        }),
        ("moved", f"{box.url}/moved/{'p' * 500}", {}),
        ("down", f"http://127.0.0.1:{free_port()}/", {}),
        ("gone", f"{box.url}/gone", {}),
        ("ordered", f"{box.url}/lines", {"ordered": "1"}),
    )  # fmt: skip
    hooks = {}
    for name, url, fields in wanted:
        events = ["company.updated"] if name == "ordered" else ["contact.created", "deal.created"]
        page = await house.guest.webhook(url, *events, **fields)
        hooks[name] = page.path.partition("?")[0]
        assert page.status == 200, page.html
    told = await house.guest.submit(
        "/console/webhooks", at="/console/webhooks/new?kind=operational", kind="operational",
        url=f"{box.url}/told", events=list(NAMES),
    )  # fmt: skip
    house.ids["webhooks"] = hooks["good"][-24:]
    return {**hooks, "told": told.path.partition("?")[0]}


async def add_records(house: House) -> None:
    company = (await house.made("companies", name=LONG.strip()))["id"]
    body = {
        "name": HOSTILE, "email": "hostile@example.com", "companyId": company,
        "tags": ["vip", "T" * 64], "notes": f"{HOSTILE}\n\nsecond line",
    }  # fmt: skip
    known = house.ids["contacts"] = (await house.made("contacts", **body))["id"]
    about = {"relatedTo": known, "relatedType": "contact"}
    await house.made("activities", type="call", description=HOSTILE, **about)
    for title, stage, value in (
        ("Fornecimento anual de café", "lead", 12500.5),
        ("Contrato de manutenção com um nome que não acaba nunca", "proposal", 1200),
        ("Sem etapa", None, 5),
    ):
        fields = {"stage": stage, "expectedCloseDate": "2026-12-15"} if stage else {}
        deal = await house.made("deals", title=title, value=value, companyId=company, **fields)
    house.leads("deals", deal["id"], "move", "lose")
    month = f"{datetime.now(UTC):%Y-%m}"
    for number in range(9):
        await house.made("tasks", title=f"Ligar para o cliente {number}", dueDate=f"{month}-11")
    await house.made("tasks", title="Reunião", dueDate=f"{month}-05T14:30:00Z")
    done = await house.made("tasks", title="Feita", dueDate=f"{month}-05")
    await house.api.post(f"/api/tasks/{done['id']}/complete")
    await house.made("tasks", title="Atrasada", dueDate="2020-01-01")


async def add_documents(house: House) -> None:
    """Quotes and invoices in the states from which their verbs lead."""
    content: dict[str, Any] = {
        "items": ITEMS, "discount": 10, "contactId": house.ids["contacts"],
        "validUntil": "2030-12-15", "notes": "Entrega em até 10 dias.",
    }  # fmt: skip
    for before, verbs in (
        ("", "send cancel edit print"), ("send", "accept reject"), ("send accept", "convert"),
    ):  # fmt: skip
        quote = (await house.made("quotes", **content))["id"]
        for verb in before.split():
            assert (await house.api.post(f"/api/quotes/{quote}/{verb}")).status == 200
        house.leads("quotes", quote, *verbs.split())
    invoice = (await house.made("invoices", items=ITEMS, dueDate="2030-12-20"))["id"]
    house.leads("invoices", invoice, "pay", "cancel", "edit", "print")
    company = {"tradeName": LONG, "cnpj": "12ABC34501DE35", "pixKey": "pix@cafe.example"}
    company |= {"address": "Rua das Flores, 12\nSão Paulo", "bankDetails": "Banco 001, conta 1-2"}
    assert (await house.api.put("/api/settings/company", company)).status == 200
    late = (await house.made("invoices", items=ITEMS, dueDate="2020-12-20"))["id"]
    open_quote = (await house.made("quotes", **content))["id"]
    for place, sent in enumerate((f"quotes/{open_quote}", f"invoices/{late}", f"quotes/{quote}")):
        link = await house.api.post(f"/api/{sent}/link")
        page = link.body["url"].partition("/documents")[2]
        (house.states if place < 2 else house.more).append(f"/documents{page}")
    house.more += [
        f"/console/quotes/{quote}", f"/console/invoices/{invoice}", f"/console/invoices/{late}",
        NO_DOCUMENT,
    ]  # fmt: skip


async def add_store(house: House) -> None:
    """A store with long names, its orders in several states, and its reviews."""
    rule = {
        "type": "express", "name": f"Express {WIDE}", "price": 25.5, "deadline": 2,
        "cepFrom": "01000000", "cepTo": "05999999",
    }  # fmt: skip
    store = await house.made(
        "stores", hostname=f"{'shop' * 14}.{'example' * 8}.com", name=f"Coffee {WIDE}",
        aliases=["www.shop.example.com"], allowedOrigins=["https://shop.example.com"],
        idps=[{"issuer": "https://id.example.com", "clientIds": ["one", "two"]}],
        shippingRules=[rule, rule | {"type": "slow", "name": "Slow"}],
        checkoutUrl="https://pay.example/{orderNumber}?token={token}",
    )  # fmt: skip
    shop = Shop(RestApi(house.site), house.api, store)
    images = [{"url": "https://s.example/cafe.jpg", "alt": "Um pacote"}]
    beans: dict[str, Any] = {"name": f"Beans {WIDE}", "stock": 100, "images": images}
    product = await orders.product(house.api, storeId=store["id"], **beans)
    placed = [await orders.placed(shop, {product: 2}, shipping=1550) for _ in range(3)]
    provider = await adapter(shop)
    assert (await orders.cancel(house.api, placed[0])).status == 200
    # It was canceled and paid afterwards.
    late = await provider.report(placed[0]["number"], 75.5, "ch_" + "9" * 60)
    assert late.status == 200, late.text
    await stage_secret(shop)
    visitor = shop.browser()
    person = {"name": f"Ana {WIDE}", "email": "ana@example.com", "password": "segredo-1"}
    await visitor.do("clientSignup", "token", **person)
    listed = (await visitor.ask("products(hostname: $h) { nodes { id } }"))["products"]["nodes"]
    for text in (f"Good. {WIDE}\n\nAnd again.", "Fine."):
        review = {"productId": listed[0]["id"], "stars": 4, "text": text}
        assert (await visitor.do("createReview", "review { id }", **review)).data
    await shop.close()
    reviews = (await house.api.get("/api/reviews")).body["data"]
    house.ids |= {
        "stores": store["id"], "orders": placed[1]["id"], "reviews": reviews[-1]["id"],
        "products": product,
    }  # fmt: skip
    house.more += [
        f"/console/orders/{placed[0]['id']}", f"/console/orders?storeId={store['id']}",
    ]  # fmt: skip


async def add_account(house: House) -> None:
    """What the owner did with webhooks, files, keys and persons."""
    guest, db, hooks = house.guest, house.site.db, house.hooks
    good = hooks["good"]
    await guest.submit(f"{good}/rotate")
    await guest.submit(f"{hooks['moved']}/pause", at=hooks["moved"])
    house.at["/console/webhooks/{id}/activate"] = f"{hooks['moved']}/activate"
    job = await guest.submit(
        f"{good}/recover", confirmed="twice", kind="recover", ends="delivered",
        since="2020-01-01", rate="5",
    )  # fmt: skip
    await guest.submit("/console/keys", name="K" * 100, scopes=["read", "write"])
    await guest.submit("/console/checkpoints")
    # Its page shows a secret to scan.
    await guest.submit("/console/account/two-factor/start", at="/console/account/two-factor")
    await db.write(account_tokens.add, house.api.user_id, "reset", "reset", None)
    await db.write(account_tokens.add, house.api.user_id, "email", "email", EMAIL)
    await enrol(house.site, await house.site.user(TWO_FACTOR))
    uploaded = await guest.upload("/console/import/contacts", f"Nome;{'x' * 300}\nAna;1".encode())
    faulty = f"Nome;E-mail;Observações\r\nAna;ana@x.com;{'x' * 300}\r\nBia;bia;\r\n"
    checked = await guest.upload("/console/import/contacts", faulty.encode("cp1252"))
    columns: dict[str, Any] = {"column-0": "name", "column-1": "email", "column-2": "notes"}
    await guest.submit(checked.path, act="check", **columns)
    await Importing(db).run_once()
    erased = await house.made("contacts", name="Zoe <b>", email="zoe@quux.example")
    erasure = await guest.submit(f"/console/privacy/{erased['id']}/erase")
    await until(lambda: settled(house.site), 120)
    await Persons(db, house.site.app[KEYRING]).run_once()
    await db.write(note, house.api.user_id)
    now = db.clock.wall()
    for name in ("good", "down"):
        await db.write(fill, hooks[name][-24:], now, past(now, name == "down", 3))
    [event] = await db.read(rows, "select id from events order by pos limit 1")
    [key, *_] = await db.read(rows, "select id from api_keys")
    house.ids |= {
        "jobs": job.id, "imports": checked.id, "erasures": erasure.id, "events": event["id"],
        "keys": key["id"], "privacy": house.ids["contacts"],
    }  # fmt: skip
    house.at |= {"/console/connect": APP.link()}
    house.more += [
        uploaded.path, f"{good}/recover?kind=backfill", f"{good}/deliveries?select=1",
        f"{hooks['down']}/deliveries?state=scheduled", f"/console/charts?webhook={good[-24:]}",
        f"{hooks['down']}?range=7d", f"{hooks['moved']}/rotate",
    ]  # fmt: skip


async def note(tx: Tx, owner_id: str) -> None:
    """Note what a customer did, with long names of everything."""
    customer = Actor(owner_id, "storefront", store_id="5" * 24, customer_id="c" * 24)
    many = ["name", "email", "phone", "shippingRules", "emailVerified", "x" * 90]
    audit.record(tx, customer, "updated", "contact", "f" * 24, many)


def past(now: int, broken: bool, scale: int) -> Any:
    """Days and nights of a receiver; the broken one fails since two hours."""

    def shape(at: int) -> list[tuple[str, int, int]]:
        noise = at // STEP * 7919 % 13
        count = scale * round(8 + 6 * sin(2 * pi * at / DAY)) + noise
        if broken and at > now - 2 * HOUR:
            return [("http_5xx", 2 + noise % 3, 40_000)]
        return [("success", count, 25_000 + 3_000 * noise), ("throttled", noise == 3, 9_000)]

    return shape
