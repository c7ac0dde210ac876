"""Tests reports over HTTP with records of known times."""

import csv
import io
from typing import Any

import pytest

from gateway.domain.reports import periods
from gateway.domain.reports.periods import Period, Span
from gateway.records.errors import Refusal
from gateway.records.values import dates
from outbox.durations import DAY
from tests.support.rest import Person, RestApi

NAMES = ("sales", "funnel", "receivables", "activities", "leads")


def at(text: str) -> int:
    """Return the microseconds of an instant."""
    found = dates.parse(text)
    assert found is not None
    return found


async def put_times(api: RestApi, table: str, record_id: str, **times: Any) -> None:
    """Set columns of a record that a request cannot set."""
    sets = ", ".join(f"{column} = ${i}" for i, column in enumerate(times, start=2))

    async def unit(tx: Any) -> None:
        await tx.run(f"update {table} set {sets} where id = $1", record_id, *times.values())

    await api.db.write(unit)


async def deal(
    api: RestApi, who: Person, value: float, time: str, won: str = "", lost: str = "", **body: Any
) -> str:
    record = (await who.post("/api/deals", {"title": "D", "value": value} | body)).body
    status = "won" if won else "lost" if lost else "open"
    if status != "open":
        await who.put(f"/api/deals/{record['id']}", {"status": status})
    closed = at(won or lost) if won or lost else None
    await put_times(api, "deals", record["id"], created_at=at(time), closed_at=closed)
    return str(record["id"])


async def invoice(
    api: RestApi, who: Person, total: float, time: str, paid: str = "", due: str = "2999-01-01"
) -> str:
    record = (await who.post("/api/invoices", {"total": total, "dueDate": due})).body
    if paid:
        await who.post(f"/api/invoices/{record['id']}/pay", {"paidAt": paid})
    await put_times(api, "invoices", record["id"], created_at=at(time))
    return str(record["id"])


async def test_reports_need_the_scope_read(api: RestApi, ana: Person) -> None:
    writer = await api.key_of(ana.user_id, ["write"])
    for path in ("/api/reports", *(f"/api/reports/{name}" for name in NAMES)):
        assert (await api.nobody.get(path)).status == 401
        assert (await writer.get(path)).status == 403
        assert (await ana.post(path, {})).status == 405


async def test_sales_by_month(api: RestApi, ana: Person, bia: Person) -> None:
    # 02:30Z on the first is still the previous month in São Paulo.
    await deal(api, ana, 100.5, "2026-01-01", won="2026-02-01T02:30:00Z")
    await deal(api, ana, 50, "2026-01-01", won="2026-02-28")
    await deal(api, ana, 70, "2026-01-01", lost="2026-02-10")
    await deal(api, ana, 80, "2026-02-01")
    await deal(api, bia, 999, "2026-01-01", won="2026-02-10")
    await invoice(api, ana, 10.25, "2026-01-15", paid="2026-03-01T12:00:00Z")
    await invoice(api, ana, 20, "2026-03-31T23:59:59-03:00")
    await invoice(api, ana, 40, "2026-04-01T00:00:00-03:00")
    gone = await invoice(api, ana, 500, "2026-02-15")
    await ana.post(f"/api/invoices/{gone}/cancel")
    reply = await ana.get("/api/reports/sales?from=2026-01-01&to=2026-03-31")
    assert reply.body == {
        "report": "sales", "from": "2026-01-01T03:00:00.000Z", "to": "2026-04-01T02:59:59.999Z",
        "timezone": "America/Sao_Paulo", "groupBy": "month", "currency": "BRL",
        "data": [row("2026-01", 1, 100.5, 1, 10.25, 0, 0), row("2026-02", 1, 50, 0, 0, 0, 0),
                 row("2026-03", 0, 0, 1, 20, 1, 10.25)],
        "totals": without_group(row("", 2, 150.5, 2, 30.25, 1, 10.25)),
    }  # fmt: skip
    utc = (await ana.get("/api/reports/sales?from=2026-01-01&to=2026-04-30&timezone=UTC")).body
    assert [r["dealsWon"] for r in utc["data"]] == [0, 2, 0, 0]
    assert [r["invoicesIssuedTotal"] for r in utc["data"]] == [10.25, 0, 0, 60]
    assert utc["timezone"] == "UTC"
    weeks = (await ana.get("/api/reports/sales?groupBy=week&from=2026-02-23&to=2026-03-02")).body
    assert [(r["group"], r["dealsWon"]) for r in weeks["data"]] == [
        ("2026-W09", 1), ("2026-W10", 0),
    ]  # fmt: skip
    days = (await ana.get("/api/reports/sales?groupBy=day&from=2026-02-27&to=2026-02-28")).body
    assert [(r["group"], r["dealsWon"]) for r in days["data"]] == [
        ("2026-02-27", 1), ("2026-02-28", 0),
    ]  # fmt: skip


async def test_a_payment_of_a_day_counts_on_that_day(api: RestApi, ana: Person) -> None:
    await invoice(api, ana, 10, "2026-01-15", paid="2026-03-01")
    sales = (await ana.get("/api/reports/sales?from=2026-01-01&to=2026-03-31")).body["data"]
    assert [r["invoicesPaid"] for r in sales] == [0, 0, 1]
    day = "/api/reports/sales?groupBy=day&from=2026-02-28&to=2026-03-02"
    assert [r["invoicesPaid"] for r in (await ana.get(day)).body["data"]] == [0, 1, 0]


def row(group: str, *figures: float) -> dict[str, Any]:
    names = ("dealsWon", "dealsWonValue", "invoicesIssued", "invoicesIssuedTotal", "invoicesPaid",
             "invoicesPaidTotal")  # fmt: skip
    return {"group": group, **dict(zip(names, figures, strict=True))}


def without_group(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name != "group"}


async def test_sums_above_the_integers_of_the_engines(api: RestApi, ana: Person) -> None:
    for _ in range(3):
        await deal(api, ana, 1, "2026-01-02", won="2026-01-10")
    stop = {
        "sqlite": "drop trigger deals_move",
        "postgres": "alter table deals disable trigger deals_counted",
    }

    async def unit(tx: Any) -> None:
        # No request can send this value; it represents the sum of very many large ones. The
        # running totals of deals do not include it.
        await tx.run(stop[tx.engine])
        await tx.run("update deals set value = 9000000000000000099")

    await api.db.write(unit)
    for name, figure in (("sales", "dealsWonValue"), ("funnel", "value")):
        reply = await ana.get(f"/api/reports/{name}?from=2026-01-01&to=2026-01-31")
        assert reply.status == 200
        assert reply.body["totals"][figure] == 270_000_000_000_000_002.97


async def test_receivables(api: RestApi, ana: Person, bia: Person) -> None:
    zone = "America/Sao_Paulo"
    today = dates.today(api.db.clock.wall(), zone)
    amounts = {0: 1, 1: 2, 30: 4, 31: 8, 60: 16, 61: 32, 90: 64, 91: 128, 400: 256}
    for days, total in amounts.items():
        due = dates.show(today - days * DAY)
        await invoice(api, ana, total, "2020-01-01", due=due[:10])
    paid = await invoice(api, ana, 1000, "2020-01-01", due="2020-01-01")
    await ana.post(f"/api/invoices/{paid}/pay")
    await invoice(api, bia, 1000, "2020-01-01", due="2020-01-01")
    body = (await ana.get("/api/reports/receivables")).body
    assert body["data"] == [
        {"group": "current", "count": 1, "total": 1}, {"group": "1-30", "count": 2, "total": 6},
        {"group": "31-60", "count": 2, "total": 24}, {"group": "61-90", "count": 2, "total": 96},
        {"group": "90+", "count": 2, "total": 384},
    ]  # fmt: skip
    assert body["totals"] == {"count": 9, "total": 511, "overdue": 510}

    # Instants are overdue by the clock, and their age counts the days of the zone.
    def instant(days: int, micros: int = 0) -> str:
        return dates.show(dates.begin(today - days * DAY, zone) + micros)

    now = api.db.clock.wall()
    for due, total in (
        (dates.show(now + 60_000_000), 512), (dates.show(now - 60_000_000), 1024),
        (instant(30), 2048), (instant(30, -1000), 4096), (instant(90, -1000), 8192),
    ):  # fmt: skip
        await invoice(api, ana, total, "2020-01-01", due=due)
    totals = [r["total"] for r in (await ana.get("/api/reports/receivables")).body["data"]]
    assert totals == [1 + 512, 6 + 1024 + 2048, 24 + 4096, 96, 384 + 8192]
    first, last = (dates.show(today - days * DAY)[:10] for days in (60, 31))
    chosen = (await ana.get(f"/api/reports/receivables?from={first}&to={last}")).body
    assert chosen["totals"]["total"] == 24 + 4096
    assert (await ana.get("/api/reports/receivables?groupBy=month")).status == 400


async def test_leads(api: RestApi, ana: Person, bia: Person) -> None:
    ids = []
    for who, source, time in (
        (ana, "web", "2026-01-01"), (ana, "web", "2026-01-20"), (ana, "import", "2026-02-20"),
        (bia, "web", "2026-01-01"),
    ):  # fmt: skip
        reply = await who.post("/api/contacts", {"name": "C", "source": source})
        await put_times(api, "contacts", reply.body["id"], created_at=at(time))
        ids.append(reply.body["id"])
    await ana.post("/api/deals", {"title": "D", "value": 1, "contactIds": ids[:1]})
    await ana.post("/api/deals", {"title": "D", "value": 1, "contactIds": ids[:1]})
    body = (await ana.get("/api/reports/leads")).body
    assert body["data"] == [
        {"group": "import", "leads": 1, "withDeal": 0, "conversionRate": 0.0},
        {"group": "web", "leads": 2, "withDeal": 1, "conversionRate": 50.0},
    ]
    assert body["totals"] == {"leads": 3, "withDeal": 1, "conversionRate": 33.33}
    query = "groupBy=month&from=2026-01-01&to=2026-02-28&timezone=UTC"
    body = (await ana.get(f"/api/reports/leads?{query}")).body
    assert [(r["group"], r["leads"], r["withDeal"]) for r in body["data"]] == [
        ("2026-01", 2, 1), ("2026-02", 1, 0),
    ]  # fmt: skip
    body = (await ana.get("/api/reports/leads?from=2026-02-01")).body
    assert [r["group"] for r in body["data"]] == ["import"]


async def test_bounds_contain_the_instant_that_is_shown(api: RestApi, ana: Person) -> None:
    """The database has microseconds, of which a response shows the milliseconds."""
    contact = (await ana.post("/api/contacts", {"name": "C"})).body["id"]
    bill = (await ana.post("/api/invoices", {"total": 5, "dueDate": "2999-01-01"})).body["id"]
    for table, record_id in (("contacts", contact), ("invoices", bill)):
        await put_times(api, table, record_id, created_at=at("2026-01-01T12:00:00.123456Z"))
    instant = (await ana.get(f"/api/invoices/{bill}")).body["createdAt"]
    for query, total in (
        (f"from={instant}&to={instant}", 1), (f"from=&to={instant}", 1), (f"from={instant}&to=", 1),
        ("from=&to=", 1), ("from=2026-01-01T12:00:00.124Z&to=", 0),
        ("from=&to=2026-01-01T12:00:00.122Z", 0),
    ):  # fmt: skip
        assert (await ana.get(f"/api/invoices?{query}")).body["total"] == total, query
        lines = (await ana.get(f"/api/export/invoices.csv?{query}")).text.splitlines()
        assert len(lines) == 1 + total, query
        leads = (await ana.get(f"/api/reports/leads?{query}")).body["totals"]["leads"]
        assert leads == total, query


async def test_as_csv(api: RestApi, ana: Person) -> None:
    await deal(api, ana, 10.5, "2026-01-01", stage='=HYPERLINK("x"), "y"')
    await deal(api, ana, 1, "2026-01-01", stage="-2+3")
    for name in NAMES:
        body = (await ana.get(f"/api/reports/{name}")).body
        reply = await ana.get(f"/api/reports/{name}?format=csv")
        assert (reply.status, reply.headers["Content-Type"]) == (200, "text/csv; charset=utf-8")
        assert reply.headers["Content-Disposition"] == f'attachment; filename="{name}.csv"'
        header, *lines = csv.reader(io.StringIO(reply.text))
        assert len(lines) == len(body["data"])
        for line, shown in zip(lines, body["data"], strict=True):
            assert header == list(shown)
            # A spreadsheet must not run a stage as a formula.
            expected = [
                f"'{v}" if str(v).startswith(("=", "-")) else str(v) for v in shown.values()
            ]
            assert line == expected
    assert "'=HYPERLINK" in (await ana.get("/api/reports/funnel?format=csv")).text
    empty = await ana.get("/api/reports/leads?format=csv")
    assert empty.text == "group,leads,withDeal,conversionRate\r\n"


async def test_an_invalid_query_is_refused(ana: Person) -> None:
    for query in (
        "from=x", "to=x", "from=2026-02-30", "from=2026-01-02&to=2026-01-01", "timezone=Mars",
        "timezone=America", "timezone=../../etc/passwd", "timezone=%00", "timezone=/etc/localtime",
        "timezone=" + "x" * 300, "timezone=%ED%A0%80", "groupBy=x", "groupBy=stage", "format=xml",
        "from=0001-01-01", "to=9999-12-31", "groupBy=day&from=2000-01-01&to=2020-01-01",
    ):  # fmt: skip
        reply = await ana.get(f"/api/reports/sales?{query}")
        assert (reply.status, reply.body["code"]) == (400, "validation_error"), reply.text
        assert [*reply.faults.values()] == ["invalid_parameter"]
    # What does not fit its type is told together, and before what does not make sense.
    for query, faults in (
        ("from=x&to=y&groupBy=x&timezone=Mars", ["from", "to", "groupBy"]),
        ("from=0001-01-01&to=y", ["to"]), ("from=0001-01-01&timezone=Mars", ["timezone"]),
    ):  # fmt: skip
        assert [*(await ana.get(f"/api/reports/sales?{query}")).faults] == faults


def test_periods_across_changes_of_daylight_saving_time() -> None:
    # Midnight did not exist in São Paulo on 2018-11-04: the day began at 01:00.
    zone = "America/Sao_Paulo"
    periods = Span(at("2018-11-03T03:00:00Z"), at("2018-11-05T02:00:00Z"), zone, "day").periods()
    assert periods == [
        Period("2018-11-03", at("2018-11-03T03:00:00Z"), at("2018-11-04T03:00:00Z")),
        Period("2018-11-04", at("2018-11-04T03:00:00Z"), at("2018-11-05T02:00:00Z")),
    ]
    # A day of 25 hours.
    day = Span(at("2018-02-17T02:00:00Z"), at("2018-02-18T03:00:00Z"), zone, "day").periods()
    assert [p.label for p in day] == ["2018-02-17"]


def test_the_outer_periods_are_shortened_and_their_number_is_limited() -> None:
    months = Span(at("2026-01-30T10:00:00Z"), at("2026-03-02T10:00:00Z"), "UTC", "month").periods()
    assert months == [
        Period("2026-01", at("2026-01-30T10:00:00Z"), at("2026-02-01")),
        Period("2026-02", at("2026-02-01"), at("2026-03-01")),
        Period("2026-03", at("2026-03-01"), at("2026-03-02T10:00:00Z")),
    ]
    weeks = Span(at("2025-12-31"), at("2026-01-06"), "UTC", "week").periods()
    assert [p.label for p in weeks] == ["2026-W01", "2026-W02"]
    assert Span(5, 6, "UTC", "day").periods() == [Period("1970-01-01", 5, 6)]
    assert len(Span(0, periods.MOST * DAY, "UTC", "day").periods()) == periods.MOST
    with pytest.raises(Refusal):
        Span(0, periods.MOST * DAY + 1, "UTC", "day").periods()
