"""Tests invoices over HTTP: numbers, amounts, states and permissions."""

import asyncio
import json
from typing import Any

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


@pytest.mark.slow
@pytest.mark.parametrize("db_url", ["sqlite"], indirect=True)
async def test_an_invalid_invoice_is_refused_and_takes_no_number(ana: Person) -> None:
    huge = {"description": "x", "quantity": 1, "unitPrice": 600_000_000_000}
    references = ("contactId", "companyId", "dealId", "quoteId")
    wrong: list[tuple[dict[str, Any], dict[str, str]]] = [
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
    ]  # fmt: skip
    for number, (body, faults) in enumerate(wrong, start=1):
        reply = await ana.post("/api/invoices", PLAIN | body)
        assert (reply.status, reply.faults) == (400, faults), body
        assert (await create(ana))["number"] == f"INV-{number:06}"


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
    path = f"/api/invoices/{late['id']}"
    assert (await ana.get(path)).headers["ETag"] == '"1-overdue"'

    # A day that has ended in one time zone and not yet in another.
    async def both(due: int, day: bool) -> list[bool]:
        async def set_due(tx: Any) -> None:
            await tx.run("update invoices set due_at = $1, due_day = $2", due, day)

        await api.db.write(set_due)
        flags = []
        for zone in ("Pacific/Kiritimati", "Pacific/Pago_Pago"):
            await api.move(ana, zone)
            flags.append(bool((await ana.get(path)).body["overdue"]))
            listed = (await ana.get("/api/invoices?overdue=true")).body["total"]
            assert listed == int(flags[-1])
        return flags

    now, day = api.db.clock.wall(), 86_400_000_000
    today = now - now % day
    assert await both(today - 2 * day, True) == [True, True]
    assert await both(today + day, True) == [False, False]
    # The zones are 25 hours apart, so each day has ended in only one of them.
    assert [True, False] in [await both(today + n * day, True) for n in (-1, 0)]
    assert await both(now - 60_000_000, False) == [True, True]
    assert await both(now + 60_000_000, False) == [False, False]


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
