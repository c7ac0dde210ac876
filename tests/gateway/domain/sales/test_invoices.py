"""Tests invoices over HTTP: numbers, amounts, states and permissions."""

from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from tests.support.rest import Person, RestApi

NOWHERE = "0" * 24
PLAIN: dict[str, Any] = {"total": 100, "dueDate": "2999-12-31"}


async def create(who: Person, **body: Any) -> dict[str, Any]:
    reply = await who.post("/api/invoices", PLAIN | body)
    assert reply.status == 201, reply.text
    record: dict[str, Any] = reply.body
    return record


LINE: dict[str, Any] = {"description": "x", "quantity": 2, "unitPrice": 10}


@pytest.mark.parametrize(
    ("body", "faults"),
    [
        ({"total": None}, {"total": "required"}),
        ({"total": None, "items": []}, {"total": "required"}),
        ({"total": 21, "items": [LINE]}, {"total": "disagrees"}),
        ({"total": None, "items": [LINE], "discount": 20.01}, {"discount": "too_large"}),
        ({"total": 10, "shipping": 11}, {"shipping": "too_large"}),
        ({"total": -1}, {"total": "out_of_range"}),
        ({"total": 1.001}, {"total": "too_precise"}),
        ({"total": "1"}, {"total": "wrong_type"}),
        ({"total": True}, {"total": "wrong_type"}),
        ({"total": 999_999_999_999.99, "discount": 0.01}, {"total": "out_of_range"}),
        ({"total": 1e300}, {"total": "out_of_range"}),
        ({"items": [LINE] * 201}, {"items": "too_many"}),
        ({"items": {}}, {"items": "wrong_type"}),
        ({"items": [5, LINE, None]}, {"items[0]": "wrong_type", "items[2]": "wrong_type"}),
        (
            {"items": [{}]},
            {"items[0].description": "required", "items[0].quantity": "required",
             "items[0].unitPrice": "required"},
        ),
        ({"items": [LINE | {"quantity": 0}]}, {"items[0].quantity": "out_of_range"}),
        ({"items": [LINE | {"quantity": -1}]}, {"items[0].quantity": "out_of_range"}),
        ({"items": [LINE | {"quantity": 1_000_000}]}, {"items[0].quantity": "out_of_range"}),
        ({"items": [LINE | {"quantity": 1.0001}]}, {"items[0].quantity": "too_precise"}),
        ({"items": [LINE | {"quantity": "2"}]}, {"items[0].quantity": "wrong_type"}),
        ({"items": [LINE | {"unitPrice": 0.001}]}, {"items[0].unitPrice": "too_precise"}),
        ({"items": [LINE | {"discount": 20.01}]}, {"items[0].discount": "too_large"}),
        ({"items": [LINE | {"total": 19}]}, {"items[0].total": "disagrees"}),
        ({"items": [LINE | {"description": " "}]}, {"items[0].description": "blank"}),
        (
            {"total": None, "items": [LINE | {"productId": NOWHERE}]},
            {"items[0].productId": "invalid_reference"},
        ),
        ({"items": [LINE | {"productId": "x"}]}, {"items[0].productId": "invalid_reference"}),
        (
            {"items": [LINE | {"quantity": 999_999, "unitPrice": 999_999_999}]},
            {"items[0].quantity": "out_of_range"},
        ),
        (
            {"total": None,
             "items": [{"description": "x", "quantity": 1, "unitPrice": 600_000_000_000}] * 2},
            {"total": "out_of_range"},
        ),
        ({"dueDate": None}, {"dueDate": "not_nullable"}),
        ({"dueDate": "2026-02-30"}, {"dueDate": "invalid_date"}),
        (
            {"contactId": NOWHERE, "companyId": "x", "dealId": NOWHERE, "quoteId": NOWHERE},
            {"contactId": "invalid_reference", "companyId": "invalid_reference",
             "dealId": "invalid_reference", "quoteId": "invalid_reference"},
        ),
    ],
)  # fmt: skip
async def test_an_invalid_invoice_is_refused_and_takes_no_number(
    ana: Person, body: dict[str, Any], faults: dict[str, str]
) -> None:
    reply = await ana.post("/api/invoices", PLAIN | body)
    assert (reply.status, reply.faults) == (400, faults)
    assert (await create(ana))["number"] == "INV-000001"


async def test_an_invoice_stays_when_its_references_are_deleted(ana: Person) -> None:
    made_of = {}
    for field, path, body in (
        ("contactId", "/api/contacts", {"name": "C"}),
        ("companyId", "/api/companies", {"name": "C"}),
        ("dealId", "/api/deals", {"title": "D", "value": 1}),
    ):
        made_of[field] = (path, (await ana.post(path, body)).body["id"])
    product = (await ana.post("/api/products", {"name": "P", "price": 1})).body["id"]
    invoice = await create(
        ana, total=None, items=[LINE | {"productId": product}],
        **{field: record_id for field, (_, record_id) in made_of.items()},
    )  # fmt: skip
    path = f"/api/invoices/{invoice['id']}"
    for field, (kind, record_id) in made_of.items():
        listed = (await ana.get(f"/api/invoices?{field}={record_id}")).body
        assert [i["id"] for i in listed["data"]] == [invoice["id"]]
        await ana.delete(f"{kind}/{record_id}")
        assert field not in (await ana.get(path)).body
    await ana.delete(f"/api/products/{product}")
    # The line keeps its deleted product, and a client can send it back.
    items = (await ana.get(path)).body["items"]
    assert items[0]["productId"] == product
    etag = (await ana.get(path)).headers["ETag"]
    assert (await ana.put(path, {"items": items})).headers["ETag"] == etag
    assert (await ana.put(path, {"items": items, "discount": 1})).status == 200
    added = await ana.put(path, {"items": [*items, LINE | {"productId": NOWHERE}]})
    assert added.faults == {"items[1].productId": "invalid_reference"}


@pytest.mark.parametrize("none", [[], None])
async def test_without_lines_a_total_is_required(ana: Person, none: Any) -> None:
    invoice = await create(ana, total=None, items=[LINE])
    path = f"/api/invoices/{invoice['id']}"
    assert (await ana.put(path, {"items": none})).faults == {"total": "required"}
    assert (await ana.put(path, {"items": none, "notes": "x"})).status == 400
    assert (await ana.get(path)).body == invoice
    plain = await ana.put(path, {"items": none, "total": 7})
    assert (plain.body["items"], plain.body["subtotal"], plain.body["total"]) == ([], 7, 7)
    # The invoice has no lines, so nothing changes.
    assert (await ana.put(path, {"items": none})).headers["ETag"] == plain.headers["ETag"]


@pytest.mark.parametrize(
    ("sent", "zone", "shown"),
    [
        ("2026-03-01", "America/Sao_Paulo", "2026-03-01T03:00:00.000Z"),
        ("2026-03-01", "Asia/Tokyo", "2026-02-28T15:00:00.000Z"),
        ("2026-03-01T00:00:00", "America/Sao_Paulo", "2026-03-01T00:00:00.000Z"),
        ("0001-01-01", "Asia/Tokyo", "0001-01-01T00:00:00.000Z"),
        ("9999-12-31", "America/Sao_Paulo", "9999-12-31T03:00:00.000Z"),
    ],
)
async def test_a_day_of_payment_begins_in_the_owners_time_zone(
    api: RestApi, ana: Person, sent: str, zone: str, shown: str
) -> None:
    await api.move(ana, zone)
    path = f"/api/invoices/{(await create(ana))['id']}/pay"
    first = await ana.post(path, {"paidAt": sent}, Idempotency_Key="k")
    assert (first.status, first.body["paidAt"]) == (200, shown)
    assert (await api.events())[-1][1]["paidAt"] == shown
    assert (await ana.post(path, {"paidAt": sent}, Idempotency_Key="k")).text == first.text


async def test_the_list_and_its_filters(ana: Person, bia: Person) -> None:
    records = [await create(ana, total=n) for n in (1, 2, 3)]
    await create(bia)
    reply = await ana.get("/api/invoices")
    assert reply.body == {"data": records[::-1], "total": 3, "page": 1, "limit": 20}
    await ana.post(f"/api/invoices/{records[0]['id']}/cancel")
    # A date is a day in the zone of the owner, in which yesterday may not have ended.
    made_at = datetime.fromisoformat(records[0]["createdAt"])
    today, far = made_at.astimezone(ZoneInfo("America/Sao_Paulo")).date(), "2999-01-01"
    for query, count in (
        ("status=pending", 2), ("status=canceled", 1), ("status=foo", 0),
        ("number=INV-000002", 1), ("number=INV-9", 0), (f"quoteId={NOWHERE}", 0),
        (f"from={today}", 3), (f"from={today}&to={today}", 3), (f"from={far}", 0),
        ("to=2020-01-01", 0), ("from=rubbish", 0), ("to=2020-01-01T00:00:00+00:00", 0),
        (f"from=2020-01-01T00:00:00-03:00&to={far}T00:00:00Z&status=pending", 2),
        ("overdue=false&status=pending", 2), ("search=INV", 3),
    ):  # fmt: skip
        reply = await ana.get(f"/api/invoices?{query}")
        assert (reply.status, reply.body["total"]) == (200, count), query
        assert len(reply.body["data"]) == count
    listed = (await ana.get("/api/invoices?sort=dueDate&limit=2")).body
    assert len(listed["data"]) == 2
    read_slice = (await ana.get(f"/api/invoices?overdue=false&limit=2&from={today}")).body
    assert len(read_slice["data"]) == 2
    onward = f"&cursor={read_slice['nextCursor']}"
    rest = (await ana.get(f"/api/invoices?overdue=false&limit=2&from={today}{onward}")).body
    assert [r["id"] for r in read_slice["data"] + rest["data"]] == [r["id"] for r in records[::-1]]
