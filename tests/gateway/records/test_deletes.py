"""Tests deletes of records with many dependants: reads meanwhile, and the final state."""

from typing import Any

import pytest

from gateway.domain.catalogue import RESOURCES
from gateway.domain.sales.deals import DEALS
from gateway.records.cascades import MOST, Dependants
from gateway.records.resource import Drop, Remove, Resource, Unset
from gateway.records.settled_rows import columns
from outbox.database.transaction import Database, Tx
from tests.support.crm_rows import add_activities
from tests.support.rest import Person, Reply, RestApi
from tests.support.work import Worked

BODIES: dict[str, dict[str, Any]] = {
    "contacts": {"name": "Maria"},
    "companies": {"name": "Acme"},
    "deals": {"title": "Deal with all", "value": 1},
    "tasks": {"title": "Call"},
    "quotes": {"items": [{"description": "x", "quantity": 1, "unitPrice": 1}]},
    "invoices": {"total": 1, "dueDate": "2030-01-01"},
}
POINTING = {
    "contacts": ("tasks", "quotes", "invoices", "deals"),
    "companies": ("contacts", "deals", "quotes", "invoices"),
    "deals": ("tasks", "quotes", "invoices"),
}
"""The kinds of records that refer to a record of a kind."""


async def create(person: Person, kind: str, **more: Any) -> str:
    reply = await person.post(f"/api/{kind}", BODIES[kind] | more)
    assert reply.status == 201, reply.text
    return str(reply.body["id"])


def noun_of(kind: str) -> str:
    return next(r.noun for r in RESOURCES if r.plural == kind)


async def with_dependants(api: RestApi, person: Person, kind: str) -> tuple[str, dict[str, str]]:
    """Create a record with MOST activities and one dependant of each kind; return the paths."""
    record_id = await create(person, kind)
    noun = noun_of(kind)
    await api.db.write(add_activities, person.user_id, MOST, record_id, noun)
    paths = {}
    for other in POINTING[kind]:
        link = {f"{noun}Id": record_id}
        if (kind, other) == ("contacts", "deals"):
            link = {"contactIds": [await create(person, "contacts"), record_id]}  # type: ignore[dict-item] # a list here
        paths[other] = f"/api/{other}/{await create(person, other, **link)}"
    return record_id, paths


@pytest.mark.parametrize("db_url", ["postgres"], indirect=True)
async def test_a_list_reads_no_deletes_of_other_owners(api: RestApi, ana: Person) -> None:
    """While another owner deletes many records with dependants."""
    for _ in range(60):
        await create(ana, "deals")

    async def others(tx: Tx) -> None:
        for number in range(200):
            await tx.run("insert into pending_ends values ('other', $1, 'contact')", f"r{number}")
        await tx.run("analyze deals")

    async def read(tx: Tx) -> None:
        listed = f"select {columns(DEALS)} from deals where owner_id = $1 order by id limit 50"
        assert len(await tx.all(listed, ana.user_id)) == 50

    await api.db.write(others)
    worked = Worked(api.db, [])
    await worked.write(read)
    # The deals, and for each column one row that tells that there are any.
    assert worked.most() < 70


async def pending(db: Database) -> int:
    return await rows(db, "pending_ends")


async def rows(db: Database, table: str, where: str = "true", *args: Any) -> int:
    async def unit(tx: Tx) -> int:
        row = await tx.one(f"select count(*) as n from {table} where {where}", *args)
        return int(row["n"]) if row else 0

    return await db.read(unit)


async def settled(db: Database) -> None:
    await Dependants(db, RESOURCES).run_once()
    assert await pending(db) == 0


def unlinked(reply: Reply, record_id: str) -> dict[str, Any]:
    """Return the record without updatedAt, and assert that it has no deleted id."""
    assert reply.status == 200, reply.text
    assert record_id not in reply.text
    return {name: value for name, value in reply.body.items() if name != "updatedAt"}


def version(reply: Reply) -> int:
    return int(reply.headers["ETag"].strip('"').partition("-")[0])


async def test_up_to_the_limit_dependants_are_settled_at_once(api: RestApi, ana: Person) -> None:
    contact = await create(ana, "contacts")
    await api.db.write(add_activities, ana.user_id, MOST, contact)
    assert (await ana.delete(f"/api/contacts/{contact}")).status == 200
    assert await pending(api.db) == 0
    assert await rows(api.db, "activities") == 0
    assert (await ana.get("/api/activities")).body["total"] == 0


@pytest.mark.parametrize("kind", list(POINTING))
async def test_above_the_limit_dependants_read_as_settled(
    api: RestApi, ana: Person, bia: Person, kind: str
) -> None:
    record_id, paths = await with_dependants(api, ana, kind)
    await api.db.write(add_activities, bia.user_id, 3, await create(bia, "contacts"))
    remaining = await create(ana, "contacts")
    await api.db.write(add_activities, ana.user_id, 2, remaining)
    listed = (await ana.get(f"/api/activities?relatedTo={record_id}&limit=1")).body["data"]
    before = {other: await ana.get(path) for other, path in paths.items()}

    assert (await ana.delete(f"/api/{kind}/{record_id}")).status == 200
    assert await pending(api.db) == 1
    assert await rows(api.db, "activities", "related_id = $1", record_id) == MOST
    assert [name for name, _ in await api.events()].count(f"{noun_of(kind)}.deleted") == 1

    during = {other: await ana.get(path) for other, path in paths.items()}
    for other, reply in during.items():
        assert record_id in before[other].text
        assert version(reply) == version(before[other]) + 1
        name = f"{noun_of(kind)}Id"
        body = (await ana.get(f"/api/{other}?{name}={record_id}")).body
        assert (body["total"], body["data"]) == (0, [])
        page = await ana.get(f"/api/{other}?limit=100")
        assert record_id not in page.text
        assert reply.body in page.body["data"]
        stale = before[other].headers["ETag"]
        assert (await ana.get(paths[other], If_None_Match=stale)).status == 200
    await _no_activities(ana, record_id, listed[0]["id"])
    assert (await bia.get("/api/activities")).body["total"] == 3

    await settled(api.db)
    assert await rows(api.db, "activities", "related_id = $1", record_id) == 0
    for other, path in paths.items():
        after = await ana.get(path)
        assert unlinked(after, record_id) == unlinked(during[other], record_id)
        # updatedAt is set now, so the ETag must differ from the earlier one.
        assert version(after) == version(during[other]) + 1
    await _no_activities(ana, record_id, listed[0]["id"])


async def _no_activities(ana: Person, record_id: str, activity: str) -> None:
    """Assert that no list shows the record's activities; two other activities are left."""
    for path in (f"/api/activities?relatedTo={record_id}", f"/api/activities/entity/{record_id}"):
        body = (await ana.get(path)).body
        assert (body["total"], body["data"]) == (0, [])
    everything = (await ana.get("/api/activities")).body
    assert (everything["total"], len(everything["data"])) == (2, 2)
    assert (await ana.get("/api/activities?type=note")).body["total"] == 2
    assert (await ana.get("/api/activities?page=2&limit=1")).body["total"] == 2
    assert len((await ana.get("/api/activities/recent")).body["data"]) == 2
    assert (await ana.get("/api/reports/activities")).body["totals"]["total"] == 2
    for method in ("GET", "PUT", "DELETE"):
        body = {"description": "x"} if method == "PUT" else None
        reply = await ana.call(method, f"/api/activities/{activity}", body)
        assert reply.status == 404, reply.text


async def test_no_new_record_can_refer_to_a_deleted_one(api: RestApi, ana: Person) -> None:
    contact, paths = await with_dependants(api, ana, "contacts")
    assert (await ana.delete(f"/api/contacts/{contact}")).status == 200
    for kind, link in (
        ("tasks", {"contactId": contact}), ("quotes", {"contactId": contact}),
        ("invoices", {"contactId": contact}), ("deals", {"contactIds": [contact]}),
    ):  # fmt: skip
        refused = await ana.post(f"/api/{kind}", BODIES[kind] | link)
        assert (refused.status, refused.body["code"]) == (400, "invalid_reference")
        again = await ana.put(paths[kind], link)
        assert (again.status, again.body["code"]) == (400, "invalid_reference")
    note = {"type": "note", "description": "x", "relatedTo": contact, "relatedType": "contact"}
    assert (await ana.post("/api/activities", note)).status == 400
    # The invoice of a quote copies the values that the quote shows.
    assert (await ana.post(f"{paths['quotes']}/accept")).status == 200
    invoice = await ana.post(f"{paths['quotes']}/convert")
    assert invoice.status == 201
    assert "contactId" not in invoice.body
    await settled(api.db)
    for table in ("tasks", "quotes", "invoices"):
        assert await rows(api.db, table, "contact_id is not null") == 0


@pytest.mark.parametrize("resource", RESOURCES, ids=lambda r: r.noun)
def test_every_cascade_has_a_reference_field(resource: Resource) -> None:
    by_table = {r.table: r for r in RESOURCES}
    for cascade in resource.cascades:
        if isinstance(cascade, Remove) and not cascade.counted:
            # Its rows are no records: they have no totals either.
            assert cascade.table not in by_table
            continue
        other = by_table[cascade.table]
        [field] = [f for f in other.fields if f.column == cascade.column]
        match cascade:
            case Unset():
                assert field in other.ending
                assert not field.listed_in
            case Drop():
                assert field in other.ending
                assert field.listed_in == cascade.listed_in
            case Remove():
                assert field in other.belongs
    assert resource.deletable or not resource.cascades
