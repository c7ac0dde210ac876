"""What each write stores with its event for the filters of webhooks, and that no body has it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gateway.domain.catalogue import EVENTS
from gateway.domain.imports.importing import Importing
from gateway.domain.sales.quotes import expire_quotes
from outbox.database.transaction import Database, Tx
from tests.support.orders import cancel, pay, placed, product
from tests.support.rest import Person, RestApi
from tests.support.shop import open_shop

Stored = tuple[str, dict[str, tuple[Any, bool]]]


async def stored(db: Database, after: int = 0) -> list[Stored]:
    """Return the name of each event, with its fields of the record: value, and whether changed."""

    async def unit(tx: Tx) -> list[Stored]:
        rows = await tx.all("select name, body, record_fields from events order by pos")
        for row in rows:
            # The contract decides what a body has.
            assert tuple(json.loads(row["body"])["data"]) == EVENTS[row["name"]]
        return [
            (row["name"], {name: (value, changed) for name, value, changed in fields})
            for row in rows[after:]
            for fields in [json.loads(row["record_fields"] or "[]")]
        ]

    return await db.read(unit)


async def made(who: Person, path: str, body: Any, status: int = 201) -> dict[str, Any]:
    reply = await who.post(path, body)
    assert reply.status == status, reply.text
    record: dict[str, Any] = reply.body
    return record


async def test_a_deal_over_its_life(api: RestApi, ana: Person) -> None:
    deal = await made(ana, "/api/deals", {"title": "Supply", "value": 9, "stage": "lead"})
    path = f"/api/deals/{deal['id']}"
    for body in (
        {"probability": 5}, {"stage": "proposal"}, {"status": "won"}, {"status": "won"},
        {"stage": None, "status": "open"},
    ):  # fmt: skip
        assert (await ana.put(path, body)).status == 200
    assert (await ana.delete(path)).status == 200
    assert await stored(api.db) == [
        ("deal.created", {"stage": ("lead", True), "status": ("open", True)}),
        ("deal.updated", {"stage": ("lead", False), "status": ("open", False)}),
        ("deal.updated", {"stage": ("proposal", True), "status": ("open", False)}),
        ("deal.updated", {"stage": ("proposal", False), "status": ("won", True)}),
        ("deal.updated", {"stage": ("proposal", False), "status": ("won", False)}),
        ("deal.updated", {"stage": (None, True), "status": ("open", True)}),
        ("deal.deleted", {"stage": (None, False), "status": ("open", False)}),
    ]


async def test_tasks_invoices_and_quotes(api: RestApi, ana: Person) -> None:
    task = await made(ana, "/api/tasks", {"title": "Call"})
    await made(ana, f"/api/tasks/{task['id']}/complete", None, 200)
    invoice = await made(ana, "/api/invoices", {"total": 9, "dueDate": "2030-01-01"})
    assert (await ana.put(f"/api/invoices/{invoice['id']}", {"notes": "x"})).status == 200
    await made(ana, f"/api/invoices/{invoice['id']}/pay", {"method": "pix"}, 200)
    line = {"description": "Coffee", "quantity": 1, "unitPrice": 9}
    quote = await made(ana, "/api/quotes", {"items": [line]})
    await made(ana, f"/api/quotes/{quote['id']}/accept", None, 200)
    await made(ana, f"/api/quotes/{quote['id']}/convert", {})
    assert await stored(api.db) == [
        ("task.created", {"priority": ("medium", True), "completed": (False, True)}),
        ("task.completed", {"priority": ("medium", False), "completed": (True, True)}),
        ("invoice.created", {"status": ("pending", True)}),
        ("invoice.updated", {"status": ("pending", False)}),
        ("invoice.paid", {"status": ("paid", True)}),
        ("quote.created", {"status": ("draft", True)}),
        ("quote.updated", {"status": ("accepted", True)}),
        ("invoice.created", {"status": ("pending", True)}),
    ]


async def test_a_quote_that_expires(
    api: RestApi, ana: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = {"description": "Coffee", "quantity": 1, "unitPrice": 9}
    quote = await made(ana, "/api/quotes", {"items": [line], "validUntil": "2026-01-01"})
    before = len(await stored(api.db))

    async def late(tx: Tx) -> int:
        await tx.run("update quotes set status = 'sent' where id = $1", quote["id"])
        return await expire_quotes(tx, 10)

    assert await api.db.write(late) == 1
    assert await stored(api.db, before) == [("quote.updated", {"status": ("expired", True)})]


async def test_other_kinds_store_nothing(api: RestApi, ana: Person) -> None:
    await made(ana, "/api/contacts", {"name": "Maria"})
    await made(ana, "/api/products", {"name": "Coffee", "price": 5})
    assert await stored(api.db) == [("contact.created", {}), ("product.created", {})]


async def test_batches_and_imports(api: RestApi, ana: Person) -> None:
    items = [{"title": "a", "value": 1, "stage": "lead"}, {"title": "b", "value": 2}]
    assert (await ana.post("/api/deals/batch", {"items": items})).status == 207
    text = "title,value,stage\nc,3,proposal\n"
    sent = await ana.call("POST", "/api/import/deals", data=text.encode(), Content_Type="text/csv")
    assert sent.status == 202
    await Importing(api.db).run_once()
    assert await stored(api.db) == [
        ("deal.created", {"stage": ("lead", True), "status": ("open", True)}),
        ("deal.created", {"stage": (None, False), "status": ("open", True)}),
        ("deal.created", {"stage": ("proposal", True), "status": ("open", True)}),
    ]


@pytest.mark.parametrize("paid", [True, False])
async def test_the_deal_of_an_order_that_ends(api: RestApi, *, paid: bool) -> None:
    shop = await open_shop(api)
    try:
        order = await placed(shop, {await product(shop.owner): 1})
        before = len(await stored(shop.db))
        done = await (pay if paid else cancel)(shop.owner, order)
        assert done.status == 200
        names = ("invoice.paid", "paid", "won") if paid else ("invoice.updated", "canceled", "lost")
        event, invoice, deal = names
        assert await stored(shop.db, before) == [
            (event, {"status": (invoice, True)}),
            ("deal.updated", {"stage": ("checkout", False), "status": (deal, True)}),
        ]
    finally:
        await shop.close()
