"""Tests features of declarations that no product resource needs, on both engines.

The resources here exist only for these tests, which create their tables.
"""

from typing import Any

import pytest

from gateway.records import actions
from gateway.records.audit import Actor
from gateway.records.derived import Derived
from gateway.records.errors import Refusal
from gateway.records.query import Query
from gateway.records.resource import (  # fmt: skip
    Drop,
    Field,
    Filter,
    Reference,
    Remove,
    Resource,
    Unset,
)
from gateway.records.values import formats, instants, nested, numbers
from gateway.rest.body import members_of
from outbox.database.transaction import Database, Tx
from tests.support.records import asked, listed
from tests.support.tables import in_turn

ANA = Actor("a" * 24, "api_key")

BIA = Actor("b" * 24, "api_key")
NOWHERE = "0" * 24
SYSTEM = """id text primary key, owner_id text not null, version bigint not null,
  created_at bigint not null, updated_at bigint"""
TABLES = (
    f"create table places ({SYSTEM}, title text not null)",
    f"""create table trips ({SYSTEM}, title text not null, status text not null,
      closed_at bigint, price bigint not null, stock bigint, due_at bigint, due_day boolean,
      place_id text, stops text not null)""",
    """create table trip_stops (owner_id text not null, value text not null,
      record_id text not null references trips (id) on delete cascade,
      primary key (owner_id, value, record_id))""",
    f"""create table remarks ({SYSTEM}, text text not null, about text not null,
      about_kind text not null, more text)""",
)

PLACES = Resource(
    noun="place", plural="places", table="places", description="A place.",
    fields=(Field("title", "title", formats.title(), "Title.", "Rio", required=True),),
    events={"deleted": ("id",)},
    cascades=(
        Unset("trips", "place_id"), Drop("trips", "stops", "trip_stops"),
        Remove("remarks", "about"),
    ),
)  # fmt: skip


TRIPS = Resource(
    noun="trip", plural="trips", table="trips", description="A trip.",
    fields=(
        Field("title", "title", formats.title(), "Title.", "Tour", required=True),
        Field(
            "status", "status", formats.one_of("open", "done"), "State.", "open",
            on_create=False, default="open", nullable=False,
        ),
        Field("closedAt", "closed_at", instants.instant(), "End.", "2026-01-01", on_create=False,
              on_update=False),
        Field("price", "price", numbers.money(), "Price.", 1.5, required=True),
        Field("stock", "stock", numbers.integer(0, 100), "Seats.", 5, always=True),
        Field("dueDate", "due_at", instants.instant(), "Due.", "2026-01-01",),
        Field("placeId", "place_id", formats.id_of("place"), "Place.", NOWHERE,
              reference=Reference("place", "places")),
        Field("stopIds", "stops", formats.ids_of("place", 3), "Stops.", [], default="[]",
              reference=Reference("place", "places"), listed_in="trip_stops"),
    ),
    events={"created": ("id", "price", "status", "closedAt"), "updated": ("id", "updatedAt")},
    filters=(
        Filter("minPrice", "price >= {}", "money", "At least this much."),
        Filter("stopId", "id in (select record_id from trip_stops"
               " where owner_id = $1 and value = {})", "id", "By stop."),
    ),
    derived=(
        Derived("late", ("due_at",), lambda at, due_at: due_at is not None and due_at < at.now,
                {"type": "boolean"}, "Whether it is past its date.", False),
    ),
)  # fmt: skip

REMARKS = Resource(
    noun="remark", plural="remarks", table="remarks", description="A remark.",
    fields=(
        Field("text", "text", formats.text(500), "Text.", "x", required=True),
        Field("about", "about", formats.id_of("record"), "What.", NOWHERE, required=True,
              reference=Reference(by="aboutKind", tables={"place": "places", "trip": "trips"})),
        Field("aboutKind", "about_kind", formats.one_of("place", "trip"), "Kind.", "place",
              required=True),
        Field("more", "more", nested.free_object(), "More.", {}),
    ),
    events={},
)  # fmt: skip


@pytest.fixture
async def db(db: Database) -> Database:
    async def unit(tx: Tx) -> None:
        for statement in TABLES:
            await tx.run(statement)

    await db.write(unit)
    return db


async def made(db: Database, resource: Resource, who: Actor = ANA, **body: Any) -> dict[str, Any]:
    draft = asked(resource, body, creating=True)
    return members_of(await db.write(actions.create, who, resource, draft))


async def changed(db: Database, resource: Resource, record_id: str, **body: Any) -> dict[str, Any]:
    draft = asked(resource, body)
    return members_of(await db.write(actions.change, ANA, resource, record_id, draft))


async def seen(db: Database, resource: Resource, record_id: str) -> dict[str, Any]:
    return members_of(await db.read(actions.read, ANA, resource, record_id))


async def test_money_defaults_nulls_and_derived_fields(db: Database) -> None:
    trip = await made(db, TRIPS, title="T", price=10.5, status="done", dueDate="2020-01-01")
    assert trip | {"id": "", "createdAt": ""} == {
        "id": "", "title": "T", "status": "open", "price": 10.5, "stock": None,
        "dueDate": "2020-01-01T00:00:00.000Z", "stopIds": [], "late": True, "createdAt": "",
    }  # fmt: skip
    assert (await db.read(actions.read, ANA, TRIPS, trip["id"])).etag == "1-late"
    later = await db.write(
        actions.change, ANA, TRIPS, trip["id"],
        asked(TRIPS, {"dueDate": "2999-01-01"}), frozenset({"1-late"}),
    )  # fmt: skip
    assert later.etag == "2"
    assert later["late"] is False
    found = await db.read(actions.page, ANA, TRIPS, Query())
    assert len(found.records) == 1


async def test_a_list_of_references(db: Database) -> None:
    a, b, c = [(await made(db, PLACES, title=t))["id"] for t in "abc"]
    foreign = (await made(db, PLACES, BIA, title="x"))["id"]
    with pytest.raises(Refusal) as caught:
        await made(db, TRIPS, title="T", price=1, stopIds=[a, foreign, NOWHERE])
    assert caught.value.code == "invalid_reference"
    assert [f.field for f in caught.value.faults] == ["stopIds[1]", "stopIds[2]"]
    trips = [
        (await made(db, TRIPS, title="T", price=1, stopIds=stops))["id"]
        for stops in ([a, b, c], [b, a], [b], [a, c], [c, b])
    ]

    async def by_stop(place: str) -> int:
        return (await listed(db, ANA, TRIPS, {"stopId": place}))[0].total

    assert [await by_stop(p) for p in (a, b, c, foreign)] == [3, 4, 3, 0]
    await db.write(actions.remove, ANA, PLACES, b)
    after = [(await seen(db, TRIPS, t))["stopIds"] for t in trips]
    assert after == [[a, c], [a], [], [a, c], [c]]
    assert [await by_stop(p) for p in (a, b, c)] == [3, 0, 3]
    etags = [(await db.read(actions.read, ANA, TRIPS, t)).etag for t in trips]
    assert etags == ["2", "2", "2", "1", "2"]
    assert (await changed(db, TRIPS, trips[0], stopIds=None))["stopIds"] == []
    assert await by_stop(a) == 2


async def test_a_reference_with_its_kind_in_another_field(db: Database) -> None:
    place = (await made(db, PLACES, title="a"))["id"]
    trip = (await made(db, TRIPS, title="T", price=1))["id"]
    remark = await made(db, REMARKS, text="x", about=place, aboutKind="place")
    for bad in (
        {"about": trip, "aboutKind": "place"},
        {"about": place, "aboutKind": "trip"},
        {"about": NOWHERE, "aboutKind": "trip"},
        {"about": place, "aboutKind": "ship"},
    ):
        with pytest.raises(Refusal) as caught:
            await made(db, REMARKS, text="x", **bad)
        assert caught.value.code in ("validation_error", "invalid_reference")
    for one_sided in ({"about": trip}, {"aboutKind": "trip"}):
        with pytest.raises(Refusal) as caught:
            await changed(db, REMARKS, remark["id"], **one_sided)
        assert caught.value.code == "invalid_reference"
    moved = await changed(db, REMARKS, remark["id"], about=trip, aboutKind="trip")
    assert (moved["about"], moved["aboutKind"]) == (trip, "trip")


@in_turn("price", ["", "x", "-1", "1.001", "true", "null", '"1"', "NaN", "1e400"])
async def test_an_invalid_filter_value_matches_nothing(db: Database, price: str) -> None:
    await made(db, TRIPS, title="T", price=1)
    found, _, _ = await listed(db, ANA, TRIPS, {"minPrice": price})
    assert (found.total, found.records) == (0, [])
