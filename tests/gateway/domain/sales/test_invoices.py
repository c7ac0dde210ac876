"""Tests invoices over HTTP: numbers, amounts, states and permissions."""

import asyncio
import json
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


async def test_a_line_is_rounded_half_up(ana: Person) -> None:
    for quantity, price, total in (
        (0.5, 0.01, 0.01), (0.499, 0.01, 0), (0.001, 0.01, 0), (1.5, 0.03, 0.05),
        (2.5, 0.01, 0.03), (0.333, 100, 33.3), (1.005, 1, 1.01), (999999.999, 0.01, 10000),
        (3, 19.99, 59.97), (1, 0, 0), (0.1, 0.35, 0.04), (1e0, 1e2, 100),
    ):  # fmt: skip
        line = {"description": "x", "quantity": quantity, "unitPrice": price}
        invoice = await create(ana, total=None, items=[line])
        assert invoice["items"][0]["total"] == invoice["total"] == total, (quantity, price)


LINE: dict[str, Any] = {"description": "x", "quantity": 2, "unitPrice": 10}


@pytest.mark.parametrize("db_url", ["sqlite"], indirect=True)
async def test_an_invalid_invoice_is_refused_and_takes_no_number(ana: Person) -> None:
    huge = {"description": "x", "quantity": 1, "unitPrice": 600_000_000_000}
    references = ("contactId", "companyId", "dealId", "quoteId")
    for number, (body, faults) in enumerate(
        (
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
            *(
                ({"items": [LINE | {name: value}]}, {f"items[0].{name}": code})
                for name, value, code in (
                    ("quantity", 0, "out_of_range"), ("quantity", -1, "out_of_range"),
                    ("quantity", 1_000_000, "out_of_range"), ("quantity", 1.0001, "too_precise"),
                    ("quantity", "2", "wrong_type"), ("unitPrice", 0.001, "too_precise"),
                    ("discount", 20.01, "too_large"), ("total", 19, "disagrees"),
                    ("description", " ", "blank"), ("productId", "x", "invalid_reference"),
                )
            ),
            (
                {"total": None, "items": [LINE | {"productId": NOWHERE}]},
                {"items[0].productId": "invalid_reference"},
            ),
            (
                {"items": [LINE | {"quantity": 999_999, "unitPrice": 999_999_999}]},
                {"items[0].quantity": "out_of_range"},
            ),
            ({"total": None, "items": [huge] * 2}, {"total": "out_of_range"}),
            ({"dueDate": None}, {"dueDate": "not_nullable"}),
            ({"dueDate": "2026-02-30"}, {"dueDate": "invalid_date"}),
            (dict.fromkeys(references, NOWHERE), dict.fromkeys(references, "invalid_reference")),
        ),
        start=1,
    ):  # fmt: skip
        reply = await ana.post("/api/invoices", PLAIN | body)
        assert (reply.status, reply.faults) == (400, faults), body
        assert (await create(ana))["number"] == f"INV-{number:06}"


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


async def test_without_lines_a_total_is_required(ana: Person) -> None:
    for none in ([], None):
        invoice = await create(ana, total=None, items=[LINE])
        path = f"/api/invoices/{invoice['id']}"
        assert (await ana.put(path, {"items": none})).faults == {"total": "required"}
        assert (await ana.put(path, {"items": none, "notes": "x"})).status == 400
        assert (await ana.get(path)).body == invoice
        plain = await ana.put(path, {"items": none, "total": 7})
        assert (plain.body["items"], plain.body["subtotal"], plain.body["total"]) == ([], 7, 7)
        # The invoice has no lines, so nothing changes.
        assert (await ana.put(path, {"items": none})).headers["ETag"] == plain.headers["ETag"]


async def events(api: RestApi) -> list[tuple[str, dict[str, Any]]]:
    async def unit(tx: Any) -> Any:
        return await tx.all("select name, body from events order by pos")

    rows = await api.db.read(unit)
    return [(row["name"], json.loads(bytes(row["body"]))["data"]) for row in rows]


async def test_a_day_of_payment_begins_in_the_owners_time_zone(api: RestApi, ana: Person) -> None:
    for sent, zone, shown in (
        ("2026-03-01", "America/Sao_Paulo", "2026-03-01T03:00:00.000Z"),
        ("2026-03-01", "Asia/Tokyo", "2026-02-28T15:00:00.000Z"),
        ("2026-03-01T00:00:00", "America/Sao_Paulo", "2026-03-01T00:00:00.000Z"),
        ("0001-01-01", "Asia/Tokyo", "0001-01-01T00:00:00.000Z"),
        ("9999-12-31", "America/Sao_Paulo", "9999-12-31T03:00:00.000Z"),
    ):
        await api.move(ana, zone)
        invoice_id = (await create(ana))["id"]
        path = f"/api/invoices/{invoice_id}/pay"
        first = await ana.post(path, {"paidAt": sent}, Idempotency_Key=invoice_id)
        assert (first.status, first.body["paidAt"]) == (200, shown)
        assert (await api.events())[-1][1]["paidAt"] == shown
        again = await ana.post(path, {"paidAt": sent}, Idempotency_Key=invoice_id)
        assert again.text == first.text


async def test_overdue_depends_on_the_owners_day(api: RestApi, ana: Person) -> None:
    late = await create(ana, dueDate="2020-01-01")
    assert late["overdue"] is True
    path = f"/api/invoices/{late['id']}"
    assert (await ana.get(path)).headers["ETag"] == '"1-overdue"'
    await create(ana, dueDate="2999-01-01")
    paid = await create(ana, dueDate="2020-01-01T12:00:00Z")
    await ana.post(f"/api/invoices/{paid['id']}/pay")
    for query, count in (("true", 1), ("false", 2), ("x", 0)):
        reply = await ana.get(f"/api/invoices?overdue={query}")
        assert (reply.status, reply.body["total"]) == (200, count)

    # A day that has ended in one time zone and not yet in another.
    async def both(due: int, day: bool) -> list[bool]:
        async def set_due(tx: Any) -> None:
            await tx.run(
                "update invoices set due_at = $2, due_day = $3 where id = $1", late["id"], due, day
            )

        await api.db.write(set_due)
        flags = []
        for zone in ("Pacific/Kiritimati", "Pacific/Pago_Pago"):
            await api.move(ana, zone)
            shown: bool = (await ana.get(path)).body["overdue"]
            listed = (await ana.get("/api/invoices?overdue=true")).body["total"]
            assert listed == int(shown)
            flags.append(shown)
        return flags

    now = api.db.clock.wall()
    day = 86_400_000_000
    today = now - now % day
    assert await both(today - 2 * day, True) == [True, True]
    assert await both(today + day, True) == [False, False]
    # The zones are 25 hours apart, so each day has ended in only one of them.
    ends = [await both(today + n * day, True) for n in (-1, 0)]
    assert [True, False] in ends
    assert await both(now - 60_000_000, False) == [True, True]
    assert await both(now + 60_000_000, False) == [False, False]


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


async def test_one_of_the_concurrent_verbs_succeeds(api: RestApi, ana: Person) -> None:
    for _ in range(5):
        path = f"/api/invoices/{(await create(ana))['id']}"
        calls = [ana.post(f"{path}/{verb}") for verb in ("pay", "cancel") * 3]
        calls += [ana.put(path, {"status": "paid", "notes": str(n)}) for n in range(3)]
        replies = await asyncio.gather(*calls)
        winners = [reply for reply in replies if reply.status == 200]
        assert len(winners) == 1
        assert {reply.status for reply in replies} == {200, 409}
        assert (await ana.get(path)).body == winners[0].body
    names = [name for name, _ in await events(api)]
    assert names.count("invoice.created") == 5
    assert len(names) == 10
