"""Imports over HTTP: files, their faults, and what becomes of their lines."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

import pytest

from gateway.domain import record_origins
from gateway.domain.contacts import contacts
from gateway.domain.imports import import_jobs, import_steps, import_uploads, outcomes, upkeep
from gateway.domain.imports.import_steps import ENTRIES
from gateway.domain.imports.import_uploads import SentFile
from gateway.domain.imports.importing import Importing
from gateway.records.audit import Actor
from outbox.database.transaction import Database, Tx
from outbox.errors import DatabaseUnavailable
from tests.gateway.rest.test_exports import ODD
from tests.support.document import DOCUMENT, answer_faults
from tests.support.erasing import dropped
from tests.support.rest import Person, Reply, RestApi
from tests.support.tables import in_turn


async def upload(
    who: Person, plural: str, text: str | bytes, query: str = "", **headers: str
) -> Reply:
    data = text if isinstance(text, bytes) else text.encode()
    return await who.call(
        "POST", f"/api/import/{plural}{query}", data=data, Content_Type="text/csv", **headers
    )


async def send_form(
    who: Person, text: str, parts: dict[str, str], *, file_first: bool = False, charset: str = "",
    **headers: str,
) -> Reply:  # fmt: skip
    """Send a file as a form with these parts beside it."""

    def part(head: str, body: str) -> str:
        return f"--x\r\nContent-Disposition: form-data; {head}\r\n\r\n{body}\r\n"

    kind = f"\r\nContent-Type: text/csv; charset={charset}" if charset else ""
    file = part(f'name="file"; filename="a.csv"{kind}', text)
    others = "".join(part(f'name="{name}"', value) for name, value in parts.items())
    data = (file + others if file_first else others + file) + "--x--\r\n"
    return await who.call(
        "POST", "/api/import/contacts", data=data.encode(),
        Content_Type="multipart/form-data; boundary=x", **headers,
    )  # fmt: skip


async def imported(
    api: RestApi, who: Person, plural: str, text: str | bytes, query: str = ""
) -> dict[str, Any]:
    """Import a file; return the import at its end."""
    accepted = await upload(who, plural, text, query)
    assert accepted.status == 202, accepted.text
    assert answer_faults("POST", f"/api/import/{plural}", 202, accepted.body) == []
    await Importing(api.db).run_once()
    reply = await who.get(accepted.headers["Location"])
    assert answer_faults("GET", "/api/imports/{id}", 200, reply.body) == []
    body: dict[str, Any] = reply.body
    return body


def counts(body: dict[str, Any]) -> tuple[int, ...]:
    return tuple(body[name] for name in ("rows", "created", "updated", "unchanged", "faulty"))


async def lines_left(db: Database) -> int:
    async def unit(tx: Tx) -> int:
        row = await tx.one("select count(*) as n from import_lines")
        return 0 if row is None else int(row["n"])

    return await db.read(unit)


async def everything(who: Person, plural: str) -> list[dict[str, Any]]:
    """Return all records without what each installation gives them."""
    given = ("id", "createdAt", "updatedAt")
    body = (await who.get(f"/api/{plural}?limit=100&sort=name,createdAt")).body
    return [{k: v for k, v in one.items() if k not in given} for one in body["data"]]


@pytest.mark.parametrize("plural", ENTRIES)
async def test_the_example_of_the_document_imports(api: RestApi, ana: Person, plural: str) -> None:
    """A reference of it names a record of the reader."""
    media = DOCUMENT["paths"][f"/api/import/{plural}"]["post"]["requestBody"]["content"]
    text = media["application/octet-stream"]["example"]
    store = {"name": "Shop", "hostname": "a.example"}
    for path, made in (("stores", store), ("contacts", {"name": "Ana"})):
        one = (await ana.post(f"/api/{path}", made)).body["id"]
        field = "storeId" if path == "stores" else "relatedTo"
        if field in text:
            text = re.sub(r"[0-9a-f]{24}", one, text)
    body = await imported(api, ana, plural, text)
    assert (counts(body), body["warnings"]) == ((1, 1, 0, 0, 0), 0), body


async def test_contacts_match_by_email_else_are_created(api: RestApi, ana: Person) -> None:
    old = await ana.post("/api/contacts", {"name": "Old", "email": "ana@x.com", "phone": "11 33"})
    text = (
        "Nome;E-mail;Telefone;Etiquetas;Sobra\n"
        "Ana;ANA@x.com;;vip;a\nBia;bia@x.com;+55 11 98888-7777;a;b\nCaio;;;;\nBia;bia@x.com;;a;\n"
    )
    query = "?columns=Nome:name,E-mail:email,Telefone:phone,Etiquetas:tags&duplicates=last"
    body = await imported(api, ana, "contacts", text, query)
    assert (body["state"], counts(body)) == ("done", (4, 2, 1, 1, 0)), body
    assert body["columns"] == {
        "Nome": "name", "E-mail": "email", "Telefone": "phone", "Etiquetas": "tags",
    }  # fmt: skip
    changed = (await ana.get(f"/api/contacts/{old.body['id']}")).body
    assert (changed["name"], changed["phone"], changed["tags"], changed["source"]) == (
        "Ana", "11 33", ["vip"], "api",
    )  # fmt: skip
    rows = (await ana.get("/api/contacts?sort=name")).body["data"]
    assert [(one["name"], one["source"]) for one in rows[1:]] == [
        ("Bia", "import"), ("Caio", "import"),
    ]  # fmt: skip
    names = [name for name, _ in await api.events()]
    assert names == ["contact.created", "contact.updated", "contact.created", "contact.created"]
    assert await lines_left(api.db) == 0
    assert (await ana.get("/api/imports")).body["data"][0]["id"] == body["id"]


async def test_companies_match_by_cnpj_and_products_by_sku(api: RestApi, ana: Person) -> None:
    await ana.post("/api/companies", {"name": "Old", "cnpj": "11.222.333/0001-81"})
    body = await imported(
        api, ana, "companies", "name,cnpj\nAcme,11222333000181\nOther,00000000000191\n"
    )
    assert counts(body) == (2, 1, 1, 0, 0)
    await ana.post("/api/products", {"name": "Old", "price": 1, "sku": "A"})
    body = await imported(
        api, ana, "products",
        'sku\tname\tprice\tactive\nA\tTea\t"1.234,50"\tsim\nB\tCup\tR$ 5\tfalse\nB\tCup\t5,00\t0\n',
        "?duplicates=last",
    )  # fmt: skip
    assert counts(body) == (3, 1, 1, 1, 0)
    rows = (await ana.get("/api/products?sort=price")).body["data"]
    assert [(one["name"], one["price"], one["active"]) for one in rows] == [
        ("Cup", 5, False), ("Tea", 1234.5, True),
    ]  # fmt: skip


@pytest.mark.slow
async def test_each_bad_line_is_reported_and_the_others_are_written(
    api: RestApi, ana: Person
) -> None:
    await ana.post("/api/products", {"name": "Old", "price": 1, "sku": "TAKEN"})
    text = (
        "id,name,price,sku,storeId\n,Tea,1,A,\n,,x,B,\n,Cup,-1,C,\n,Pot,2,D,{}\n"
        ",Can,3,E,,more\n{},Jar,3,TAKEN,\n,Lid,4,F,\n"
    )
    mine = (await ana.post("/api/products", {"name": "Mine", "price": 1, "sku": "M"})).body["id"]
    text = text.format("0" * 24, mine)
    for query, state in (("?mode=strict&dryRun=true", 2), ("?mode=strict", 4)):
        body = await imported(api, ana, "products", text, query)
        assert (body["state"], counts(body)) == ("done", (7, 2, 0, 0, 5))
        told = [(one["line"], one["column"]) for one in body["faults"]]
        assert told == [
            (3, "price"), (3, "name"), (4, "price"), (5, "storeId"), (6, ""), (7, "sku"),
        ], body  # fmt: skip
        assert "x" not in body["faults"][0]["error"].split()
        assert "TAKEN" not in json.dumps([one["error"] for one in body["faults"]])
        assert body["faults"][-1]["value"] == "TAKEN"
        assert (await ana.get("/api/products")).body["total"] == state
    assert await lines_left(api.db) == 0


CARD = b"BEGIN:VCARD\nFN:Ana\nEND:VCARD\nBEGIN:VCARD\nFN:Bia\n"


@in_turn(
    ("data", "fault"),
    [
        (b"", "line 1"),
        (b"name\n", "line 2"),
        (b'name\n"x\n', "line 2"),
        (b"name\nx\0\n", "line 2"),
        (b"name\n" + b"x" * 200_000, "line 2"),
        (b"PK\x03\x04", "line 1"),
        (b"foo\nx\n", "columns"),
        (b"name" + b",x" * 200 + b"\ny\n", "line 1"),
        (b"name\nx\n" + b"y" * 5_000_000 + b"\n", "line 3"),
        (CARD + b"PHOTO:" + b"A" * 10_000_000 + b"\nEND:VCARD\n", "line 6"),
        (b"notes\nx\n", "columns"),
    ],
)
async def test_a_file_that_is_refused_leaves_nothing(
    api: RestApi, ana: Person, data: bytes, fault: str
) -> None:
    reply = await upload(ana, "contacts", data)
    assert (reply.status, [*reply.faults]) == (400, [fault]), reply.text
    assert (await ana.get("/api/imports")).body == {"data": []}
    assert await lines_left(api.db) == 0


async def test_a_large_file_with_a_fault_at_its_beginning_gets_its_error(
    api: RestApi, ana: Person
) -> None:
    data = b"name\nx\0\n" + b"y" * 80 + b"\n"
    reply = await upload(ana, "contacts", data + b"z,1\n" * 3_000_000)
    assert (reply.status, [*reply.faults]) == (400, ["line 2"])
    assert await lines_left(api.db) == 0


async def test_a_request_that_is_refused(api: RestApi, ana: Person, bia: Person) -> None:
    for query in ("?columns=x", "?columns=x:name", "?columns=name:x", "?dryRun=maybe"):
        reply = await upload(ana, "contacts", b"name\nx\n", query)
        assert (reply.status, [*reply.faults]) == (400, [query[1:].partition("=")[0]]), query
    for headers in (
        {"Content_Encoding": "gzip", "Content_Type": "text/csv"},
        {"Content_Type": "application/json"}, {"Content_Type": "text/csv; charset=utf-16"},
    ):  # fmt: skip
        reply = await ana.call("POST", "/api/import/contacts", data=b"x" * 9, **headers)
        assert reply.status == 415, reply.text
    # As generated clients send it.
    reply = await ana.call(
        "POST", "/api/import/contacts", data=b"name\nx\n",
        Content_Type="application/octet-stream",
    )  # fmt: skip
    assert reply.status == 202, reply.text
    await ana.delete(reply.headers["Location"])
    assert (await upload(api.nobody, "contacts", b"name\nx\n")).status == 401
    blind = await api.key_of(ana.user_id, ["read"])
    assert (await upload(blind, "contacts", b"name\nx\n")).status == 403
    mine = await upload(ana, "contacts", b"name\nx\n")
    path = mine.headers["Location"]
    for method in ("GET", "DELETE"):
        assert (await bia.call(method, path)).status == 403
        assert (await ana.call(method, "/api/imports/" + "0" * 24)).status == 404
    assert (await blind.delete(path)).status == 403
    writing = await api.key_of(ana.user_id, ["write"])
    assert [*(await upload(writing, "contacts", b"name\nx\n")).body] == ["id"]
    assert (await writing.get(path)).status == 403
    assert [*(await writing.delete(path)).body] == ["id"]


COMMAS = "Nome;Observações (livres, curtas);A=B;Ratio: 1,5\nAna;gosta de chá;vip;ana@x.com\n"
MAPPING = {
    "Nome": "name", "Observações (livres, curtas)": "notes", "A=B": "tags", "Ratio: 1,5": "email",
}  # fmt: skip


@pytest.mark.parametrize("door", ["query", "form", "form_after_file"])
async def test_a_mapping_in_json_names_any_heading(api: RestApi, ana: Person, door: str) -> None:
    query = ""
    if door == "query":
        query = f"?columns={quote(json.dumps(MAPPING))}&dryRun=true"
        reply = await upload(ana, "contacts", COMMAS, query)
    else:
        parts = {"columns": json.dumps(MAPPING), "dryRun": "true"}
        reply = await send_form(ana, COMMAS, parts, file_first=door == "form_after_file")
    assert reply.status == 202, reply.text
    assert (reply.body["dryRun"], reply.body["columns"]) == (True, MAPPING)
    await Importing(api.db).run_once()
    body = (await ana.get(reply.headers["Location"])).body
    assert counts(body) == (1, 1, 0, 0, 0)
    assert (await ana.get("/api/contacts")).body["total"] == 0
    reply = await send_form(ana, COMMAS, {"columns": json.dumps(MAPPING)})
    await Importing(api.db).run_once()
    [one] = (await ana.get("/api/contacts")).body["data"]
    assert (one["notes"], one["tags"], one["email"]) == ("gosta de chá", ["vip"], "ana@x.com")


@in_turn(
    ("parts", "field", "said"),
    [
        ({"columns": '{"Nome": "nam"}'}, "columns", "there are id, name, email"),
        ({"columns": '{"Nam": "name"}'}, "columns", "it has Nome, Observações (livres, curtas)"),
        ({"columns": '{"Nome": "name"'}, "columns", "not JSON"),
        ({"columns": '{"Nome": 1}'}, "columns", "the field of each heading"),
        ({"columns": "{}"}, "columns", "the field of each heading"),
        ({"columns": '{"Nome": "name", "nome": "tags"}'}, "columns", "twice"),
        ({"columns": '{"Nome": "notes"}'}, "columns", "No column fills name"),
        ({"dryRun": "maybe"}, "dryRun", "true or false"),
        ({"dry_run": "true"}, "dry_run", "there are file, columns, dryRun"),
    ],
)
async def test_a_mapping_that_is_refused(
    api: RestApi, ana: Person, parts: dict[str, str], field: str, said: str
) -> None:
    for file_first in (False, True):
        reply = await send_form(ana, COMMAS, parts, file_first=file_first)
        assert (reply.status, [*reply.faults]) == (400, [field]), reply.text
        assert said in reply.body["error"], reply.text
    assert (await ana.get("/api/imports")).body == {"data": []}
    assert await lines_left(api.db) == 0


async def test_a_form_that_is_broken_or_in_another_encoding(api: RestApi, ana: Person) -> None:
    kind = "multipart/form-data; boundary=x"
    half = b'--x\r\nContent-Disposition: form-data; name="file"\r\n\r\na'
    twice = half.replace(b"file", b"mode") + b"\r\n"
    # More than an account may send at once: a refused one is no longer being sent.
    for data in (b"", b"--x--\r\n", half, *[twice * 2 + half + b"\r\n--x--\r\n"] * 9):
        reply = await ana.call("POST", "/api/import/contacts", data=data, Content_Type=kind)
        assert (reply.status, reply.body["error"]) == (
            400, "Send the whole form, with the file in the part file.",
        ), reply.text  # fmt: skip
    for charset, status in (("windows-1252", 202), ("utf-16", 415)):
        reply = await send_form(ana, "name\nJosé\n", {}, charset=charset)
        assert reply.status == status, reply.text
    await Importing(api.db).run_once()
    [one] = (await ana.get("/api/contacts")).body["data"]
    assert one["name"] == "JosÃ©"


async def test_a_heading_that_stands_twice_is_numbered(api: RestApi, ana: Person) -> None:
    body = await imported(
        api, ana, "contacts", "Nome;Telefone;Telefone;Cargo;Cargo\nAna;;11 3333-4444;A;B\n"
    )
    assert body["columns"] == {
        "Nome": "name", "Telefone": "phone", "Telefone (2)": "phone", "Cargo": "position",
        "Cargo (2)": "position",
    }  # fmt: skip
    [one] = (await ana.get("/api/contacts")).body["data"]
    assert (one["phone"], one["position"], one["notes"]) == ("11 3333-4444", "A", "Cargo: B")


async def test_cards_are_contacts_alone_and_known_by_their_beginning(
    api: RestApi, ana: Person
) -> None:
    data = CARD + b"EMAIL:x\nEND:VCARD\n"
    for kind in ("text/vcard; charset=utf-8", "text/x-vcard", "application/octet-stream"):
        reply = await ana.call("POST", "/api/import/contacts", data=data, Content_Type=kind)
        assert reply.status == 202, reply.text
        await Importing(api.db).run_once()
        body = (await ana.get(reply.headers["Location"])).body
        assert counts(body) == (2, 2, 0, 0, 0)
        [fault] = body["faults"]
        assert (fault["line"], fault["column"], fault["value"]) == (4, "email", "x")
    reply = await upload(ana, "companies", data)
    assert (reply.status, [*reply.faults]) == (400, ["line 1"])
    assert "import it as contacts" in reply.text


async def test_a_cancelled_import_keeps_what_it_wrote(api: RestApi, ana: Person) -> None:
    text = "name\n" + "".join(f"Ana {n}\n" for n in range(300))
    path = (await upload(ana, "contacts", text)).headers["Location"]
    [job] = await api.db.read(upkeep.turns, 1)
    await import_steps.step(api.db, job, 120)
    # As another node that has not seen it: the import has moved on.
    await import_steps.step(api.db, job, 120)
    body = (await ana.delete(path)).body
    assert (body["state"], body["done"], body["created"]) == ("cancelled", 120, 120)
    await Importing(api.db).run_once()
    assert (await ana.get("/api/contacts")).body["total"] == 120
    assert await lines_left(api.db) == 0
    assert (await ana.delete(path)).body == body


async def test_owners_take_turns_and_have_a_bound(api: RestApi, ana: Person, bia: Person) -> None:
    for _ in range(import_jobs.MOST_OPEN):
        assert (await upload(ana, "contacts", "name\nx\n")).status == 202
    assert (await upload(ana, "contacts", "name\nx\n")).status == 409
    assert (await upload(bia, "contacts", "name\nx\n")).status == 202
    turns = await api.db.read(upkeep.turns, 10)
    assert sorted(job.owner_id for job in turns) == sorted((ana.user_id, bia.user_id))


@pytest.mark.parametrize("form", [False, True])
async def test_a_repeat_with_its_key_imports_once(api: RestApi, ana: Person, form: bool) -> None:
    async def send(text: str, key: str = "k", **parts: str) -> Reply:
        if form:
            return await send_form(ana, text, parts, file_first=True, Idempotency_Key=key)
        query = "".join(f"?{name}={value}" for name, value in parts.items())
        return await upload(ana, "contacts", text, query, Idempotency_Key=key)

    first, beside = await asyncio.gather(send("name\nAna\n"), send("name\nAna\n"))
    for n in range(import_jobs.MOST_OPEN - 1):
        assert (await send("name\nAna\n", f"k{n}")).status == 202
    # It is answered although no further import may begin.
    again = await send("name\nAna\n")
    assert [one.status for one in (first, beside, again)] == [202, 202, 202]
    assert first.text == beside.text == again.text
    assert first.headers["Location"] == again.headers["Location"]
    assert sum("Idempotent-Replayed" in one.headers for one in (first, beside, again)) == 2
    for other in (await send("name\nBia\n"), await send("name\nAna\n", dryRun="true")):
        assert (other.status, other.body["code"]) == (422, "idempotency_mismatch")
    assert len((await ana.get("/api/imports")).body["data"]) == import_jobs.MOST_OPEN
    for _ in range(import_jobs.MOST_OPEN):
        await Importing(api.db).run_once()
    assert (await ana.get("/api/contacts")).body["total"] == import_jobs.MOST_OPEN
    assert await lines_left(api.db) == 0
    writing = await api.key_of(ana.user_id, ["write"])
    if not form:
        told = await upload(writing, "contacts", "name\nAna\n", Idempotency_Key="k")
        assert told.body == {"id": first.body["id"]}


async def test_an_import_stays_when_the_outcome_of_its_commit_is_unknown(
    api: RestApi, ana: Person
) -> None:
    """Otherwise a repeat with the key would be told of an import that is gone."""

    async def pieces() -> Any:
        yield b"name\nAna\n"

    async def lost(unit: Any) -> None:
        await api.db.write(unit)
        raise DatabaseUnavailable("outcome_unknown", "The answer of COMMIT was lost.")

    with pytest.raises(DatabaseUnavailable):
        await import_uploads.receive(
            api.db, Actor(ana.user_id, "session"), ENTRIES["contacts"],
            SentFile(pieces(), import_uploads.Choices), end=lost,
        )  # fmt: skip
    await Importing(api.db).run_once()
    assert (await ana.get("/api/contacts")).body["total"] == 1


async def test_an_erased_person_leaves_the_waiting_lines(api: RestApi, ana: Person) -> None:
    text = 'name,email\nAna,Ana@x.com\nBia,bia@x.com\nWith note,"see <ANA@X.COM>"\n'
    path = (await upload(ana, "contacts", text)).headers["Location"]
    assert await dropped(api.db, ana.user_id, "ana@x.com") == 2
    await Importing(api.db).run_once()
    body = (await ana.get(path)).body
    assert (body["state"], body["done"], body["created"]) == ("done", 3, 1)
    headless = await imported(
        api, ana, "contacts", "name,ana@x.com\n,x\n", "?columns=ana@x.com:notes,name:name"
    )
    assert headless["faulty"] == 1
    assert await dropped(api.db, ana.user_id, "ANA@x.com") == 0
    assert "ana@" not in (await ana.get(f"/api/imports/{headless['id']}")).text


@pytest.mark.parametrize("place", ["waiting", "faulty"])
async def test_an_erasure_deletes_the_lines_of_the_erased_person_alone(
    api: RestApi, ana: Person, place: str
) -> None:
    """Neighbours' lines stay; no spelling that the import reads as the address lets it back in."""
    others = [
        "mariana@gmail.com", "luciana@gmail.com", "rui@x.com", "ana@gmail.com.br", "éana@gmail.com",
        "d'ana@gmail.com", "x.ana@gmail.com", "juli\u00adana@gmail.com", "ana+x@gmail.com",
    ]  # fmt: skip
    of_ana = [
        "ana@gmail.com", "a\u00adna@gmail.com", "ana@\u200bgmail.com", "\ufeffANA@Gmail.com\u00a0",
        "ana@\uff47mail.com", "ana@ｇｍａｉｌ.com", "'ana@gmail.com", "rui@y.com;ana@gmail.com",
        "casa:\fana@gmail.com", "a\nana@gmail.com", r"[\u0061na@gmail.com]", "?to=ana%40gmail.com",
    ]  # fmt: skip
    lines = [f'{n},"{one}",1\n' for n, one in enumerate(others + of_ana)]
    sent = await upload(ana, "contacts", "name,email,phone\n" + "".join(lines))
    if place == "faulty":
        await Importing(api.db).run_once()
    assert await dropped(api.db, ana.user_id, "Ana@gmail.com") == len(of_ana)
    await Importing(api.db).run_once()
    shown = [one.replace("\u00ad", "") for one in others]
    if place == "waiting":
        left = (await ana.get("/api/contacts?limit=100")).body["data"]
        assert sorted(one["email"] for one in left) == sorted(shown)
    faulty = (await ana.get(f"{sent.headers['Location']}/lines.csv")).text
    assert [line.split(",")[-2] for line in faulty.splitlines()[1:]] == shown


async def test_faults_are_kept_up_to_a_bound_and_all_counted(
    api: RestApi, ana: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(import_jobs, "MOST_FAULTS", 7)
    monkeypatch.setattr(outcomes, "MOST_KEPT", 5)
    monkeypatch.setattr(outcomes, "MOST_KEPT_CHARACTERS", 12)
    text = "name,email\n" + "Ana,x\n" * 130
    body = await imported(api, ana, "contacts", text, "?mode=strict")
    assert (body["faulty"], len(body["faults"]), body["faults"][6]["line"]) == (130, 7, 8)
    # A value is there as long as its line, by which an erasure finds it.
    assert [one["value"] for one in body["faults"]] == ["x"] * 3 + [""] * 4
    lines = await ana.get(f"/api/imports/{body['id']}/lines.csv")
    assert lines.text == "name,email\r\n" + "Ana,x\r\n" * 3


@pytest.mark.slow
async def test_a_held_import_waits_between_its_dry_run_and_its_start(
    api: RestApi, ana: Person
) -> None:
    actor = Actor(ana.user_id, "session")

    async def pieces(text: str) -> Any:
        yield text.encode()

    received = await import_uploads.receive(
        api.db, actor, ENTRIES["contacts"],
        SentFile(pieces("Nome\nAna\n\nBia\n"), import_uploads.Choices),
        held=True, end=api.db.write,
    )  # fmt: skip
    job_id = received.id
    for dry_run, state, total in ((True, "waiting", 0), (True, "waiting", 0), (False, "done", 2)):
        await Importing(api.db).run_once()
        await api.db.write(import_jobs.start, actor, job_id, ["name"], dry_run=dry_run)
        await Importing(api.db).run_once()
        job = await api.db.read(import_jobs.own, actor, job_id)
        assert (job.state, job.done, job.created) == (state, 2, 2)
        assert (await ana.get("/api/contacts")).body["total"] == total
    assert await lines_left(api.db) == 0


@pytest.mark.parametrize("plural", ["contacts", "companies", "products"])
async def test_the_import_of_an_export_gives_the_same_records(
    api: RestApi, ana: Person, bia: Person, plural: str
) -> None:
    """On the same account nothing changes; on another one each record is there again."""
    price: dict[str, Any] = {"price": 12.9} if plural == "products" else {}
    for number, text in enumerate(ODD):
        body = {"name": f"a{text}"} | price
        kinds: dict[str, dict[str, Any]] = {
            "contacts": {
                "notes": text, "position": "", "tags": [f"t{text}", "b;c"], "consent": True,
                "email": f"c{number // 2}@x.com", "phone": "+55 11 98888-7777", "source": "web",
            },
            "companies": {"notes": text, "industry": "", "size": "1-10", "website": "x.com"},
            "products": {
                "description": text, "sku": f"s{text}{number}", "stock": number,
                "images": [{"url": "https://x.com/a.png", "alt": text}], "active": False,
            },
        }  # fmt: skip
        body |= kinds[plural]
        assert (await ana.post(f"/api/{plural}", body)).status == 201
    events = len(await api.events())
    for separator in (",", ";", "tab"):
        file = await ana.get(f"/api/export/{plural}.csv?bom=true&separator={separator}")
        body = await imported(api, ana, plural, file.text)
        assert counts(body) == (len(ODD), 0, 0, len(ODD), 0), body
        assert len(await api.events()) == events
    body = await imported(api, bia, plural, file.text)
    assert counts(body) == (len(ODD), len(ODD), 0, 0, 0), body
    assert await everything(bia, plural) == await everything(ana, plural)


async def test_a_state_follows_the_rules_of_the_api(api: RestApi, ana: Person) -> None:
    """What a line says of the state comes after the create, with the event that it has there."""
    await api.move(ana, "America/Sao_Paulo")
    quote = '"[{""description"":""x"",""quantity"":1,""unitPrice"":5}]"'
    cases: list[tuple[str, str, list[dict[str, Any]]]] = [
        ("tasks", "title,completed,completedAt\nA,sim,2026-01-02T03:04:05Z\nB,não,\n",
         [{"completed": True, "completedAt": "2026-01-02T03:04:05.000Z"}, {"completed": False}]),
        ("deals", "title,value,status,lostReason\nA,1,lost,Price\nB,1,open,Price\nC,1,gone,\n",
         [{"status": "lost", "lostReason": "Price"}, {"status": "open"}, {"status": "open"}]),
        ("quotes", "items,status,sentAt,validUntil\n"
         f"{quote},rejected,2026-01-02,\n{quote},sent,,2020-01-01\n",
         [{"status": "rejected", "sentAt": "2026-01-02T03:00:00.000Z"}, {"status": "expired"}]),
        ("invoices", "total,dueDate,status,paidAt,method\n"
         "5,2026-01-31,paid,2026-01-05,pix\n5,2026-01-31,,,\n",
         [{"status": "paid", "paidAt": "2026-01-05T03:00:00.000Z", "method": "pix"},
          {"status": "pending"}]),
    ]  # fmt: skip
    for plural, text, expected in cases:
        body = await imported(api, ana, plural, text)
        assert counts(body) == (len(expected), len(expected), 0, 0, 0), body
        rows = (await ana.get(f"/api/{plural}?sort=createdAt")).body["data"]
        shown = [{name: row[name] for name in one} for one, row in zip(expected, rows, strict=True)]
        assert shown == expected
        assert "lostReason" not in rows[-1]
    names = [name for name, _ in await api.events()]
    assert names[:3] == ["task.created", "task.completed", "task.created"]
    assert names[-3:] == ["invoice.created", "invoice.paid", "invoice.created"]
    paid, pending = (one["id"] for one in rows)
    body = await imported(
        api, ana, "invoices", f"id,status,paidAt\n{paid},canceled,\n{pending},paid,2026-02-01\n"
    )
    assert counts(body) == (2, 0, 1, 0, 1), body
    assert (await ana.get(f"/api/invoices/{pending}")).body["paidAt"][:10] == "2026-02-01"
    [task, _] = (await ana.get("/api/tasks?sort=createdAt")).body["data"]
    body = await imported(api, ana, "tasks", f"id,completed\n{task['id']},false\n")
    assert counts(body) == (1, 0, 1, 0, 0)
    assert (await ana.get(f"/api/tasks/{task['id']}")).body["completed"] is False


@pytest.mark.slow
async def test_ids_of_another_account_name_what_imports_made_of_its_records(
    api: RestApi, ana: Person, bia: Person
) -> None:
    company = (await ana.post("/api/companies", {"name": "Acme"})).body["id"]
    contact = {"name": "Bia", "email": "bia@x.com", "companyId": company}
    await ana.post("/api/contacts", contact)
    files = {
        one: (await ana.get(f"/api/export/{one}.csv")).text for one in ("companies", "contacts")
    }
    early = await imported(api, bia, "contacts", files["contacts"], "?mode=strict")
    assert (early["created"], early["faults"][0]["column"]) == (0, "companyId")
    for _ in range(2):
        for plural, file in files.items():
            await imported(api, bia, plural, file)
    [own] = (await bia.get("/api/companies")).body["data"]
    [person] = (await bia.get("/api/contacts")).body["data"]
    assert person["companyId"] == own["id"] != company
    # What is deleted is made again, and then named by the same id.
    assert (await bia.delete(f"/api/companies/{own['id']}")).status == 200
    body = await imported(api, bia, "companies", files["companies"])
    assert counts(body) == (1, 1, 0, 0, 0)
    body = await imported(api, bia, "contacts", files["contacts"])
    assert counts(body) == (1, 0, 1, 0, 0)
    [again] = (await bia.get("/api/companies")).body["data"]
    assert (await bia.get(f"/api/contacts/{person['id']}")).body["companyId"] == again["id"]

    async def forgotten(tx: Tx) -> Sequence[str]:
        actor = Actor(bia.user_id, "session")
        await contacts.erase(tx, actor, person["id"])
        return await record_origins.forget(tx, bia.user_id, person["id"])

    assert await api.db.write(forgotten) == []
