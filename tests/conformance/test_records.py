"""Tests create, read, change and delete of records, with events and totals, on both engines."""

import asyncio
import json
from typing import Any

import pytest

from gateway.domain.contacts.companies import COMPANIES
from gateway.domain.contacts.contacts import CONTACTS
from gateway.records import actions, store
from gateway.records.access import Actor
from gateway.records.errors import Refusal
from gateway.records.query import Query
from gateway.records.resource import Resource
from gateway.rest.params import expected_of
from gateway.rest.record_json import View, view
from outbox.database.transaction import Database, Tx
from tests.support.records import asked

ANA = Actor("a" * 24, "api_key")
BIA = Actor("b" * 24, "api_key")
READER = Actor("a" * 24, "api_key", frozenset({"read"}))
NOWHERE = "0" * 24
BAD = ("validation_error", "invalid_reference")


async def made(db: Database, resource: Resource = CONTACTS, who: Actor = ANA, **body: Any) -> View:
    draft = asked(resource, {"name": "Maria"} | body, creating=True)
    return view(await db.write(actions.create, who, resource, draft))


async def changed(
    db: Database, record_id: str, if_match: str | None = None, who: Actor = ANA, **body: Any
) -> View:
    draft = asked(CONTACTS, body)
    expected = expected_of(if_match)
    return view(await db.write(actions.change, who, CONTACTS, record_id, draft, expected))


async def seen(db: Database, record_id: str, who: Actor = ANA) -> View:
    return view(await db.read(actions.read, who, CONTACTS, record_id))


async def events(db: Database) -> list[dict[str, Any]]:
    async def unit(tx: Tx) -> list[Any]:
        return await tx.all("select name, owner_id, record_version, body from events order by pos")

    rows = await db.read(unit)
    return [
        {"event": r["name"], "version": r["record_version"], **json.loads(bytes(r["body"]))}
        for r in rows
    ]


async def total(db: Database, resource: Resource, owner_id: str = ANA.owner_id) -> tuple[int, int]:
    """Return the running total and the true count."""

    async def unit(tx: Tx) -> tuple[int, int]:
        row = await tx.one(
            f"select count(*) as n from {resource.table} where owner_id = $1", owner_id
        )
        assert row is not None
        return await store.total(tx, owner_id, resource), row["n"]

    return await db.read(unit)


async def refused(awaited: Any) -> Refusal:
    with pytest.raises(Refusal) as caught:
        await awaited
    return caught.value


async def test_a_created_record_is_read_unchanged(db: Database) -> None:
    company = await made(db, COMPANIES, cnpj="11.222.333/0001-81")
    contact = await made(
        db, email="maria@example.com", phone="(11) 98888-7777", position="Buyer",
        companyId=company.members["id"], tags=["vip", "a", "vip"], consent=False,
    )  # fmt: skip
    again = await seen(db, contact.members["id"])
    assert again == contact
    assert again.members | {"id": "", "createdAt": ""} == {
        "id": "",
        "name": "Maria",
        "email": "maria@example.com",
        "phone": "(11) 98888-7777",
        "phoneE164": "+5511988887777",
        "position": "Buyer",
        "companyId": company.members["id"],
        "tags": ["vip", "a"],
        "source": "api",
        "consent": False,
        "createdAt": "",
    }
    assert again.etag == '"1"'


async def test_an_upper_case_id_is_the_same_id(db: Database) -> None:
    contact = await made(db)
    again = await seen(db, contact.members["id"].upper())
    assert again == contact


@pytest.mark.parametrize("record_id", [NOWHERE, "x", "", "a" * 23, "é" * 24, "a" * 25])
async def test_an_unknown_id_is_not_found(db: Database, record_id: str) -> None:
    assert (await refused(seen(db, record_id))).code == "not_found"
    assert (await refused(changed(db, record_id, name=1))).code == "not_found"
    assert (await refused(db.write(actions.remove, ANA, CONTACTS, record_id))).code == "not_found"


async def test_another_users_record_is_forbidden_before_anything_else(db: Database) -> None:
    contact = await made(db)
    record_id = contact.members["id"]
    assert (await refused(seen(db, record_id, BIA))).code == "forbidden"
    assert (await refused(changed(db, record_id, '"9"', BIA, name=1))).code == "forbidden"
    assert (await refused(db.write(actions.remove, BIA, CONTACTS, record_id))).code == "forbidden"
    assert await seen(db, record_id) == contact


async def test_a_read_only_key_cannot_write(db: Database) -> None:
    contact = await made(db)
    record_id = contact.members["id"]
    assert (await refused(made(db, who=READER))).code == "forbidden"
    assert (await refused(changed(db, record_id, who=READER, name="X"))).code == "forbidden"
    assert (
        await refused(db.write(actions.remove, READER, CONTACTS, record_id))
    ).code == "forbidden"
    assert (await seen(db, record_id, READER)) == contact


async def test_a_change_increments_the_version_and_sets_updated_at(db: Database) -> None:
    contact = await made(db, notes="old", email="m@example.com")
    after = await changed(db, contact.members["id"], name="Ana", notes=None)
    assert after.members["name"] == "Ana"
    assert "notes" not in after.members
    assert after.members["email"] == "m@example.com"
    assert after.members["updatedAt"] >= after.members["createdAt"]
    assert after.etag == '"2"'
    assert await seen(db, contact.members["id"]) == after


async def test_an_update_without_changes_has_no_effect(db: Database) -> None:
    contact = await made(db, tags=["a"], consent=True, phone="123")
    same = {"name": "Maria", "tags": ["a", "a"], "consent": True, "notes": None, "phone": "123"}
    record_id = contact.members["id"]
    bodies: list[dict[str, Any]] = [{}, same, {"unknown": 1, "id": "x"}]
    for body in bodies:
        assert await changed(db, record_id, **body) == contact
    assert [e["event"] for e in await events(db)] == ["contact.created"]


async def test_if_match_guards_updates_and_deletes(db: Database) -> None:
    contact = await made(db)
    record_id = contact.members["id"]
    await changed(db, record_id, '"1"', name="Two")
    for stale in ('"1"', 'W/"2"', "2", '"x", "y"'):
        assert (
            await refused(changed(db, record_id, stale, name="Three"))
        ).code == "precondition_failed"
        assert (
            await refused(db.write(actions.remove, ANA, CONTACTS, record_id, expected_of(stale)))
        ).code == "precondition_failed"
    await changed(db, record_id, '"7", "2"', name="Three")
    await changed(db, record_id, "*", name="Four")
    # Faults of the body take precedence over a stale ETag.
    assert (await refused(changed(db, record_id, '"1"', name=""))).code in BAD
    await db.write(actions.remove, ANA, CONTACTS, record_id, expected_of('"4"'))


async def test_events_carry_exactly_the_listed_fields(db: Database) -> None:
    contact = (await made(db, position="CTO")).members
    after = (await changed(db, contact["id"], position=None)).members
    await db.write(actions.remove, ANA, CONTACTS, contact["id"])
    created, updated, deleted = await events(db)
    assert created["data"] == {
        "id": contact["id"], "name": "Maria", "email": None, "phone": None,
        "createdAt": contact["createdAt"],
    }  # fmt: skip
    assert updated["data"] == {
        "id": contact["id"], "name": "Maria", "position": None, "updatedAt": after["updatedAt"],
    }  # fmt: skip
    assert deleted["data"] == {"id": contact["id"]}
    assert [e["version"] for e in (created, updated, deleted)] == [1, 2, 3]


async def test_a_refused_write_leaves_no_row_event_or_count(db: Database) -> None:
    await refused(made(db, email="nope"))
    await refused(made(db, companyId=NOWHERE))
    assert await events(db) == []
    assert await total(db, CONTACTS) == (0, 0)


async def test_a_missing_and_a_foreign_reference_have_the_same_fault(db: Database) -> None:
    foreign = (await made(db, COMPANIES, BIA)).members["id"]
    told = [await refused(made(db, companyId=company)) for company in (foreign, NOWHERE, "rubbish")]
    assert {(r.code, r.message, r.faults) for r in told} == {
        (told[0].code, told[0].message, told[0].faults)
    }
    assert told[0].code == "invalid_reference"
    contact = await made(db)
    assert (await refused(changed(db, contact.members["id"], companyId=foreign))).code in BAD


async def test_reference_faults_are_reported_with_the_others(db: Database) -> None:
    told = await refused(made(db, companyId=NOWHERE, email="nope"))
    assert told.code == "validation_error"
    assert {f.field for f in told.faults} == {"companyId", "email"}


async def test_a_deleted_company_is_removed_from_its_contacts(db: Database) -> None:
    company = (await made(db, COMPANIES)).members["id"]
    other = (await made(db, COMPANIES)).members["id"]
    linked = [(await made(db, companyId=company)).members["id"] for _ in range(3)]
    apart = await made(db, companyId=other)
    await db.write(actions.remove, ANA, COMPANIES, company)
    for record_id in linked:
        contact = await seen(db, record_id)
        assert "companyId" not in contact.members
        assert contact.etag == '"2"'
        assert "updatedAt" in contact.members
    assert await seen(db, apart.members["id"]) == apart
    names = [e["event"] for e in await events(db)]
    assert names.count("company.deleted") == 1
    assert "contact.updated" not in names
    assert (await refused(db.write(actions.remove, ANA, COMPANIES, company))).code == "not_found"


async def test_totals_follow_every_write(db: Database) -> None:
    made_ids = [(await made(db)).members["id"] for _ in range(20)]
    await made(db, who=BIA)
    for record_id in made_ids[:7]:
        await db.write(actions.remove, ANA, CONTACTS, record_id)
    assert await total(db, CONTACTS) == (13, 13)
    assert await total(db, CONTACTS, BIA.owner_id) == (1, 1)


async def test_totals_are_correct_under_concurrent_writes(db: Database) -> None:
    views = await asyncio.gather(*(made(db) for _ in range(40)))
    await asyncio.gather(
        *(db.write(actions.remove, ANA, CONTACTS, v.members["id"]) for v in views[:15]),
        *(made(db) for _ in range(10)),
    )
    assert await total(db, CONTACTS) == (35, 35)


async def test_concurrent_changes_all_count(db: Database) -> None:
    contact = (await made(db)).members["id"]
    await asyncio.gather(*(changed(db, contact, notes=f"note {i}") for i in range(20)))
    after = await seen(db, contact)
    assert after.etag == '"21"'
    versions = [e["version"] for e in await events(db)]
    assert sorted(versions) == list(range(1, 22))


async def test_one_of_the_concurrent_changes_with_the_same_if_match_succeeds(db: Database) -> None:
    contact = (await made(db)).members["id"]
    outcomes = await asyncio.gather(
        *(changed(db, contact, '"1"', notes=f"note {i}") for i in range(8)), return_exceptions=True
    )
    won = [o for o in outcomes if isinstance(o, View)]
    assert len(won) == 1
    assert all(o.code == "precondition_failed" for o in outcomes if isinstance(o, Refusal))
    assert len(won) + sum(isinstance(o, Refusal) for o in outcomes) == 8


async def test_a_company_cannot_be_deleted_between_the_check_and_the_write(db: Database) -> None:
    for _ in range(10):
        company = (await made(db, COMPANIES)).members["id"]
        await asyncio.gather(
            db.write(actions.remove, ANA, COMPANIES, company),
            *(made(db, companyId=company) for _ in range(4)),
            return_exceptions=True,
        )

    async def dangling(tx: Tx) -> int:
        row = await tx.one(
            "select count(*) as n from contacts where company_id is not null"
            " and company_id not in (select id from companies)"
        )
        assert row is not None
        return int(row["n"])

    assert await db.read(dangling) == 0


async def test_the_tag_filter_follows_changes(db: Database) -> None:
    contact = (await made(db, tags=["red", "blue"])).members["id"]

    async def tagged(tag: str) -> list[str]:
        found = await db.read(actions.page, ANA, CONTACTS, Query(filters={"tag": tag}))
        return [record.id for record in found.records]

    assert await tagged("red") == [contact]
    await changed(db, contact, tags=["blue", "green"])
    assert [await tagged(t) for t in ("red", "blue", "green")] == [[], [contact], [contact]]
    await db.write(actions.remove, ANA, CONTACTS, contact)
    assert await tagged("blue") == []
