"""Tests on both engines what a person finds: words in any order, phones, documents, numbers."""

from __future__ import annotations

import pytest

from gateway.domain.catalogue import BY_PLURAL
from gateway.domain.contacts.companies import COMPANIES
from gateway.domain.contacts.contacts import CONTACTS
from gateway.domain.sales import quotes
from gateway.domain.sales.quotes import QUOTES
from gateway.domain.storefront.privacy import customer_erasure
from gateway.records import actions, finding, store
from gateway.records.audit import Actor
from gateway.records.finding import find
from outbox.database.transaction import Database, Tx
from tests.support.counted import Counted
from tests.support.records import asked

ANA, RUI = Actor("a" * 24, "api_key"), Actor("b" * 24, "api_key")
KINDS = [BY_PLURAL[one] for one in ("contacts", "companies", "tasks", "orders", "quotes")]
CONTACT = {"name": "Ana Sá", "email": "ana.sa@example.com", "phone": "+55 (11) 98888-7777"}
PHONES = (
    "11 98888", "(11) 98888", "+55 (11) 98888-7777", "98888-7777", "88887777", "8888.7777",
    "8-7777",    "011 98888 7777", "0055 11 98888 7777", "5511988887777", "tel: 11 98888-7777",
    "ana 98888-7777", "98888-7777 sá", "11 98888\u20137777",
)  # fmt: skip


async def ids_of(db: Database, text: str, who: Actor = ANA) -> dict[str, list[str]]:
    found = await db.scan(who.owner_id, find, who, KINDS, text)
    return {one.resource.plural: [record.id for record in one.records] for one in found}


async def create(db: Database, resource: str, **body: object) -> str:
    declared = BY_PLURAL[resource]
    draft = asked(declared, body, creating=True)
    if declared is QUOTES:
        return (await db.write(quotes.create, ANA, draft)).id
    return (await db.write(actions.create, ANA, declared, draft)).id


async def order(tx: Tx, /, **values: object) -> str:
    row = await store.insert(
        tx, BY_PLURAL["orders"], ANA.owner_id,
        {
            "number": "ORD-000042", "status": "pending", "items": "[]", "subtotal": 1,
            "discount": 0, "shipping": 0, "total": 1, "currency": "BRL", "name": "Bia",
            "email": "bia@example.com", "payment_method": "pix", "expires_at": 1, **values,
        },
    )  # fmt: skip
    return str(row[0])


async def test_a_person_finds_records_by_what_is_remembered(db: Database) -> None:
    ana = await create(db, "contacts", **CONTACT)
    other = await create(db, "contacts", name="Ana Souza", email="s@example.com")
    local = await create(db, "contacts", name="Zoé", phone="3333-4444")
    company = await create(db, "companies", name="Pão & Cia", cnpj="11.222.333/0001-81")
    newer = await create(db, "companies", name="Nova", cnpj="12ABC34501DE35")
    task = await create(db, "tasks", title="Ligar para a padaria")
    quote = await create(
        db, "quotes", contactId=ana, items=[{"description": "x", "quantity": 1, "unitPrice": 1}]
    )
    sold = await db.write(order, document="52998224725", phone="(21) 97777-6666")

    async def finds(text: str, *expected: str) -> None:
        found = await ids_of(db, text)
        assert sorted(one for ids in found.values() for one in ids) == sorted(expected), text

    for text in ("sá ana", "ANA  sa", " Sá,".strip(","), "ana.sa@", "sa example.com ana"):
        await finds(text, ana, quote)
    for text in PHONES:
        await finds(text, ana, quote)
    # The phone is stored without its area, and asked for with it.
    for text in ("3333 4444", "33334444", "(11) 3333-4444", "+55 11 3333-4444"):
        await finds(text, local)
    for text in ("11.222.333/0001-81", "11222333000181", "11 222 333 0001 81", "222.333/0001"):
        await finds(text, company)
    for text in ("12.abc.345/01de-35", "CNPJ 12ABC34501DE35", "12 ABC 345 01DE 35"):
        await finds(text, newer)
    for text in ("529.982.247-25", "52998224725", "CPF: 529.982.247-25", "529 982", "ord-42"):
        await finds(text, sold)
    for text in ("21 97777-6666", "+5521977776666", "ORD-000042", "#ord42", "000042 bia"):
        await finds(text, sold)
    await finds("padaria ligar", task)
    await finds("ana", ana, other, quote)
    for text in ("ana zzz", "", "  ", "\0", "\x1f", "%", "999999", "55", "(", "ana souza 98888"):
        await finds(text)
    assert await ids_of(db, "sá ana", RUI) == {}


async def test_what_an_update_removes_is_found_no_more(db: Database) -> None:
    ana = await create(db, "contacts", **CONTACT)
    draft = asked(CONTACTS, {"phone": None}, creating=False)
    await db.write(actions.change, ANA, CONTACTS, ana, draft, None)
    assert await ids_of(db, "98888-7777") == {}
    sold = await db.write(order, document="52998224725", phone="(21) 97777-6666")
    await db.write(customer_erasure.anonymise, ANA, sold, "d" * 24)
    for text in ("97777", "bia"):
        assert await ids_of(db, text) == {}, text


async def test_the_work_is_bounded(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """One statement a kind that has records, and the newest LOOKED_AT of each."""
    monkeypatch.setattr(finding, "LOOKED_AT", 12)
    old = await create(db, "contacts", name="Old Maria")
    newest = [await create(db, "contacts", name=f"Maria {n}") for n in range(12)]
    await create(db, "companies", name="Maria Ltda")
    counted = Counted(db)
    found = await counted.scan(ANA.owner_id, find, ANA, KINDS, "maria")
    assert len(counted.statements) == 3
    contacts, companies = found
    assert [one.id for one in contacts.records] == newest[: -finding.SHOWN - 1 : -1]
    assert (contacts.more, contacts.cut) == (True, True)
    assert (companies.resource, companies.more, companies.cut) == (COMPANIES, False, False)
    assert await ids_of(db, "old maria") == {}
    monkeypatch.setattr(finding, "LOOKED_AT", 13)
    assert await ids_of(db, "old maria") == {"contacts": [old]}
