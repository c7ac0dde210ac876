"""Companies that the lines of a file name: found or created, with their events, once a file."""

from __future__ import annotations

from gateway.domain.accounts import api_keys
from gateway.domain.accounts.api_keys import KeyDraft
from gateway.domain.imports.importing import Importing
from tests.gateway.rest.test_imports import counts, imported, lines_left, send_form, upload
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


CARDS = "BEGIN:VCARD\nFN:Ana\n{}END:VCARD\nBEGIN:VCARD\nFN:Bia\n{}END:VCARD\n"


async def key_for(api: RestApi, owner: Person, *resources: str) -> Person:
    """Return the owner with a key for these resources."""
    text = api_keys.make(api.db.ids)
    draft = KeyDraft("some", text, ["read", "write"], None, resources)
    await api.db.write(api_keys.add, owner.user_id, draft)
    return Person(api.site.http, owner.user_id, {"X-API-Key": text})


async def test_a_key_makes_no_companies_unless_it_is_for_them(api: RestApi, ana: Person) -> None:
    some = await key_for(api, ana, "contacts", "deals")
    refused = (
        ("contacts", "Nome;Empresa\nAna;Nova\n", ""), ("contacts", "name,company\nAna,\n", ""),
        ("contacts", "Nome;Firma\nAna;Nova\n", "?columns=Nome:name,Firma:company"),
        ("contacts", "Nome;Empresa\nAna;Nova\n", "?dryRun=true"),
        ("contacts", CARDS.format("", "ORG:Nova;Sales\n"), ""),
        ("contacts", CARDS.format("ORG:=1\n", ""), "?mode=strict"),
        ("deals", "title,value,company\nDeal,1,Nova\n", ""),
    )  # fmt: skip
    for plural, text, query in refused:
        for repeat in ({}, {"Idempotency_Key": f"k{text}".replace("\n", "")[:200]}):
            reply = await upload(some, plural, text, query, **repeat)
            assert (reply.status, reply.body["code"]) == (403, "forbidden"), (text, query)
            assert "not for companies" in reply.body["error"]
    for file_first in (True, False):
        parts = {"columns": "Nome:name,Firma:company"}
        form = await send_form(some, "Nome;Firma\nAna;Nova\n", parts, file_first=file_first)
        assert form.status == 403, form.text
    unnamed = await send_form(some, "Nome;Empresa\nAna;Nova\n", {}, file_first=True)
    assert unnamed.status == 403, unnamed.text
    # Nothing is left of them.
    assert (await ana.get("/api/imports")).body["data"] == []
    assert await lines_left(api.db) == 0


async def test_the_rest_of_such_files_is_imported(api: RestApi, ana: Person) -> None:
    some = await key_for(api, ana, "contacts")
    both = await key_for(api, ana, "contacts", "companies")
    mine = (await ana.post("/api/companies", {"name": "Mine"})).body["id"]
    for who, text, query, companies in (
        (some, "Nome;Empresa\nA;Nova\n", "?columns=Nome:name", 1),
        (some, "Nome;Empresa\nB;Nova\n", "?columns=Nome:name,Empresa:notes", 1),
        # As it may in a body of JSON.
        (some, f"name,companyId\nC,{mine}\n", "", 1),
        (some, CARDS.format("", ""), "", 1),
        (some, CARDS.format("ORG:Nova\n", ""), "?columns=name:name,email:email", 1),
        (both, "Nome;Empresa\nD;Nova\n", "", 2),
        (both, CARDS.format("ORG:Other\n", ""), "", 3),
    ):
        reply = await upload(who, "contacts", text, query)
        assert reply.status == 202, (text, reply.text)
        await Importing(api.db).run_once()
        assert (await ana.get("/api/companies")).body["total"] == companies, text
    assert (await ana.get("/api/contacts")).body["total"] == 10


async def test_a_stock_is_a_number_or_a_word_for_none(api: RestApi, ana: Person) -> None:
    cells = ("A;A1;1,00;Infinito", "B;B1;1,00;muito", "C;C1;1,00;-3", "D;D1;1,00;1.200")
    lines = "\n".join(("Nome;SKU;Preço;Estoque", *cells))
    body = await imported(api, ana, "products", lines)
    assert [(one["line"], one["value"]) for one in body["faults"]] == [(3, "muito")]
    rows = (await ana.get("/api/products?sort=name")).body["data"]
    assert [row.get("stock") for row in rows] == [None, None, 0, 1200]
