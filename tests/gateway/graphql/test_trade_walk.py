"""A random walk of buyers and an owner, in waves of concurrent requests, and what must hold after.

The walk is replayable in its choices (the seed), not in the order in which the server takes the
requests of a wave; what it checks holds for every order.
"""

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import pytest

from gateway.domain.sales import document_lines, order_verbs
from gateway.records.values.global_ids import record_id
from outbox.database.transaction import Row, Tx
from tests.support.carts import sell
from tests.support.checkouts import coupon
from tests.support.shop import Answer, Browser, Shop

STOCK = 12
WAVES = 6
MOST_USES = 5
TOLD = "order { id number accessToken status }"
EXPECTED = {
    "CART_EMPTY", "INSUFFICIENT_STOCK", "PRODUCT_NOT_FOUND", "COUPON_USAGE_LIMIT",
    "COUPON_NOT_FOUND", "INVALID_TRANSITION", "TOTAL_CHANGED",
}  # fmt: skip
"""The refusals that a race may end in."""


class Walk:
    """The shop, its products and coupons, and what the buyers know of their orders."""

    def __init__(self, shop: Shop, seed: int) -> None:
        self.shop = shop
        self.choose = random.Random(seed)
        self.products: list[str] = []
        self.doomed: list[str] = []
        """Products that the owner may delete."""
        self.codes: list[str] = []
        self.orders: list[tuple[Browser, dict[str, Any]]] = []
        self.surprises: list[str] = []
        self.keys = 0

    async def open(self) -> None:
        self.products = [await sell(self.shop, 10 + n, stock=STOCK) for n in range(4)]
        self.doomed = [await sell(self.shop, 7, stock=STOCK) for _ in range(2)]
        for n in range(2):
            code = f"RACE{n}"
            await coupon(self.shop, code, maxUses=MOST_USES, perCustomer=2)
            self.codes.append(code)

    async def wave(self, size: int) -> None:
        """Do some of everything at once."""
        await asyncio.gather(*(self._step() for _ in range(size)))

    def _step(self) -> Awaitable[None]:
        steps: Sequence[tuple[int, Callable[[], Awaitable[None]]]] = (
            (8, self.buy), (3, self.cancel), (2, self.cancel_by_owner), (4, self.pay),
            (2, self.cancel_invoice), (1, self.pay_by_status), (2, self.expire),
            (2, self.move_deal), (1, self.drop_deal), (1, self.drop_product),
            (2, self.edit_product), (1, self.edit_invoice),
        )  # fmt: skip
        [step] = self.choose.choices([s for _, s in steps], [w for w, _ in steps])
        return step()

    async def buy(self) -> None:
        """Fill a cart in a random order and send its checkout several times at once."""
        choose = self.choose
        wanted = choose.sample(self.products + self.doomed, choose.randint(1, 4))
        quantities = [choose.randint(1, 2) for _ in wanted]
        code = choose.choice([*self.codes, None])
        email = f"b{choose.randint(1, 4)}@example.com"
        times, keyed = choose.randint(1, 3), choose.random() < 0.5
        self.keys += keyed
        more = {"idempotencyKey": f"key {self.keys}"} if keyed else {}
        browser = self.shop.browser()
        for product, quantity in zip(wanted, quantities, strict=True):
            sent = {"productId": product, "quantity": quantity}
            self.expect(await browser.do("shoppingCartAddProduct", "warnings { code }", **sent))
        if code is not None:
            self.expect(await browser.do("shoppingCartApplyCoupon", "warnings { code }", code=code))
        answers = await asyncio.gather(
            *(
                browser.do("checkout", TOLD, email=email, name="Maria da Silva", **more)
                for _ in range(times)
            )
        )
        made = [a.body["data"]["checkout"]["order"] for a in answers if self.expect(a)]
        if len({order["id"] for order in made}) > 1 or (not keyed and len(made) > 1):
            self.surprises.append(f"one cart, several orders: {made}")
        if made:
            self.orders.append((browser, made[0]))

    async def cancel(self) -> None:
        if self.orders:
            browser, order = self.choose.choice(self.orders)
            sent = {name: order[name] for name in ("number", "accessToken")}
            self.expect(await browser.do("orderCancel", "order { status }", **sent))

    async def cancel_by_owner(self) -> None:
        await self.owner("post", lambda o: f"/api/orders/{o['id']}/cancel", {"reason": "No"})

    async def pay(self) -> None:
        await self.owner("post", lambda o: f"/api/invoices/{o['invoiceId']}/pay", {"method": "pix"})

    async def cancel_invoice(self) -> None:
        await self.owner("post", lambda o: f"/api/invoices/{o['invoiceId']}/cancel", {})

    async def pay_by_status(self) -> None:
        await self.owner("put", lambda o: f"/api/invoices/{o['invoiceId']}", {"status": "paid"})

    async def edit_invoice(self) -> None:
        await self.owner("put", lambda o: f"/api/invoices/{o['invoiceId']}", {"notes": "Edited"})

    async def move_deal(self) -> None:
        status = self.choose.choice(["won", "lost", "open"])
        await self.owner("put", lambda o: f"/api/deals/{o.get('dealId')}", {"status": status})

    async def drop_deal(self) -> None:
        await self.owner("delete", lambda o: f"/api/deals/{o.get('dealId')}")

    async def drop_product(self) -> None:
        if self.doomed and self.choose.random() < 0.3:
            gone = self.doomed.pop()
            path = f"/api/products/{record_id(gone, 'Product', 'id')}"
            self.told(await self.shop.owner.delete(path))

    async def edit_product(self) -> None:
        product = self.choose.choice(self.products)
        body = {"price": self.choose.randint(5, 50), "categories": [f"c{self.choose.random()}"]}
        path = f"/api/products/{record_id(product, 'Product', 'id')}"
        self.told(await self.shop.owner.put(path, body))

    async def expire(self) -> None:
        if not self.orders:
            return
        order_id = record_id(self.choose.choice(self.orders)[1]["id"], "Order", "id")

        async def end(tx: Tx) -> None:
            await tx.run("update orders set expires_at = 1 where id = $1", order_id)

        await self.shop.db.write(end)
        await self.shop.db.write(order_verbs.expire, 1)

    async def owner(
        self, verb: str, path: Callable[[Mapping[str, Any]], str], body: Any = None
    ) -> None:
        """Let the owner do something to a random order."""
        if not self.orders:
            return
        order_id = record_id(self.choose.choice(self.orders)[1]["id"], "Order", "id")
        order = (await self.shop.owner.get(f"/api/orders/{order_id}")).body
        send = getattr(self.shop.owner, verb)
        where = path(order)
        self.told(await (send(where) if body is None else send(where, body)))

    def told(self, reply: Any) -> None:
        if reply.status not in (200, 204, 404, 409):
            self.surprises.append(f"{reply.status}: {reply.text}")

    def expect(self, answer: Answer) -> bool:
        """Return whether the request succeeded; note a refusal that no race explains."""
        if "errors" not in answer.body:
            return True
        if answer.code not in EXPECTED:
            self.surprises.append(str(answer.body))
        return False


async def faults(tx: Tx) -> list[str]:
    """Return what does not agree in the database of a walk, a sentence each."""
    orders = await tx.all("select * from orders")
    found = [
        *_stock(
            orders, await _by(tx, "products"), await tx.all("select * from stock_reservations")
        ),
        *_coupons(orders, await _by(tx, "coupons"), await tx.all("select * from coupon_uses")),
        *await _documents(tx, orders),
        *_events(await tx.all("select name, record_id, record_version from events"), orders),
        *await _carts(tx, orders),
    ]
    for table, prefix in (("orders", "ORD"), ("invoices", "INV")):
        numbers = sorted(r["number"] for r in await tx.all(f"select number from {table}"))
        if numbers != [f"{prefix}-{n:06d}" for n in range(1, len(numbers) + 1)]:
            found.append(f"numbers of {table}: {numbers}")
    return found


def _stock(orders: list[Row], products: Mapping[str, Row], kept: list[Row]) -> list[str]:
    held, taken = Counter[str](), Counter[str]()
    for row in kept:
        held[row["product_id"]] += row["quantity"]
    status = {order["id"]: order["status"] for order in orders}
    found = [
        f"{r['order_id']} is {status[r['order_id']]} and reserves stock"
        for r in kept
        if status[r["order_id"]] != "pending"
    ]
    for order in orders:
        if order["status"] in ("paid", "pending"):
            for line in document_lines.read(order["items"]):
                taken[str(line.product_id)] += line.quantity // 1000
        if order["status"] == "pending":
            for line in document_lines.read(order["items"]):
                held[str(line.product_id)] -= line.quantity // 1000
    found += [f"reserved of {key}: {n} too many" for key, n in held.items() if n]
    for key, product in products.items():
        if product["stock"] < 0 or product["stock"] + taken[key] != STOCK:
            found.append(f"{key}: stock {product['stock']}, taken {taken[key]}")
    return found


def _coupons(orders: list[Row], coupons: Mapping[str, Row], uses: list[Row]) -> list[str]:
    used = Counter(row["coupon_id"] for row in uses)
    each = Counter((row["coupon_id"], bytes(row["holder"])) for row in uses)
    found = [f"{key[0]}: {n} uses of one buyer" for key, n in each.items() if n > 2]
    for key, row in coupons.items():
        if row["uses"] != used[key] or used[key] > MOST_USES:
            found.append(f"coupon {row['code']}: {row['uses']} uses, {used[key]} rows")
    state = {row["id"]: row["state"] for row in uses}
    wanted = {"pending": "reserved", "paid": "redeemed"}
    for order in orders:
        expected = wanted.get(order["status"]) if order["coupon"] is not None else None
        if state.get(order["id"]) != expected:
            found.append(f"{order['status']} order with a use {state.get(order['id'])}")
    return found


async def _documents(tx: Tx, orders: list[Row]) -> list[str]:
    invoices = await _by(tx, "invoices")
    deals = await _by(tx, "deals")
    found = []
    if {o["invoice_id"] for o in orders} != invoices.keys():
        found.append("orders and invoices are not one to one")
    wanted = {"expired": "canceled"}
    for order in orders:
        invoice = invoices[order["invoice_id"]]
        agreed = wanted.get(order["status"], order["status"])
        if invoice["status"] != agreed or invoice["order_id"] != order["id"]:
            found.append(f"{order['status']} order, {invoice['status']} invoice")
        if (order["paid_at"], order["total"]) != (invoice["paid_at"], invoice["total"]):
            found.append(f"order {order['number']} and its invoice differ")
        if order["deal_id"] is not None and order["deal_id"] not in deals:
            found.append(f"order {order['number']} has a deal that is gone")
    return found


def _events(events: list[Row], orders: list[Row]) -> list[str]:
    seen = Counter((e["name"], e["record_id"], e["record_version"]) for e in events)
    found = [f"event {key} {n} times" for key, n in seen.items() if n > 1]
    by = Counter((e["name"], e["record_id"]) for e in events)
    for order in orders:
        invoice, status = order["invoice_id"], order["status"]
        if by["invoice.created", invoice] != 1:
            found.append(f"{by['invoice.created', invoice]} invoice.created")
        if by["invoice.paid", invoice] != (status == "paid"):
            found.append(f"{by['invoice.paid', invoice]} invoice.paid of a {status} order")
        if status in ("canceled", "expired") and not by["invoice.updated", invoice]:
            found.append(f"no invoice.updated of a {status} order")
    made = Counter(e["name"] for e in events)
    if made["deal.created"] != len(orders):
        found.append(f"{made['deal.created']} deal.created of {len(orders)} orders")
    return found


async def _carts(tx: Tx, orders: list[Row]) -> list[str]:
    rows = await tx.all("select order_id from carts where state = 'ordered'")
    ordered = Counter(row["order_id"] for row in rows)
    if ordered != Counter(order["id"] for order in orders):
        return ["ordered carts and orders are not one to one"]
    rows = await tx.all("select email_folded from contacts")
    return [f"contact {k} {n} times" for k, n in Counter(r[0] for r in rows).items() if n > 1]


async def _by(tx: Tx, table: str) -> dict[str, Row]:
    return {row["id"]: row for row in await tx.all(f"select * from {table}")}


@pytest.mark.slow
async def test_everything_agrees_after_a_random_walk(shop: Shop) -> None:
    walk = Walk(shop, 0)
    await walk.open()
    for _ in range(WAVES):
        await walk.wave(12)
    assert walk.surprises == []
    assert len(walk.orders) > WAVES
    assert await shop.db.read(faults) == []
