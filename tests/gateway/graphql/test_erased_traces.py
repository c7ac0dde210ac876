"""An erased customer: the whole database is searched for what is left of the person."""

from collections import Counter
from typing import Any

from outbox.database.transaction import Tx
from outbox.queue.drain.fanout import fan_out
from outbox.queue.upkeep.erasure import Erasure
from tests.outbox.queue.replays.test_replay import ROOM
from tests.support.carts import change, sell
from tests.support.checkouts import ADDRESS, PASSWORD, RULES, ordered, put
from tests.support.shop import Browser, Shop

NAME = "Zenobia Quux"
EMAIL = "zenobia@quux.example"
PHONE = "(11) 97777-1234"
DOCUMENT = "52998224725"
STREET = "Rua Zenobia"
TRACES = ("zenobia", "quux", "97777", DOCUMENT)
LISTS = {
    "postgres": "select tablename from pg_tables where schemaname = 'public'",
    "sqlite": "select name from sqlite_master where type = 'table'",
}
BUYER: dict[str, Any] = {
    "email": EMAIL, "name": NAME, "phone": PHONE, "document": DOCUMENT, "notes": "For Zenobia.",
    "address": {**ADDRESS, "street": STREET}, "idempotencyKey": "k1",
}  # fmt: skip


async def left(tx: Tx) -> Counter[str]:
    """Count the values with a trace of the person, by table and column."""
    found = Counter[str]()
    for table in [row[0] for row in await tx.all(LISTS[tx.engine])]:
        for row in await tx.all(f'select * from "{table}"'):
            for column in row.keys():  # noqa: SIM118 - the rows of both engines have only keys()
                value = row[column]
                text = bytes(value).decode(errors="replace") if _is_bytes(value) else str(value)
                if any(trace in text.lower() for trace in TRACES):
                    found[f"{table}.{column}"] += 1
    return found


def _is_bytes(value: Any) -> bool:
    return isinstance(value, bytes | memoryview)


async def _buy(shop: Shop, browser: Browser) -> None:
    await put(browser, await sell(shop, 30, stock=10))
    await change(browser, "SetShipping", cep=ADDRESS["cep"], type="express")
    await ordered(browser, **BUYER)


async def test_nothing_is_left_but_what_the_documentation_says(shop: Shop) -> None:
    path = f"/api/stores/{shop.store['id']}"
    assert (await shop.owner.put(path, {"shippingRules": RULES})).status == 200
    await _buy(shop, shop.browser())
    browser = shop.browser()
    account = {"name": NAME, "email": EMAIL, "phone": PHONE, "password": PASSWORD}
    assert (await browser.do("clientSignup", "token", **account)).data
    address = {"street": STREET, "number": "7", "city": "Quuxville", "state": "SP"}
    saved = await browser.do(
        "clientAddressSave", "address { id }", **address, cep=ADDRESS["cep"], name=NAME
    )
    assert saved.data
    await _buy(shop, browser)
    product = await sell(shop, 30)
    await put(browser, product)
    assert (
        await browser.do("createReview", "review { id }", productId=product, stars=5, text="Good.")
    ).data
    assert (await browser.do("lead", "success", email=EMAIL, name=NAME, phone=PHONE)).data

    async def verify(tx: Tx) -> None:
        await tx.run("update customers set email_verified = $1", True)

    await shop.db.write(verify)
    before = await shop.db.read(left)
    assert {"orders.email", "customers.email", "contacts.phone"} <= before.keys()
    assert (await browser.do("clientDeleteAccount", "success", password=PASSWORD)).data
    assert (await shop.db.read(left)).keys() == {"orders.document", "orders.digits", "events.body"}
    # The duty looks every few seconds.
    await shop.db.write(fan_out, ROOM)
    await Erasure(shop.db).run_once()
    after = await shop.db.read(left)
    assert after.keys() == {"orders.document", "orders.digits"}
    assert after["orders.document"] == 2
    kept = await shop.db.read(_kept)
    # Whoever was told of the contact is told of its end.
    assert kept["contact.deleted"] == 1
    assert kept["contact.created"] == kept["contact.updated"] == 0
    assert kept["product.created"] == 3


async def _kept(tx: Tx) -> Counter[str]:
    """Count the events that still have their bodies, by name."""
    return Counter(
        row["name"] for row in await tx.all("select name from events where body is not null")
    )
