"""Requests that come while their store, account, order or contact ends: they leave nothing over."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Literal

import pytest

from gateway.domain.contacts import upsert
from gateway.domain.storefront.carts import changes
from gateway.domain.storefront.catalogue import reviews
from gateway.domain.storefront.checkouts.checkout import checkout, read_input
from gateway.domain.storefront.checkouts.repeats import Tokens
from gateway.domain.storefront.mail import mails
from gateway.domain.storefront.orders import order_addresses
from gateway.domain.storefront.sign_in import account_changes, customer_sign_in
from gateway.domain.storefront.stores import stores
from gateway.domain.storefront.visitors.shopper import Shopper
from gateway.records.errors import Refusal
from gateway.records.values.global_ids import record_id
from gateway.server.app_keys import KEYRING
from outbox.database.transaction import Insert, Row, Tx
from tests.support.carts import sell
from tests.support.checkouts import BUYER, RULES, sign_up
from tests.support.shop import Shop


class Paused:
    """Passes everything to `tx`; before the first statement with `text` it waits for `go`.

    An INSERT that the unit puts off waits before the next statement, or at `end`.

    For PostgreSQL: on SQLite nobody else writes meanwhile.
    """

    def __init__(self, tx: Tx, text: str, reached: asyncio.Event, go: asyncio.Event) -> None:
        self._tx = tx
        self._text = text
        self._reached = reached
        self._go = go
        self._put_off = False
        self.engine: Literal["sqlite", "postgres"] = tx.engine
        self.now = tx.now
        self.wake = tx.wake
        self.changed = tx.changed
        self.claims = tx.claims

    async def _wait(self, sql: str) -> None:
        if (self._put_off or self._text in sql) and not self._reached.is_set():
            self._reached.set()
            await self._go.wait()

    def new_id(self) -> str:
        return self._tx.new_id()

    async def one(self, sql: str, *args: Any) -> Row | None:
        await self._wait(sql)
        return await self._tx.one(sql, *args)

    async def all(self, sql: str, *args: Any) -> list[Row]:
        await self._wait(sql)
        return await self._tx.all(sql, *args)

    async def run(self, sql: str, *args: Any) -> int:
        await self._wait(sql)
        return await self._tx.run(sql, *args)

    async def many(self, sql: str, rows: Sequence[Sequence[Any]]) -> list[Row]:
        await self._wait(sql)
        return await self._tx.many(sql, rows)

    def later(self, insert: Insert, row: Sequence[Any]) -> None:
        self._tx.wake = self.wake
        self._put_off = self._put_off or self._text == f"insert into {insert.table}"
        self._tx.later(insert, row)

    async def end(self) -> None:
        """Wait before what the unit has put off is written, if it has not waited yet."""
        await self._wait("")


WAITS = """
select 1 as one from pg_stat_activity
where datname = current_database() and wait_event_type = 'Lock'
"""


async def rows(shop: Shop, sql: str) -> list[Row]:
    async def unit(tx: Tx) -> list[Row]:
        return await tx.all(sql)

    return await shop.db.read(unit)


async def guest(shop: Shop, **more: Any) -> Shopper:
    store, zone = await shop.db.read(stores.by_hostname, shop.hostname)
    return Shopper(store=store, zone=zone, **({"cart_token": "token"} | more))


async def between(
    shop: Shop, text: str, unit: Callable[[Tx], Awaitable[Any]], other: Callable[[], Awaitable[Any]]
) -> Any:
    """Run `other` before the first statement of `unit` with `text`; return the unit's outcome.

    On SQLite `other` runs first: its transaction cannot come in between.
    """
    if shop.db.engine == "sqlite":
        await other()
        return (await asyncio.gather(shop.db.write(unit), return_exceptions=True))[0]
    reached, go = asyncio.Event(), asyncio.Event()

    async def paused(tx: Tx) -> Any:
        within = Paused(tx, text, reached, go)
        result = await unit(within)
        await within.end()
        return result

    task = asyncio.ensure_future(shop.db.write(paused))
    waiting = asyncio.ensure_future(reached.wait())
    await asyncio.wait({task, waiting}, return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    assert reached.is_set(), f"no statement with {text!r}"
    done = asyncio.ensure_future(other())
    # The other may have to wait for the unit; else it comes to its end, however long that takes.
    while not done.done() and not await rows(shop, WAITS):
        await asyncio.wait({done}, timeout=0.02)
    go.set()
    await done
    return (await asyncio.gather(task, return_exceptions=True))[0]


async def test_a_repeat_finds_its_order_though_the_next_cart_is_filled(shop: Shop) -> None:
    product = await sell(shop, 30, stock=10)
    product_id = record_id(product, "Product", "id")
    visitor = await guest(shop)
    ring = shop.api.site.app[KEYRING]
    wanted = read_input({**BUYER, "idempotencyKey": "k1"})

    async def fill() -> None:
        await shop.db.write(changes.add, visitor, product_id, 1, limiting=True)

    async def order(tx: Tx, n: int) -> Any:
        return await checkout(tx, visitor, wanted, Tokens(f"access{n}", f"cart{n}"), ring, 3)

    async def first() -> None:
        await shop.db.write(order, 1)
        await fill()

    await fill()
    again = await between(shop, "from carts", lambda tx: order(tx, 2), first)
    [made] = await rows(shop, "select id from orders")
    assert again.order.id == made["id"]


async def customer_of(shop: Shop) -> Shopper:
    browser = shop.browser()
    await sign_up(browser)
    [row] = await rows(shop, "select id from customers")
    return await guest(shop, customer_id=row["id"], session_id="s", cart_token=None)


async def erase(shop: Shop, visitor: Shopper) -> None:
    reply = await shop.owner.delete(f"/api/clients/{visitor.customer_id}")
    assert reply.status == 200


async def test_an_erased_customer_gets_no_cart(shop: Shop) -> None:
    product_id = record_id(await sell(shop, 30), "Product", "id")
    visitor = await customer_of(shop)
    outcome = await between(
        shop, "insert into carts",
        lambda tx: changes.add(tx, visitor, product_id, 1, limiting=True),
        lambda: erase(shop, visitor),
    )  # fmt: skip
    assert await rows(shop, "select * from carts where customer_id is not null") == []
    if shop.db.engine == "sqlite":
        assert isinstance(outcome, Refusal)
        assert outcome.code == "unauthenticated"


async def test_an_erased_customer_gets_no_address(shop: Shop) -> None:
    visitor = await customer_of(shop)
    values = order_addresses.check(
        {"street": "Rua A", "number": "1", "city": "SP", "state": "SP", "cep": "01310-200"}
    )
    outcome = await between(
        shop, "customers where id",
        lambda tx: order_addresses.save(tx, visitor, None, values),
        lambda: erase(shop, visitor),
    )  # fmt: skip
    if shop.db.engine == "sqlite":
        assert isinstance(outcome, Refusal)
        assert outcome.code == "unauthenticated"
    assert await rows(shop, "select * from customer_addresses") == []


async def test_a_review_leaves_no_note_of_a_deleted_contact(shop: Shop) -> None:
    product_id = record_id(await sell(shop, 30), "Product", "id")
    visitor = await customer_of(shop)
    [contact] = await rows(shop, "select id from contacts")

    async def drop() -> None:
        assert (await shop.owner.delete(f"/api/contacts/{contact['id']}")).status == 200

    await between(
        shop, "insert into activities",
        lambda tx: reviews.create(tx, visitor, product_id, {"stars": 5, "text": "Good"}),
        drop,
    )  # fmt: skip
    assert await rows(shop, "select * from contacts") == []
    assert await rows(shop, "select * from activities where related_type = 'contact'") == []


@pytest.mark.parametrize("known", [False, True])
async def test_a_lead_is_of_no_company_that_is_deleted_meanwhile(shop: Shop, known: bool) -> None:
    made = await shop.owner.post("/api/companies", {"name": "Padaria São João"})
    if known:
        await shop.owner.post("/api/contacts", {"name": "Ana", "email": "ana@example.com"})
    visitor = await guest(shop)
    details = upsert.ContactDetails(email="ana@example.com", company=" PADARIA SAO JOAO ")

    async def drop() -> None:
        assert (await shop.owner.delete(f"/api/companies/{made.body['id']}")).status == 200

    # The company is found by then, and the contact not yet written.
    await between(
        shop, "from contacts where owner_id",
        lambda tx: upsert.upsert(tx, visitor.actor, details), drop,
    )  # fmt: skip
    [contact] = await rows(shop, "select email, company_id from contacts")
    assert (contact["email"], contact["company_id"]) == ("ana@example.com", None)
    # With a company that stays, it is linked.
    again = await shop.owner.post("/api/companies", {"name": "Padaria São João"})
    await shop.db.write(upsert.upsert, visitor.actor, details)
    [contact] = await rows(shop, "select company_id from contacts")
    assert contact["company_id"] == again.body["id"]


async def drop_store(shop: Shop) -> None:
    assert (await shop.owner.delete(f"/api/stores/{shop.store['id']}")).status == 200


async def test_a_deleted_store_gets_no_customer(shop: Shop) -> None:
    visitor = await guest(shop)
    values = customer_sign_in.check_sign_up({"name": "Ana", "email": "ana@example.com"}).values

    async def join(tx: Tx) -> Any:
        return await customer_sign_in.sign_up(tx, visitor, values, "hash", "next", mail=True)

    await between(shop, "insert into customers", join, lambda: drop_store(shop))
    for table in ("customers", "customer_sessions", "queued_mails"):
        assert await rows(shop, f"select * from {table}") == []
    # Another node may remember the store a little longer.
    with pytest.raises(Refusal) as late:
        await shop.db.write(join)
    assert late.value.code == "store_not_found"


async def test_a_deleted_store_gets_no_cart(shop: Shop) -> None:
    path = f"/api/stores/{shop.store['id']}"
    assert (await shop.owner.put(path, {"shippingRules": RULES})).status == 200
    visitor = await guest(shop)

    async def choose(tx: Tx) -> Any:
        return await changes.set_shipping(tx, visitor, "01310200", None)

    await between(shop, "insert into carts", choose, lambda: drop_store(shop))
    assert await rows(shop, "select * from carts") == []


async def test_mails_at_once_stop_at_the_limit(shop: Shop) -> None:
    visitor = await customer_of(shop)
    await asyncio.gather(
        *(
            shop.db.write(account_changes.request_reset, visitor.store.id, "maria@example.com")
            for _ in range(4 * mails.MOST)
        )
    )
    assert len(await rows(shop, "select id from queued_mails where kind = 'reset'")) == mails.MOST
