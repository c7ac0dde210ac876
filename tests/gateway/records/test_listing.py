"""Tests lists on both engines: pages, search, filters, sorting, cursors."""

from typing import Any, NamedTuple

import msgspec
import pytest

from gateway.domain.contacts.companies import COMPANIES
from gateway.domain.contacts.contacts import CONTACTS
from gateway.records import actions
from gateway.records.access import Actor
from gateway.records.errors import Refusal
from gateway.records.resource import Resource
from gateway.rest.params import query_of
from outbox.database.transaction import Database, Tx
from tests.support import records
from tests.support.records import asked

ANA = Actor("a" * 24, "api_key")


class Shown(NamedTuple):
    """A page in the form of the REST door."""

    records: list[msgspec.Struct]
    total: int
    cursor: str | None


async def create(db: Database, *bodies: dict[str, Any], resource: Resource = CONTACTS) -> list[str]:
    """Create the records one after another and return their ids."""
    ids = []
    for body in bodies:
        draft = asked(resource, body, creating=True)
        ids.append((await db.write(actions.create, ANA, resource, draft)).id)
    return ids


async def named(db: Database, *names: str) -> list[str]:
    return await create(db, *({"name": name} for name in names))


async def listed(
    db: Database, resource: Resource = CONTACTS, who: Actor = ANA, **query: Any
) -> Shown:
    page, structs, cursor = await records.listed(db, who, resource, query)
    return Shown(structs, page.total, cursor)


def members(page: Shown) -> list[dict[str, Any]]:
    # Stored JSON is in them as it is, so only the encoder takes them.
    return [msgspec.json.decode(msgspec.json.encode(record)) for record in page.records]


def names(page: Shown) -> list[str]:
    return [record["name"] for record in members(page)]


async def at_once(db: Database, *bodies: dict[str, Any]) -> None:
    """Create the contacts in one transaction: all share an instant."""

    async def unit(tx: Tx) -> None:
        for body in bodies:
            await actions.create(tx, ANA, CONTACTS, asked(CONTACTS, body, creating=True))

    await db.write(unit)


def refused(query: dict[str, str]) -> Refusal:
    with pytest.raises(Refusal) as caught:
        query_of(CONTACTS, query)
    return caught.value


async def test_a_cursor_is_stable_under_concurrent_writes(db: Database) -> None:
    await at_once(db, *({"name": f"c{i}"} for i in range(10)))
    first = await listed(db, limit="4")
    await named(db, "newer")
    seen = names(first)
    cursor = first.cursor
    while cursor:
        shown = await listed(db, limit="4", cursor=cursor)
        assert shown.total == 11
        seen += names(shown)
        cursor = shown.cursor
    assert sorted(seen) == [f"c{i}" for i in range(10)]


@pytest.mark.parametrize(
    ("term", "expected"),
    [
        ("jose", ["José Álvares"]),
        ("JOSÉ", ["José Álvares"]),
        ("alvar", ["José Álvares"]),
        ("EXAMPLE.com", ["Maria"]),
        ("%", ["100% natural"]),
        ("_", ["under_score"]),
        ("\\", ["back\\slash"]),
        ("'", ["D'Ávila"]),
        (" maria ", ["Maria"]),
        ("zzz", []),
        ("maria\x1fmaria", []),
        ("mariamaria", []),
        ("\0", []),
        ("\ud800", []),
        ("strasse", ["Straße 1"]),
    ],
)
async def test_search_is_a_literal_substring(db: Database, term: str, expected: list[str]) -> None:
    await named(
        db, "José Álvares", "100% natural", "under_score", "back\\slash", "D'Ávila", "Straße 1"
    )
    await create(db, {"name": "Maria", "email": "maria@example.com", "notes": "zzz"})
    result = await listed(db, search=term)
    assert names(result) == expected
    assert result.total == len(expected)


async def test_filters_of_contacts(db: Database) -> None:
    company, other = await create(db, {"name": "A"}, {"name": "B"}, resource=COMPANIES)
    ids = await create(
        db,
        {"name": "one", "companyId": company, "tags": ["x", "y"]},
        {"name": "two", "companyId": other, "tags": ["y"]},
        {"name": "three"},
    )
    assert names(await listed(db, companyId=company)) == ["one"]
    assert names(await listed(db, companyId=company.upper())) == ["one"]
    assert names(await listed(db, tag="y")) == ["two", "one"]
    assert names(await listed(db, tag="y", companyId=other)) == ["two"]
    assert names(await listed(db, tag="y", search="ON")) == ["one"]
    for nothing in ("", "x", "0" * 24, "\0", "é" * 24, "\ud800"):
        for name in ("companyId", "tag"):
            if (name, nothing) != ("tag", "x"):
                query: dict[str, Any] = {name: nothing}
                shown = await listed(db, **query)
                assert (shown.records, shown.total) == ([], 0)
    assert names(await listed(db, ids=f"{ids[2]},{ids[0].upper()},zzz,{'0' * 24}")) == [
        "three", "one",
    ]  # fmt: skip
    assert (await listed(db, ids="")).total == 0
    assert (await listed(db, ids="nope")).total == 0
    assert (await listed(db, ids=",".join(ids * 13))).total == 3
    assert (await listed(db, unknown="1", status="foo")).total == 3


async def test_the_cnpj_filter_ignores_the_mask(db: Database) -> None:
    await create(
        db,
        {"name": "Masked", "cnpj": "11.222.333/0001-81"},
        {"name": "Letters", "cnpj": "12abc34501de35"},
        resource=COMPANIES,
    )
    assert names(await listed(db, COMPANIES, cnpj="11222333000181")) == ["Masked"]
    assert names(await listed(db, COMPANIES, cnpj="12.ABC.345/01DE-35")) == ["Letters"]
    assert names(await listed(db, COMPANIES, cnpj="00000000000191")) == []
    assert names(await listed(db, COMPANIES, cnpj="rubbish")) == []
    assert (await listed(db, COMPANIES, cnpj="rubbish")).total == 0


async def test_paging_over_changes_has_no_gaps_and_no_repeats(db: Database) -> None:
    await at_once(db, *({"name": f"c{i}"} for i in range(9)))
    everything = members(await listed(db, limit="100"))
    [touched] = await named(db, "later")
    since = everything[0]["createdAt"]
    draft = asked(CONTACTS, {"name": "c0 changed"})
    oldest = everything[-1]["id"]
    await db.write(actions.change, ANA, CONTACTS, oldest, draft)
    seen: list[str] = []
    cursor: str | None = ""
    while cursor is not None:
        query: dict[str, Any] = {"cursor": cursor} if cursor else {}
        shown = await listed(db, updatedSince=since, limit="3", **query)
        assert shown.total == 10
        seen += [r["id"] for r in members(shown)]
        cursor = shown.cursor
    assert len(seen) == len(set(seen)) == 10
    assert seen[-2:] == [touched, oldest]
    changed = (await db.read(actions.read, ANA, CONTACTS, oldest)).shown("updatedAt")
    # JSON has milliseconds and the database microseconds, so the bound is inclusive.
    again = members(await listed(db, updatedSince=changed))
    assert oldest in [r["id"] for r in again]
    assert (await listed(db, updatedSince="2999-01-01")).total == 0


@pytest.mark.parametrize(
    "text", ["x", "AAAA", "é", "Yw", "Y3guMDA", "%00", "Yzk5OTk5OTk5OTk5OTk5OTk5OTk5OTk5OTku" * 3]
)
def test_an_invalid_cursor_is_refused(text: str) -> None:
    refusal = refused({"cursor": text})
    assert (refusal.code, refusal.faults[0].field) == ("validation_error", "cursor")
