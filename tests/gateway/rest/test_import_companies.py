"""Companies that the lines of a file name: found or created, with their events, once a file."""

from __future__ import annotations

from tests.gateway.rest.test_imports import counts, imported
from tests.support.rest import Person, RestApi

LONG = "x" * 201


async def test_companies_are_found_or_created_by_name(
    api: RestApi, ana: Person, bia: Person
) -> None:
    await bia.post("/api/companies", {"name": "Nova Ltda"})
    mine = (await ana.post("/api/companies", {"name": "PADARIA SÓL"})).body["id"]
    await ana.post("/api/companies", {"name": "Padaria Sol"})
    text = (
        "Nome;E-mail;Empresa\nA;a@x.com;Padaria Sol\nB;b@x.com;Nova Ltda\nC;c@x.com;nova  ltda\n"
        f"D;d@x.com;\nE;e;Refused\nF;f@x.com;{LONG}\n"
    ).replace("  ", " ")
    dry = await imported(api, ana, "contacts", text, "?dryRun=true&mode=strict")
    assert counts(dry) == (6, 4, 0, 0, 2)
    assert (await ana.get("/api/companies")).body["total"] == 2
    for expected in ((6, 4, 0, 0, 2), (6, 0, 0, 4, 2)):
        body = await imported(api, ana, "contacts", text, "?mode=strict")
        assert counts(body) == expected, body
    assert [(one["line"], one["column"]) for one in body["faults"]] == [
        (6, "E-mail"), (7, "Empresa"),
    ]  # fmt: skip
    companies = (await ana.get("/api/companies?sort=name")).body["data"]
    assert companies[0]["name"] == "Nova Ltda"
    # Names that sort as one are in the order of ids, which is by chance within a millisecond.
    assert {one["name"] for one in companies[1:]} == {"PADARIA SÓL", "Padaria Sol"}
    assert len(companies) == 3
    new = companies[0]["id"]
    contacts = (await ana.get("/api/contacts?sort=name")).body["data"]
    assert [one.get("companyId") for one in contacts] == [mine, new, new, None]
    # A contact that is there moves to another company of the file.
    body = await imported(api, ana, "contacts", "email,company\nd@x.com,Terceira\n")
    assert counts(body) == (1, 0, 1, 0, 0), body
    made = [data["name"] for name, data in await api.events() if name == "company.created"]
    assert made == ["Nova Ltda", "PADARIA SÓL", "Padaria Sol", "Nova Ltda", "Terceira"]
    audited = (await ana.get(f"/api/audit?recordId={new}")).body["data"]
    assert [one["action"] for one in audited] == ["created"]
    lenient = await imported(api, ana, "contacts", f"Nome;Empresa\nG;{LONG}\n")
    assert (counts(lenient)[1], lenient["faults"][0]["column"]) == (1, "Empresa")
    assert (await bia.get("/api/companies")).body["total"] == 1


async def test_a_stock_is_a_number_or_a_word_for_none(api: RestApi, ana: Person) -> None:
    cells = ("A;A1;1,00;Infinito", "B;B1;1,00;muito", "C;C1;1,00;-3", "D;D1;1,00;1.200")
    lines = "\n".join(("Nome;SKU;Preço;Estoque", *cells))
    body = await imported(api, ana, "products", lines)
    assert [(one["line"], one["value"]) for one in body["faults"]] == [(3, "muito")]
    rows = (await ana.get("/api/products?sort=name")).body["data"]
    assert [row.get("stock") for row in rows] == [None, None, 0, 1200]
