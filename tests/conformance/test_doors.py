"""Tests records as other doors use them: typed values, cursors, scopes, uniqueness.

The resource here exists only for these tests, which create its tables.
"""

from collections.abc import Sequence
from typing import Any

import pytest

from gateway.records import actions
from gateway.records.audit import Actor
from gateway.records.errors import Refusal
from gateway.records.query import Page, Query
from gateway.records.record import Record, check
from gateway.records.resource import (
    BY_TIME,
    DerivedColumn,
    Field,
    Filter,
    Resource,
    Sort,
    Unique,
    Within,
)
from gateway.records.values import dates, formats, instants, nested, numbers
from gateway.records.values.nested import Member
from gateway.rest.body import members_of
from outbox.database.transaction import Database, Tx
from tests.support.tables import in_turn

ANA = Actor("a" * 24, "storefront", store_id="1" * 24)

BIA = Actor("b" * 24, "storefront", store_id="2" * 24)
TABLES = (
    """create table offers (id text primary key, owner_id text not null, version bigint not null,
      created_at bigint not null, updated_at bigint, title text not null, price bigint not null,
      ends_at bigint, ends_day boolean, parts text not null, store_id text not null,
      code text, slug text, host text)""",
    """create table offer_codes (owner_id text not null, value text not null,
      record_id text not null, primary key (owner_id, value))""",
    """create table offer_slugs (store_id text not null, value text not null,
      record_id text not null, primary key (store_id, value))""",
    """create table offer_hosts (value text not null primary key, record_id text not null)""",
)
PART = (
    Member("name", formats.title(), "Name.", required=True),
    Member("price", numbers.money(), "Price.", required=True),
    Member("quantity", numbers.quantity(), "How much."),
)
OFFERS = Resource(
    noun="offer", plural="offers", table="offers", description="An offer.",
    fields=(
        Field("title", "title", formats.title(), "Title.", "Tea", required=True),
        Field("price", "price", numbers.money(), "Price.", 1.5, required=True),
        Field("endsAt", "ends_at", instants.instant(), "End.", "2026-12-01",
              beside=(DerivedColumn("ends_day", dates.is_bare, part=True),)),
        Field("parts", "parts", nested.objects(PART, 5), "Parts.", [], default="[]"),
        Field("storeId", "store_id", formats.id_of("store"), "Store.", "1" * 24, required=True),
        Field("code", "code", formats.title(), "Code.", "T", unique=Unique("offer_codes")),
        Field("slug", "slug", formats.title(), "Slug.", "t",
              unique=Unique("offer_slugs", "store", folded=True)),
        Field("host", "host", formats.title(), "Host.", "h",
              unique=Unique("offer_hosts", "installation", folded=True)),
    ),
    events={"created": ("id", "price", "endsAt", "parts")},
    filters=(
        Filter("least", "price >= {}", "money", "At least this much."),
        Filter("until", "ends_at < {}", "to", "Ending by then."),
    ),
    sorts=(*BY_TIME, Sort("price", "price")),
)  # fmt: skip


@pytest.fixture
async def db(db: Database) -> Database:
    async def unit(tx: Tx) -> None:
        for statement in TABLES:
            await tx.run(statement)

    await db.write(unit)
    return db


async def made(db: Database, actor: Actor = ANA, **values: Any) -> Record:
    sent = {"title": "Tea", "price": 150, "storeId": actor.store_id} | values
    draft = check(OFFERS, sent, creating=True)
    return await db.write(actions.create, actor, OFFERS, draft)


async def listed(db: Database, **asked: Any) -> Page:
    return await db.read(actions.page, ANA, OFFERS, Query(**asked))


def titles(page: Page) -> list[str]:
    return [record["title"] for record in page.records]


async def test_typed_values_are_stored_and_shown(db: Database) -> None:
    day = dates.parse("2026-12-15")
    assert day is not None
    parts = [{"name": "Leaf", "price": 1_050, "quantity": 1_500}]
    offer = await made(db, price=1_999, endsAt=dates.Day(day), parts=parts)
    assert (offer["price"], offer["ends_at"], bool(offer["ends_day"])) == (1_999, day, True)
    shown = members_of(offer)
    assert (shown["price"], shown["endsAt"]) == (19.99, "2026-12-15T00:00:00.000Z")
    assert shown["parts"] == [{"name": "Leaf", "price": 10.5, "quantity": 1.5}]
    again = await db.read(actions.read, ANA, OFFERS, offer.id)
    assert (again["price"], again.etag, members_of(again)) == (1_999, "1", members_of(offer))


@in_turn(
    ("values", "faults"),
    [
        ({"price": -1}, [("price", "out_of_range")]),
        ({"price": numbers.MOST_CENTAVOS + 1}, [("price", "out_of_range")]),
        ({"endsAt": 2**62}, [("endsAt", "invalid_date")]),
        ({"endsAt": dates.Day(-(2**62))}, [("endsAt", "invalid_date")]),
        ({"endsAt": True}, [("endsAt", "wrong_type")]),
        ({"title": " "}, [("title", "blank")]),
        (
            {"parts": [{"name": "x", "price": -5}, {"price": 1, "quantity": 0}]},
            [("parts[0].price", "out_of_range"), ("parts[1].name", "required"),
             ("parts[1].quantity", "out_of_range")],
        ),
    ],
)  # fmt: skip
async def test_typed_values_are_checked(
    db: Database, values: dict[str, Any], faults: list[tuple[str, str]]
) -> None:
    with pytest.raises(Refusal) as caught:
        await made(db, **values)
    assert [(fault.field, fault.code) for fault in caught.value.faults] == faults


@pytest.mark.parametrize("changed", [False, True])
async def test_a_cursor_pages_through_records_of_one_instant(db: Database, changed: bool) -> None:
    async def at_once(tx: Tx) -> None:
        for number in range(4):
            sent = {"title": f"b{number}", "price": 1, "storeId": ANA.store_id}
            await actions.create(tx, ANA, OFFERS, check(OFFERS, sent, creating=True))

    await made(db, title="a")
    # They share one instant, so the id decides the order.
    await db.write(at_once)
    await made(db, title="c")
    since = {"since": 0} if changed else {}
    whole = titles(await listed(db, **since))
    assert sorted(whole) == ["a", "b0", "b1", "b2", "b3", "c"]
    walked: list[Sequence[str]] = []
    page = await listed(db, limit=2, **since)
    while True:
        walked.append(titles(page))
        if page.onward is None:
            break
        page = await listed(db, limit=2, after=page.onward, **since)
    assert [title for titles in walked for title in titles] == whole
    assert [len(titles) for titles in walked] == [2, 2, 2]


@pytest.mark.parametrize(
    ("name", "within", "alike"),
    [("code", "owner", "T"), ("slug", "store", "CAFÉ"), ("host", "installation", "SHOP.example")],
)
async def test_a_value_is_unique_within_its_scope(
    db: Database, name: str, within: Within, alike: Any
) -> None:
    value: Any = {"code": "T", "slug": "cafe", "host": "shop.example"}[name]
    first = await made(db, **{name: value})
    with pytest.raises(Refusal) as caught:
        await made(db, **{name: alike})
    assert (caught.value.code, caught.value.faults[0].field) == ("conflict", name)
    elsewhere = Actor(ANA.owner_id, "storefront", store_id="3" * 24)
    for actor, free in ((elsewhere, within == "store"), (BIA, within != "installation")):
        if free:
            await made(db, actor, **{name: value})
        else:
            with pytest.raises(Refusal):
                await made(db, actor, **{name: value})
    if name == "code":
        await made(db, code="t")
    await db.write(actions.change, ANA, OFFERS, first.id, check(OFFERS, {name: None}))
    await made(db, **{name: value})


@pytest.mark.parametrize("price", [1.5, True, "1"])
async def test_an_amount_is_whole_centavos(db: Database, price: Any) -> None:
    with pytest.raises(Refusal) as caught:
        await made(db, price=price)
    assert [(f.field, f.code) for f in caught.value.faults] == [("price", "wrong_type")]
