"""Tests invoices over HTTP: numbers, amounts, states and permissions."""

import asyncio
import json
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from gateway.records.values import dates
from tests.support.rest import Person, RestApi

NOWHERE = "0" * 24
PLAIN: dict[str, Any] = {"total": 100, "dueDate": "2999-12-31"}


async def create(who: Person, **body: Any) -> dict[str, Any]:
    reply = await who.post("/api/invoices", PLAIN | body)
    assert reply.status == 201, reply.text
    record: dict[str, Any] = reply.body
    return record


async def test_a_plain_total(ana: Person) -> None:
    reply = await ana.post("/api/invoices", PLAIN)
    assert reply.status == 201
    invoice = reply.body
    assert invoice == {
        "id": invoice["id"], "number": "INV-000001", "status": "pending", "items": [],
        "subtotal": 100, "discount": 0, "shipping": 0, "total": 100, "currency": "BRL",
        "dueDate": "2999-12-31T00:00:00.000Z", "overdue": False, "createdAt": invoice["createdAt"],
    }  # fmt: skip
    assert (await ana.get(reply.headers["Location"])).body == invoice


async def test_lines_determine_the_total(ana: Person) -> None:
    invoice = await create(
        ana, total=None, discount=5, shipping=12.5,
        items=[
            {"description": "Hours", "quantity": 1.5, "unitPrice": 33.33},
            {"description": "Coffee", "quantity": 3, "unitPrice": 10, "discount": 0.5},
        ],
    )  # fmt: skip
    first, second = invoice["items"]
    assert first == {
        "id": first["id"], "description": "Hours", "quantity": 1.5, "unitPrice": 33.33,
        "discount": 0, "total": 50,
    }  # fmt: skip
    assert (second["quantity"], second["discount"], second["total"]) == (3, 0.5, 29.5)
    assert len({first["id"], second["id"]}) == 2
    assert [invoice[k] for k in ("subtotal", "discount", "shipping", "total")] == [
        79.5, 5, 12.5, 87,
    ]  # fmt: skip
    assert (await ana.get(f"/api/invoices/{invoice['id']}")).body == invoice


@pytest.mark.parametrize(
    ("quantity", "price", "total"),
    [
        (0.5, 0.01, 0.01), (0.499, 0.01, 0), (0.001, 0.01, 0), (1.5, 0.03, 0.05),
        (2.5, 0.01, 0.03), (0.333, 100, 33.3), (1.005, 1, 1.01), (999999.999, 0.01, 10000),
        (3, 19.99, 59.97), (1, 0, 0), (0.1, 0.35, 0.04), (1e0, 1e2, 100),
    ],
)  # fmt: skip
async def test_a_line_is_rounded_half_up(
    ana: Person, quantity: float, price: float, total: float
) -> None:
    line = {"description": "x", "quantity": quantity, "unitPrice": price}
    invoice = await create(ana, total=None, items=[line])
    assert invoice["items"][0]["total"] == invoice["total"] == total


async def test_each_line_is_rounded_separately(ana: Person) -> None:
    line = {"description": "x", "quantity": 0.5, "unitPrice": 0.01}
    assert (await create(ana, total=None, items=[line] * 200))["total"] == 2


async def test_a_correct_total_is_accepted(ana: Person) -> None:
    line = {"description": "x", "quantity": 2, "unitPrice": 10, "total": 20}
    assert (await create(ana, total=18, discount=2, items=[line]))["total"] == 18
    assert (await create(ana, total=100, discount=10, shipping=30))["subtotal"] == 80


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


async def test_faults_of_all_kinds_are_reported_at_once(ana: Person) -> None:
    reply = await ana.post("/api/invoices", {"items": [{"unitPrice": 1}], "contactId": NOWHERE})
    assert reply.faults == {
        "items[0].description": "required", "items[0].quantity": "required",
        "contactId": "invalid_reference", "dueDate": "required",
    }  # fmt: skip


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


async def test_a_change_recomputes_the_amounts(ana: Person) -> None:
    invoice = await create(ana, total=None, items=[LINE, LINE | {"description": "y"}])
    path = f"/api/invoices/{invoice['id']}"
    first, second = (line["id"] for line in invoice["items"])
    reply = await ana.put(path, {"shipping": 5})
    assert (reply.status, reply.body["total"]) == (200, 45)
    reply = await ana.put(path, {"items": [LINE | {"id": second, "quantity": 1}, LINE]})
    # The second line has its id and changes; the first one keeps its id without sending it.
    assert [line["id"] for line in reply.body["items"]] == [second, first]
    assert (reply.body["subtotal"], reply.body["total"]) == (30, 35)
    reply = await ana.put(path, {"items": [LINE | {"id": NOWHERE}]})
    assert reply.body["items"][0]["id"] not in (NOWHERE, first, second)
    assert (await ana.put(path, {"total": 26})).faults == {"total": "disagrees"}
    assert (await ana.put(path, {"discount": 21})).faults == {"discount": "too_large"}
    reply = await ana.put(path, {"items": None, "total": 7, "shipping": None})
    assert (reply.body["items"], reply.body["subtotal"], reply.body["total"]) == ([], 7, 7)
    reply = await ana.put(path, {"discount": 2})
    assert (reply.body["subtotal"], reply.body["total"]) == (7, 5)
    assert (await ana.put(path, {"total": None})).body["total"] == 5
    assert (await ana.put(path, {"dueDate": None})).faults == {"dueDate": "not_nullable"}


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


async def test_sending_back_the_response_changes_nothing(api: RestApi, ana: Person) -> None:
    invoice = await create(ana, total=None, items=[LINE, LINE], discount=1, notes="n")
    path = f"/api/invoices/{invoice['id']}"
    for body in (invoice, {}, {"items": [LINE, LINE]}, {"status": "pending"}, {"total": 39}):
        reply = await ana.put(path, body)
        assert (reply.status, reply.headers["ETag"], reply.body) == (200, '"1"', invoice), body
    assert [name for name, _ in await events(api)] == ["invoice.created"]


async def events(api: RestApi) -> list[tuple[str, dict[str, Any]]]:
    async def unit(tx: Any) -> Any:
        return await tx.all("select name, body from events order by pos")

    rows = await api.db.read(unit)
    return [(row["name"], json.loads(bytes(row["body"]))["data"]) for row in rows]


async def test_paying(api: RestApi, ana: Person) -> None:
    invoice = await create(ana)
    path = f"/api/invoices/{invoice['id']}"
    reply = await ana.post(f"{path}/pay", {"method": "pix", "reference": "E1", "x": 1})
    assert (reply.status, reply.headers["ETag"]) == (200, '"2"')
    assert reply.headers["X-Ignored-Fields"] == "x"
    paid = reply.body
    assert paid == invoice | {
        "status": "paid", "paidAt": paid["updatedAt"], "updatedAt": paid["updatedAt"],
        "method": "pix", "reference": "E1",
    }  # fmt: skip
    again = await ana.post(f"{path}/pay")
    assert (again.status, again.body["code"], again.body["allowed"]) == (
        409, "invalid_transition", [],
    )  # fmt: skip
    number, total = "INV-000001", 100
    assert await events(api) == [
        ("invoice.created", {
            "id": invoice["id"], "number": number, "total": total, "status": "pending",
            "dueDate": invoice["dueDate"], "createdAt": invoice["createdAt"],
        }),
        ("invoice.paid", {
            "id": invoice["id"], "number": number, "total": total, "paidAt": paid["paidAt"],
        }),
    ]  # fmt: skip


async def test_the_time_of_payment_can_be_sent(ana: Person) -> None:
    path = f"/api/invoices/{(await create(ana))['id']}"
    for body, faults in (
        ({"paidAt": "yesterday"}, {"paidAt": "invalid_date"}),
        ({"method": "gold"}, {"method": "not_allowed"}),
        ({"reference": "x" * 201}, {"reference": "too_long"}),
    ):
        assert (await ana.post(f"{path}/pay", body)).faults == faults
    reply = await ana.post(f"{path}/pay", {"paidAt": "2026-01-02T03:04:05-03:00", "method": None})
    assert reply.body["paidAt"] == "2026-01-02T06:04:05.000Z"
    assert "method" not in reply.body


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


async def test_canceling(api: RestApi, ana: Person) -> None:
    path = f"/api/invoices/{(await create(ana))['id']}"
    reply = await ana.post(f"{path}/cancel", {"reason": "Twice"})
    assert (reply.status, reply.body["status"], reply.body["reason"]) == (200, "canceled", "Twice")
    assert reply.body["canceledAt"] == reply.body["updatedAt"]
    assert (await events(api))[1:] == [
        ("invoice.updated", {
            "id": reply.body["id"], "number": "INV-000001", "status": "canceled",
            "updatedAt": reply.body["updatedAt"],
        }),
    ]  # fmt: skip
    for verb in ("pay", "cancel"):
        again = await ana.post(f"{path}/{verb}", {})
        assert (again.status, again.body["code"]) == (409, "invalid_transition")
    assert len(await events(api)) == 2


async def test_the_status_can_be_changed_by_put(api: RestApi, ana: Person) -> None:
    path = f"/api/invoices/{(await create(ana))['id']}"
    assert (await ana.put(path, {"status": "late"})).faults == {"status": "not_allowed"}
    assert (await ana.put(path, {"status": None})).faults == {"status": "not_nullable"}
    reply = await ana.put(path, {"status": "paid", "notes": "thanks"})
    assert (reply.status, reply.body["notes"]) == (200, "thanks")
    assert reply.body["paidAt"] == reply.body["updatedAt"]
    assert (await ana.put(path, {"status": "paid"})).headers["ETag"] == '"2"'
    for status in ("pending", "canceled"):
        refused = await ana.put(path, {"status": status})
        assert (refused.status, refused.body["code"]) == (409, "invalid_transition")
        assert refused.body["allowed"] == []
    refused = await ana.put(path, {"notes": "other"})
    assert (refused.status, refused.body["code"]) == (409, "conflict")
    assert (await ana.put(path, {"notes": "thanks"})).status == 200
    assert [name for name, _ in await events(api)] == ["invoice.created", "invoice.paid"]


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


async def test_the_date_filters_use_the_owners_days(api: RestApi, ana: Person) -> None:
    ids = [(await create(ana))["id"] for _ in range(3)]
    times = ("2026-03-01T02:59:59.999Z", "2026-03-01T03:00:00Z", "2026-03-02T02:59:59.999Z")

    async def unit(tx: Any) -> None:
        for record_id, time in zip(ids, times, strict=True):
            sql = "update invoices set created_at = $2 where id = $1"
            await tx.run(sql, record_id, dates.parse(time))

    await api.db.write(unit)
    for query, expected in (
        ("from=2026-03-01", ids[1:]), ("to=2026-02-28", ids[:1]), ("to=2026-03-01", ids),
        ("from=2026-03-01&to=2026-03-01", ids[1:]), ("from=2026-03-02", []),
        ("to=2026-03-01T03:00:00Z", ids[:2]), ("from=2026-03-01T03:00:00.001Z", ids[2:]),
        ("from=0001-01-01&to=9999-12-31", ids), ("from=9999-12-31", []), ("to=0001-01-01", []),
        ("updatedSince=2026-03-01", ids[1:]), ("updatedSince=2026-03-02", []),
    ):  # fmt: skip
        reply = await ana.get(f"/api/invoices?{query}")
        shown = {r["id"] for r in reply.body["data"]}
        assert (reply.body["total"], shown) == (len(expected), set(expected)), query
    await api.move(ana, "Pacific/Kiritimati")
    assert (await ana.get("/api/invoices?from=2026-03-01&to=2026-03-01")).body["total"] == 2
    assert (await ana.get("/api/invoices?updatedSince=2026-03-02")).body["total"] == 1


async def test_an_idempotency_key_takes_one_number(ana: Person) -> None:
    replies = [await ana.post("/api/invoices", PLAIN, Idempotency_Key="k") for _ in range(3)]
    assert len({reply.text for reply in replies}) == 1
    assert (await create(ana))["number"] == "INV-000002"
    path = f"/api/invoices/{replies[0].body['id']}/pay"
    paid = [await ana.post(path, {"method": "pix"}, Idempotency_Key="k") for _ in range(2)]
    assert [reply.status for reply in paid] == [200, 200]
    assert paid[0].text == paid[1].text


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
