"""How an import reads cells, what it does with those it cannot read, and what it reports."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.domain.imports import import_jobs, import_steps, upkeep
from gateway.domain.imports.importing import Importing
from outbox.database.transaction import Tx
from tests.gateway.rest.test_imports import counts, imported, upload
from tests.support.drain import rows
from tests.support.erasing import dropped
from tests.support.rest import Person, RestApi

NAMES = "name,email,phone,tags,companyId\n"


async def products(who: Person, *names: str) -> list[tuple[Any, ...]]:
    body = (await who.get("/api/products?limit=100&sort=name")).body
    return [tuple(one.get(name) for name in names) for one in body["data"]]


def told(body: dict[str, Any]) -> list[tuple[Any, ...]]:
    return [(one["line"], one["column"], one["value"], one["warning"]) for one in body["faults"]]


@pytest.mark.parametrize(
    ("text", "query", "prices", "stocks"),
    [
        ("name;price;stock\na;1.500;1.500\nb;R$ 10.000;1.500,00\n", "", [1500, 10000],
         [1500, 1500]),
        ('name,price,stock\na,1.500,2\nb,"12,50",3\n', "", [1500, 12.5], [2, 3]),
        ("name,price,stock\na,1.500,\nb,12.5,3\n", "", [1.5, 12.5], [None, 3]),
        ("name;price;stock\na;1.500;\nb;12.5;3\n", "?numbers=1.234,56", [1500, 12.5], [None, 3]),
        ('name,price,stock\na,"1,500",\nb,1,\n', "?numbers=1,234.56", [1500, 1], [None, None]),
        # What is a number elsewhere tells nothing of the numbers.
        ("name,price,description\na,1.50,\nb,2,\"1,5\"\n", "", [1.5, 2], [None, None]),
    ],
)  # fmt: skip
async def test_numbers_are_read_in_the_form_of_the_file(
    api: RestApi, ana: Person, text: str, query: str, prices: list[Any], stocks: list[Any]
) -> None:
    body = await imported(api, ana, "products", text, query)
    assert (counts(body)[1], body["warnings"]) == (2, 0), body
    assert await products(ana, "price", "stock") == list(zip(prices, stocks, strict=True))


async def test_a_number_that_can_be_two_is_a_fault_that_names_the_option(
    api: RestApi, ana: Person
) -> None:
    body = await imported(api, ana, "products", "name,price,stock\na,1.500,\nb,2,1.500\n")
    assert (counts(body), body["warnings"]) == ((2, 1, 0, 0, 1), 1)
    assert told(body) == [(2, "price", "1.500", False), (3, "stock", "1.500", True)]
    assert all("numbers=1.234,56" in one["error"] for one in body["faults"])
    assert await products(ana, "name", "price", "stock") == [("b", 2, None)]
    for option in ("numbers=1.5", "dates=iso", "mode=soft", "duplicates=first"):
        reply = await upload(ana, "products", b"name,price\nx,1\n", f"?{option}")
        assert (reply.status, [*reply.faults]) == (400, [option.partition("=")[0]])


async def test_dates_are_read_in_the_form_of_the_file_and_the_zone_of_the_account(
    api: RestApi, ana: Person
) -> None:
    await api.move(ana, "America/Sao_Paulo")
    text = "title;dueDate\na;03/04/2026 22:00\nb;31/12/2026\nc;2026-03-04T22:00\n"
    body = await imported(api, ana, "tasks", text)
    assert (counts(body)[1], body["warnings"]) == (3, 0), body
    due = {one["title"]: one["dueDate"] for one in (await ana.get("/api/tasks")).body["data"]}
    assert (due["a"], due["c"]) == ("2026-04-04T01:00:00.000Z", "2026-03-05T01:00:00.000Z")
    assert due["b"].startswith("2026-12-31T")
    at = "2026-03-04T03:00:00.000Z"
    for title, query, day in (("d", "", None), ("e", "?dates=mm/dd/yyyy", at)):
        text = f"title,dueDate\n{title},03/04/2026 00:00\n"
        body = await imported(api, ana, "tasks", text, query)
        due = {
            one["title"]: one.get("dueDate") for one in (await ana.get("/api/tasks")).body["data"]
        }
        assert (due[title], body["warnings"]) == (day, 0 if day else 1)


async def test_a_bad_cell_is_left_out_reported_and_mended(api: RestApi, ana: Person) -> None:
    old = (
        await ana.post("/api/contacts", {"name": "Old", "email": "o@x.com", "phone": "11 33"})
    ).body
    text = (
        f"{NAMES}Ana,bruno,12,a|b,\n,x,,,\nOld,o@x.com,5.5E+12,,\n"
        f"Caio,c@x.com,,,{'0' * 24}\nDora,d@x.com,,,\n"
    )
    for query in ("?dryRun=true", ""):
        body = await imported(api, ana, "contacts", text, query)
        assert (counts(body), body["warnings"]) == ((5, 3, 0, 1, 1), 4), body
        assert told(body) == [
            (2, "email", "bruno", True), (2, "phone", "12", True), (3, "email", "x", False),
            (3, "name", "", False), (4, "phone", "5.5E+12", True),
            (5, "companyId", "0" * 24, True),
        ]  # fmt: skip
    assert "Excel" in body["faults"][4]["error"]
    assert (await ana.get(f"/api/contacts/{old['id']}")).body["phone"] == "11 33"
    found = {one["name"]: one for one in (await ana.get("/api/contacts")).body["data"]}
    assert (found["Ana"].get("email"), found["Ana"]["tags"]) == (None, ["a", "b"])
    path = f"/api/imports/{body['id']}"
    report = (await ana.get(f"{path}/faults.csv")).text.splitlines()
    assert report[0] == "line,column,value,reason,result"
    assert report[1].startswith("2,email,bruno,email: Send an e-mail")
    assert (report[1].endswith("imported without it"), report[3].endswith("refused")) == (True,) * 2
    lines = (await ana.get(f"{path}/lines.csv")).text
    assert lines.splitlines() == [
        f"carteiro id,{NAMES[:-1]}", f"{found['Ana']['id']},Ana,bruno,12,a|b,", ",,x,,,",
        f"{old['id']},Old,o@x.com,5.5E+12,,", f"{found['Caio']['id']},Caio,c@x.com,,,{'0' * 24}",
    ]  # fmt: skip
    mended = (
        lines.replace("bruno", "bruno@x.com").replace(",12,", ",123,").replace(",,x,", ",Bia,,")
    )
    body = await imported(api, ana, "contacts", mended)
    assert (counts(body), body["warnings"]) == ((4, 1, 1, 2, 0), 2), body
    assert (await ana.get(f"/api/contacts/{found['Ana']['id']}")).body["email"] == "bruno@x.com"
    strict = await imported(api, ana, "contacts", text, "?mode=strict")
    assert counts(strict) == (5, 0, 0, 1, 4)
    assert not any(one["warning"] for one in strict["faults"])


async def test_a_line_that_ends_before_the_column_of_the_id_gets_it(
    api: RestApi, ana: Person
) -> None:
    body = await imported(api, ana, "contacts", "name,email,phone,id\nAna,bruno\nBia,x,1\n")
    assert (counts(body), body["warnings"]) == ((2, 2, 0, 0, 0), 3), body
    found = {one["name"]: one["id"] for one in (await ana.get("/api/contacts")).body["data"]}
    lines = (await ana.get(f"/api/imports/{body['id']}/lines.csv")).text
    assert lines == (
        f"name,email,phone,id\r\nAna,bruno,,{found['Ana']}\r\nBia,x,1,{found['Bia']}\r\n"
    )
    body = await imported(api, ana, "contacts", lines.replace("bruno", "bruno@x.com"))
    assert counts(body) == (2, 0, 1, 1, 0), body
    assert (await ana.get(f"/api/contacts/{found['Ana']}")).body["email"] == "bruno@x.com"


async def test_words_that_are_no_url_are_one_fault(api: RestApi, ana: Person) -> None:
    data = "SKU;Nome;Preço;Imagens\nA;Mesa;10;não tem\n".encode()
    body = await imported(api, ana, "products", data)
    assert (body["created"], body["warnings"], len(body["faults"])) == (1, 1, 1)


async def test_lines_keep_their_separator_and_no_cell_is_a_formula(
    api: RestApi, ana: Person
) -> None:
    text = 'Nome;"Obs\n(livre)";Fax;Preço\n"=1;x";\'=2; f ;-\u200b1\n;;;;mais\n'
    query = "?columns=Nome:name,Preço:price&mode=strict"
    body = await imported(api, ana, "products", text, query)
    assert counts(body) == (2, 0, 0, 0, 2), body
    lines = await ana.get(f"/api/imports/{body['id']}/lines.csv")
    # Cells of columns that were left out are not kept; of a line with too many, all are.
    assert lines.text == 'Nome;"Obs\n(livre)";Fax;Preço\r\n"\'=1;x";;;\'-1\r\n;;;;mais\r\n'
    report = (await ana.get(f"/api/imports/{body['id']}/faults.csv")).text
    assert "3,Preço,'-1,price: Send an amount" in report
    cards = await imported(
        api, ana, "contacts", "BEGIN:VCARD\nFN:=1\nTEL:=2\nEND:VCARD\n", "?mode=strict"
    )
    lines = await ana.get(f"/api/imports/{cards['id']}/lines.csv")
    # Cards have no separator.
    assert lines.text.split("\r\n")[1] == "'=1,,'=2,,,,", lines.text


async def test_a_key_that_a_line_before_has_is_a_fault_of_the_later_line(
    api: RestApi, ana: Person, bia: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(import_steps, "MOST", {"sqlite": 2, "postgres": 2})
    text = "name,price,sku\nA,1,S\nB,x,T\nC,3,U\nD,4,S\nE,5,T\nF,6,\nG,7,\nH,8,U\n"
    for query in ("?dryRun=true", ""):
        path = (await upload(ana, "products", text, query)).headers["Location"]
        for _ in range(3):
            [job] = await api.db.read(upkeep.turns, 1)
            # A restart in the middle: nothing is known but what the database has.
            await import_steps.step(api.db, job)
        await Importing(api.db).run_once()
        body = (await ana.get(path)).body
        assert counts(body) == (8, 5, 0, 0, 3), body
        assert [(one["line"], one["column"], one["value"]) for one in body["faults"]] == [
            (3, "price", "x"), (5, "sku", "S"), (9, "sku", "U"),
        ]  # fmt: skip
        assert "Line 2 of the file has the same sku" in body["faults"][1]["error"]
    assert await api.db.read(rows, "select * from import_keys") == []
    assert await products(ana, "name") == [("A",), ("C",), ("E",), ("F",), ("G",)]
    last = await imported(api, bia, "products", text, "?duplicates=last")
    assert counts(last) == (8, 5, 2, 0, 1)
    assert {("D", "S"), ("H", "U")} <= set(await products(bia, "name", "sku"))


@pytest.mark.parametrize(
    ("plural", "text"),
    [
        ("contacts", "name,email\nA,ana@x.com\nB, ANA@X.com\u200b\n"),
        ("companies", "name,cnpj\nA,11222333000181\nB,11.222.333/0001-81\n"),
        ("tasks", "id,title\n{0},A\n{0},B\n"),
    ],
)
async def test_keys_are_compared_as_records_are(
    api: RestApi, ana: Person, plural: str, text: str
) -> None:
    body = await imported(api, ana, plural, text.format("1" * 24))
    assert (counts(body), body["faults"][0]["line"]) == ((2, 1, 0, 0, 1), 3), body


async def test_an_erased_person_leaves_the_faulty_lines(api: RestApi, ana: Person) -> None:
    text = "name,email,phone\nAna,ana@x.com,1\nBia,bia@x.com,2\nCaio,c@x.com,3\n"
    body = await imported(api, ana, "contacts", text)
    assert body["warnings"] == 3
    found = {one["name"]: one["id"] for one in (await ana.get("/api/contacts")).body["data"]}
    for word in ("ANA@x.com", found["Bia"]):
        assert await dropped(api.db, ana.user_id, word) == 1
    path = f"/api/imports/{body['id']}"
    assert told((await ana.get(path)).body) == [(4, "phone", "3", True)]
    lines = (await ana.get(f"{path}/lines.csv")).text
    assert lines == f"carteiro id,name,email,phone\r\n{found['Caio']},Caio,c@x.com,3\r\n"


async def test_the_lines_of_the_latest_imports_are_kept_and_go_with_them(
    api: RestApi, ana: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(import_jobs, "WITH_LINES", 1)
    monkeypatch.setattr(upkeep, "REPORTED_AT_ONCE", 2)
    text = "name,phone\n" + "Ana,1\n" * 3
    old = await imported(api, ana, "contacts", text)
    new = await imported(api, ana, "contacts", text)
    kept = "select import_id from import_faulty_lines"
    assert {row["import_id"] for row in await api.db.read(rows, kept)} == {new["id"]}
    assert {one[2] for one in told((await ana.get(f"/api/imports/{old['id']}")).body)} == {""}
    monkeypatch.setattr(upkeep, "KEPT", -1_000_000_000)

    async def purge(tx: Tx) -> int:
        return await upkeep.purge(tx, 10)

    assert [await api.db.write(purge) for _ in range(6)] == [10] * 5 + [2]
    assert await api.db.read(rows, kept) == []
