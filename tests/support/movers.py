"""Two owners with stores, webhooks and deliveries in a database, the first of whom moves away."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from aiohttp import web

from gateway.domain.contacts import person_erasures
from gateway.domain.contacts.person_erasures import Person
from gateway.domain.privacy import certificates
from gateway.domain.product_ownership import OWNERSHIP
from outbox import database
from outbox.clock import SystemClock
from outbox.database.transaction import Database, Tx
from outbox.events import event_index
from outbox.ids import Ids
from outbox.queue.drain.fanout import fan_out
from outbox.queue.upkeep import parking
from outbox.webhooks.key_files import read_key_file, write_key_file
from outbox.webhooks.secrets import KeyRing
from tests.outbox.queue.replays.test_replay import ROOM
from tests.support.carts import change, sell
from tests.support.checkouts import ADDRESS, RULES, bought, coupon, put, sign_up
from tests.support.databases import PostgresServer, SqliteFiles
from tests.support.drain import add_webhook, drain, inbox
from tests.support.owned_rows import shares
from tests.support.rest import UNLIMITED, RestApi
from tests.support.rest import Person as Caller
from tests.support.shop import Shop, open_shop
from tests.support.site import serving

PAYMENT = b"whsec_payment"
COLUMNS = ("id", "name", "record_id", "record_version", "occurred_at", "body")
FEED = f"""
select {", ".join(COLUMNS)} from events
where owner_id = $1 order by case when seq is null then 1 else 0 end, seq, pos
"""
WAITING = """
select e.id, d.webhook_id from deliveries d join events e on e.id = d.event_id
where d.owner_id = $1 and d.state in ('ready', 'held', 'in_flight')
"""
ONE_IN_FLIGHT = """
update deliveries set state = 'in_flight', claim = 'c', node_id = 'n' where id = (
  select min(id) from deliveries where owner_id = $1 and state = 'ready')
"""


async def trade(shop: Shop) -> None:
    """Let visitors of a shop do what leaves rows in many tables."""
    await coupon(shop)
    await bought(shop, idempotencyKey="k1")
    path = f"/api/stores/{shop.store['id']}"
    assert (await shop.owner.put(path, {"shippingRules": RULES})).status == 200
    browser = shop.browser()
    await sign_up(browser)
    address = {**ADDRESS, "number": "7", "name": "Maria"}
    assert (await browser.do("clientAddressSave", "address { id }", **address)).data
    product = await sell(shop, 30, stock=10)
    await put(browser, product)
    await change(browser, "SetShipping", cep=ADDRESS["cep"], type="express")
    review = {"productId": product, "stars": 5, "text": "Good."}
    assert (await browser.do("createReview", "review { id }", **review)).data
    lead = {"email": "lia@example.com", "name": "Lia", "phone": "(11) 97777-1234"}
    assert (await browser.do("lead", "success", **lead)).data


@dataclass(frozen=True)
class House:
    """A database with two owners, the `headers` of both, and the secret of a webhook."""

    url: str
    keys: Path
    owners: list[str]
    emails: list[str]
    headers: Mapping[str, str]
    other_headers: Mapping[str, str]
    webhook: str
    secret: str

    @property
    def mover(self) -> str:
        return self.owners[0]

    @property
    def email(self) -> str:
        return self.emails[0]


def keys_at(path: Path) -> KeyRing:
    """Return the ring of a new key file."""
    write_key_file(path, Ids(), SystemClock().wall())
    return read_key_file(path, Ids())


async def opened(url: str) -> Database:
    return await database.open(url, clock=SystemClock(), ids=Ids(), serving=True)


_kept: dict[type, House] = {}


async def furnished(server: SqliteFiles | PostgresServer, folder: Path) -> House:
    """Return a furnished database of its own, with its keys in `folder`.

    It is a copy: a process furnishes one of each engine.
    """
    made = _kept.get(type(server))
    if made is None:
        home = Path(tempfile.mkdtemp(prefix="carteiro-house-"))
        atexit.register(shutil.rmtree, home, ignore_errors=True)
        ask = server.fresh(home) if isinstance(server, SqliteFiles) else server.fresh()
        made = _kept[type(server)] = await furnish(await ask, home / "source.key")
    if isinstance(server, SqliteFiles):
        file = shutil.copy(made.url.removeprefix("sqlite:///"), folder / "test.db")
        url = f"sqlite:///{file}"
    else:
        url = await server.empty(urlsplit(made.url).path[1:])
    return replace(made, url=url, keys=Path(shutil.copy(made.keys, folder / "source.key")))


async def furnish(url: str, keys: Path) -> House:
    """Let two owners use a database, and stop in the middle of deliveries."""
    ring = keys_at(keys)
    db = await opened(url)
    try:
        async with serving(db, UNLIMITED) as site:
            api = RestApi(site)
            shops = [await open_shop(api, f"{name}.example") for name in ("ana", "bia")]
            owners = [shop.owner.user_id for shop in shops]
            webhook, secret = await _deliver(db, ring, shops)
            for shop in shops:
                deal = {"title": "Beans", "value": 30}
                assert (await shop.owner.post("/api/deals", deal)).status == 201
                await db.write(_sealed, ring, shop)
                await _write(shop.owner, "Waiting")
            await db.write(fan_out, ROOM)
            await db.write(_claim_one, owners[0])
            await db.write(_marked)
            for shop in shops:
                await _write(shop.owner, "Unseen")
                await shop.close()
            emails = await db.read(_emails, owners)
            mine, others = (shop.owner.headers for shop in shops)
            return House(url, keys, owners, emails, mine, others, webhook, secret)
    finally:
        await db.close()


async def _deliver(db: Database, ring: KeyRing, shops: Sequence[Shop]) -> tuple[str, str]:
    """Let each owner have a webhook that works, one that fails, and one that is deleted."""
    made = []

    async def answer(request: web.Request) -> web.Response:
        return web.Response(status=500 if "fails" in request.path else 200)

    async with inbox() as receiver, drain(db, ring):
        receiver.answer = answer
        paths = [
            f"/{shop.owner.user_id}/{end}" for shop in shops for end in ("works", "fails", "ends")
        ]
        for path in paths:
            owner = path.split("/")[1]
            options = {"ordered": "fails" in path, "sequenced": "works" in path}
            made.append(
                await add_webhook(
                    db, ring, receiver.url + path, "contact.created", owner=owner, **options
                )
            )
        for shop in shops:
            await trade(shop)
        for path in paths:
            await receiver.until(1, path)
    for webhook, _ in made[2::3]:
        await parking.remove(db, webhook)
    return made[0]


async def _write(owner: Caller, name: str) -> None:
    assert (await owner.post("/api/contacts", {"name": name})).status == 201


async def _sealed(tx: Tx, ring: KeyRing, shop: Shop) -> None:
    """Store what the key ring seals: a payment secret and the certificate of an erasure."""
    store_id, owner_id = shop.store["id"], shop.owner.user_id
    await tx.run(
        "insert into payment_secrets (store_id, secret) values ($1, $2)",
        store_id, ring.seal(PAYMENT, store_id),
    )  # fmt: skip
    begun = person_erasures.Begun("files")
    record_id = tx.new_id()
    erasure = await person_erasures.add(tx, owner_id, "contact", record_id, Person(), begun=begun)
    seal = certificates.seal(erasure, tx.now, ring)
    await person_erasures.seal(tx, erasure.id, tx.now, seal, ring.newest)


async def _marked(tx: Tx) -> None:
    await event_index.store(tx, 0, *await event_index.marks_of(tx, 0))


async def _emails(tx: Tx, owners: list[str]) -> list[str]:
    emails = {row["id"]: row["email"] for row in await tx.all("select id, email from users")}
    return [emails[owner] for owner in owners]


async def _claim_one(tx: Tx, owner_id: str) -> None:
    assert await tx.run(ONE_IN_FLIGHT, owner_id) == 1


@dataclass(frozen=True)
class Left:
    """What a database has of the owners."""

    shares: Mapping[str, list[int]]
    feed: Sequence[Sequence[Any]]
    mentions: Mapping[str, int]
    waiting: Counter[tuple[str, str]]
    marks_are_true: bool

    def of(self, owner: int) -> dict[str, int]:
        """Return how many rows of each table an owner has."""
        return {table: counts[owner] for table, counts in self.shares.items() if counts[owner]}


async def look(url: str, owners: list[str]) -> Left:
    """Read what a database has of these owners, and where the first one is mentioned."""
    db = await opened(url)
    try:
        return await db.read(_look, owners)
    finally:
        await db.close()


async def _look(tx: Tx, owners: list[str]) -> Left:
    mentions: Counter[str] = Counter()
    for table in OWNERSHIP:
        for row in await tx.all(f"select * from {table}"):
            mentions[table] += any(owners[0] in str(row[name]) for name in row.keys())  # noqa: SIM118
    feed = [tuple(row[name] for name in COLUMNS) for row in await tx.all(FEED, owners[0])]
    waiting = Counter((row["id"], row["webhook_id"]) for row in await tx.all(WAITING, owners[0]))
    marked = await tx.one("select records, requests from event_marks where first_seq = 0")
    kept = None if marked is None else (bytes(marked["records"]), bytes(marked["requests"]))
    are_true = kept in (None, await event_index.marks_of(tx, 0))
    return Left(await shares(tx, OWNERSHIP, owners), feed, +mentions, waiting, are_true)
