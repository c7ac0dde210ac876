"""Tests orders over HTTP: what they show, and how payment, cancellation and expiry end them."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from gateway.domain.sales import order_verbs
from gateway.records.errors import Refusal
from outbox.database.transaction import Database, Tx
from tests.support.orders import cancel, order_of, pay, placed, product, stock_of
from tests.support.rest import RestApi
from tests.support.shop import Shop, open_shop

MINUTE = 60_000_000


@pytest.fixture
async def shop(api: RestApi) -> AsyncIterator[Shop]:
    shop = await open_shop(api)
    yield shop
    await shop.close()


async def reserved(db: Database) -> int:
    async def unit(tx: Tx) -> int:
        row = await tx.one("select count(*) as n from stock_reservations")
        return int(row["n"]) if row else 0

    return await db.read(unit)


async def since(shop: Shop, before: int) -> list[str]:
    """Return the names of the events after the first `before`."""
    return [name for name, _ in (await shop.api.events())[before:]]


async def deal_of(shop: Shop, order: dict[str, Any]) -> dict[str, Any]:
    deal: dict[str, Any] = (await shop.owner.get(f"/api/deals/{order['dealId']}")).body
    return deal


async def invoice_of(shop: Shop, order: dict[str, Any]) -> dict[str, Any]:
    invoice: dict[str, Any] = (await shop.owner.get(f"/api/invoices/{order['invoiceId']}")).body
    return invoice


async def test_a_store_without_deals(shop: Shop) -> None:
    order = await placed(shop, {await product(shop.owner): 1}, with_deal=False)
    assert "dealId" not in order
    assert (await pay(shop.owner, order)).status == 200
    assert (await order_of(shop.owner, order["id"]))["status"] == "paid"


async def test_a_refused_order_takes_nothing_and_no_number(shop: Shop) -> None:
    coffee, tea = await product(shop.owner, stock=2), await product(shop.owner, stock=0)
    before = await shop.api.events()
    with pytest.raises(Refusal):
        await placed(shop, {coffee: 1, tea: 1})
    assert (await stock_of(shop.owner, coffee), await reserved(shop.db)) == (2, 0)
    assert await shop.api.events() == before
    outcomes = await asyncio.gather(
        *(placed(shop, {coffee: 1}) for _ in range(5)), return_exceptions=True
    )
    numbers = sorted(one["number"] for one in outcomes if isinstance(one, dict))
    assert numbers == ["ORD-000001", "ORD-000002"]
    refused = [one for one in outcomes if isinstance(one, Refusal)]
    assert [one.code for one in refused] == ["insufficient_stock"] * 3
    assert await stock_of(shop.owner, coffee) == 0


async def test_a_paid_invoice_pays_the_order(shop: Shop) -> None:
    coffee = await product(shop.owner)
    order = await placed(shop, {coffee: 2})
    before = len(await shop.api.events())
    assert (await pay(shop.owner, order)).status == 200
    assert await since(shop, before) == ["invoice.paid", "order.paid", "deal.updated"]
    after = await order_of(shop.owner, order["id"])
    told = dict(await shop.api.events())
    assert {k: v for k, v in told["order.created"].items() if v is not None} == order
    assert {k: v for k, v in told["order.paid"].items() if v is not None} == after
    invoice = await invoice_of(shop, order)
    assert (after["status"], after["paidAt"]) == ("paid", invoice["paidAt"])
    deal = await deal_of(shop, order)
    assert (deal["status"], deal["probability"]) == ("won", 100)
    assert deal["closedAt"] == deal["updatedAt"]
    assert await stock_of(shop.owner, coffee) == 8
    assert await reserved(shop.db) == 0


async def test_a_status_in_a_put_pays_too(shop: Shop) -> None:
    order = await placed(shop, {await product(shop.owner): 1})
    paid = await shop.owner.put(f"/api/invoices/{order['invoiceId']}", {"status": "paid"})
    assert paid.status == 200
    assert (await order_of(shop.owner, order["id"]))["status"] == "paid"


@pytest.mark.parametrize("how", ["order", "invoice", "put"])
async def test_a_cancellation_returns_everything(shop: Shop, how: str) -> None:
    coffee = await product(shop.owner)
    order = await placed(shop, {coffee: 2})
    before = len(await shop.api.events())
    if how == "order":
        done = await cancel(shop.owner, order, reason="Ordered twice")
    elif how == "invoice":
        path = f"/api/invoices/{order['invoiceId']}/cancel"
        done = await shop.owner.post(path, {"reason": "Ordered twice"})
    else:
        path = f"/api/invoices/{order['invoiceId']}"
        done = await shop.owner.put(path, {"status": "canceled"})
    assert done.status == 200, done.body
    after, invoice = await order_of(shop.owner, order["id"]), await invoice_of(shop, order)
    assert (after["status"], invoice["status"]) == ("canceled", "canceled")
    assert "canceledAt" in after
    reason = None if how == "put" else "Ordered twice"
    assert after.get("reason") == invoice.get("reason") == reason
    deal = await deal_of(shop, order)
    assert (deal["status"], deal["lostReason"]) == ("lost", "The order ORD-000001 was canceled.")
    # A second one changes nothing.
    again = await cancel(shop.owner, order, reason="Another")
    assert (again.status, again.body) == (200, after)
    assert await since(shop, before) == ["invoice.updated", "order.canceled", "deal.updated"]
    assert (await stock_of(shop.owner, coffee), await reserved(shop.db)) == (10, 0)


async def test_the_order_decides_the_content_of_its_invoice(shop: Shop) -> None:
    order = await placed(shop, {await product(shop.owner): 1})
    path = f"/api/invoices/{order['invoiceId']}"
    before = (await shop.owner.get(path)).body
    for body in (
        {"items": [{"description": "x", "quantity": 1, "unitPrice": 1}]}, {"discount": 1},
        {"shipping": 5}, {"dueDate": "2999-12-31"},
    ):  # fmt: skip
        refused = await shop.owner.put(path, body)
        assert (refused.status, refused.body["code"]) == (409, "conflict"), body
    assert (await shop.owner.get(path)).body == before
    same = {name: before[name] for name in ("items", "discount", "total", "dueDate")}
    changed = await shop.owner.put(path, {**same, "notes": "Thank you"})
    assert (changed.status, changed.body["notes"]) == (200, "Thank you")


async def test_an_order_expires(shop: Shop) -> None:
    coffee = await product(shop.owner)
    order = await placed(shop, {coffee: 2}, lasts=-MINUTE)
    later = await placed(shop, {coffee: 1}, lasts=MINUTE)
    before = len(await shop.api.events())
    assert await shop.db.write(order_verbs.expire, 1) == 1
    assert await shop.db.write(order_verbs.expire, 1) == 0
    assert await since(shop, before) == ["invoice.updated", "order.expired", "deal.updated"]
    after, invoice = await order_of(shop.owner, order["id"]), await invoice_of(shop, order)
    assert (after["status"], invoice["status"]) == ("expired", "canceled")
    assert after["reason"] == invoice["reason"] == "The order expired."
    assert (await deal_of(shop, order))["lostReason"] == "The order ORD-000001 expired."
    assert await stock_of(shop.owner, coffee) == 9
    assert (await order_of(shop.owner, later["id"]))["status"] == "pending"
    assert (await cancel(shop.owner, order)).body["code"] == "invalid_transition"


async def test_a_deal_closed_by_hand(shop: Shop) -> None:
    coffee = await product(shop.owner)
    order = await placed(shop, {coffee: 1})
    await shop.owner.put(f"/api/deals/{order['dealId']}", {"status": "won"})
    await cancel(shop.owner, order)
    assert (await deal_of(shop, order))["status"] == "won"
    order = await placed(shop, {coffee: 1})
    await shop.owner.put(f"/api/deals/{order['dealId']}", {"status": "lost", "lostReason": "Price"})
    await pay(shop.owner, order)
    deal = await deal_of(shop, order)
    assert (deal["status"], deal["probability"]) == ("won", 100)
    assert "lostReason" not in deal


async def test_payment_against_cancellation(shop: Shop) -> None:
    for _ in range(5):
        coffee = await product(shop.owner)
        order = await placed(shop, {coffee: 2})
        invoice = f"/api/invoices/{order['invoiceId']}/cancel"
        before = len(await shop.api.events())
        replies = await asyncio.gather(
            pay(shop.owner, order), cancel(shop.owner, order), shop.owner.post(invoice),
            pay(shop.owner, order), cancel(shop.owner, order),
        )  # fmt: skip
        after = await order_of(shop.owner, order["id"])
        paid = after["status"] == "paid"
        names = await since(shop, before)
        ended = ["invoice.paid", "order.paid"] if paid else ["invoice.updated", "order.canceled"]
        assert names == [*ended, "deal.updated"]
        statuses = [reply.status for reply in replies]
        assert (statuses[0] == 200 or statuses[3] == 200) == paid
        assert statuses.count(200) == 1 if paid else set(statuses) <= {200, 409}
        assert await stock_of(shop.owner, coffee) == (8 if paid else 10)
        assert (await deal_of(shop, order))["status"] == ("won" if paid else "lost")


async def test_payment_against_expiry(shop: Shop) -> None:
    for _ in range(5):
        coffee = await product(shop.owner)
        order = await placed(shop, {coffee: 2}, lasts=-MINUTE)
        before = len(await shop.api.events())
        paid, *_ = await asyncio.gather(
            pay(shop.owner, order),
            shop.db.write(order_verbs.expire, 1),
            shop.db.write(order_verbs.expire, 1),
        )
        after, invoice = await order_of(shop.owner, order["id"]), await invoice_of(shop, order)
        ended = ("paid", "paid") if paid.status == 200 else ("expired", "canceled")
        assert (after["status"], invoice["status"]) == ended
        first = "invoice.paid" if paid.status == 200 else "invoice.updated"
        assert await since(shop, before) == [first, f"order.{ended[0]}", "deal.updated"]
        assert await stock_of(shop.owner, coffee) == (8 if paid.status == 200 else 10)
