"""Tests lists on both engines: pages, search, filters, sorting, cursors."""

from base64 import urlsafe_b64encode
from dataclasses import replace
from typing import Any, NamedTuple

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gateway.domain.catalogue import RESOURCES
from gateway.domain.contacts.companies import COMPANIES
from gateway.domain.contacts.contacts import CONTACTS
from gateway.domain.contacts.tasks import TASKS
from gateway.records import actions, query, statements, store
from gateway.records.audit import Actor
from gateway.records.cursors import text_of
from gateway.records.errors import Refusal
from gateway.records.places import Place, beyond, order_by
from gateway.records.query import Query, keys_of
from gateway.records.resource import Resource
from gateway.rest.params import query_of
from outbox.database.transaction import Database, Tx
from tests.support import records
from tests.support.crm_rows import add_contacts
from tests.support.records import asked
from tests.support.tables import in_turn

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


@pytest.fixture
async def searched(db: Database) -> Database:
    await named(
        db, "José Álvares", "100% natural", "under_score", "back\\slash", "D'Ávila", "Straße 1"
    )
    await create(
        db, {"name": "Maria", "email": "maria@example.com", "notes": "zzz", "phone": "98888"}
    )
    return db


@in_turn(
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
        ("ALVARES  jose", ["José Álvares"]),
        ("natural jose", []),
        ("98888", []),
    ],
)
async def test_search_is_words_of_name_or_email(
    searched: Database, term: str, expected: list[str]
) -> None:
    result = await listed(searched, search=term)
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


async def test_sorting(db: Database) -> None:
    await named(db, "banana", "Ábaco", "cedro", "abacate", "banana")
    by_name = ["abacate", "Ábaco", "banana", "banana", "cedro"]
    assert names(await listed(db, sort="name")) == by_name
    assert names(await listed(db, sort="-name")) == by_name[::-1]
    oldest = ["banana", "Ábaco", "cedro", "abacate", "banana"]
    assert names(await listed(db, sort="createdAt")) == oldest
    assert names(await listed(db, sort="-createdAt")) == oldest[::-1]
    assert names(await listed(db, sort="-updatedAt")) == oldest[::-1]
    both = members(await listed(db, sort="name,-createdAt"))
    twins = [r["createdAt"] + r["id"] for r in both[2:4]]
    assert twins == sorted(twins, reverse=True)
    pages = [await listed(db, sort="name", limit="2", page=str(p)) for p in (1, 2, 3)]
    assert [n for p in pages for n in names(p)] == by_name
    walked = members(first := await listed(db, sort="name,-createdAt", limit="2"))
    while first.cursor is not None:
        first = await listed(db, sort="name,-createdAt", limit="2", cursor=first.cursor)
        walked += members(first)
    assert walked == both
    assert names(await listed(db, sort="name,name,-name")) == by_name
    # The default order, given by name, still supports a cursor.
    first = await listed(db, sort="-createdAt", limit="3")
    assert first.cursor is not None
    rest = await listed(db, sort="-createdAt", limit="3", cursor=first.cursor)
    assert names(first) + names(rest) == oldest[::-1]
    assert refused({"sort": "updatedAt", "cursor": first.cursor}).faults[0].field == "cursor"


NUMBERS = st.sampled_from((None, 0, 1, 2))
ORDERS = (
    "dueDate", "-dueDate", "-dueDate,createdAt", "createdAt", "updatedAt", "-updatedAt,dueDate",
    "dueDate,-createdAt", "createdAt,-dueDate,updatedAt", "",
)  # fmt: skip


@pytest.mark.slow
@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=st.lists(st.tuples(NUMBERS, NUMBERS), max_size=12), limit=st.integers(1, 4))
async def test_every_order_is_walked_to_its_end_with_empty_values_last(
    db: Database, rows: list[tuple[int | None, int | None]], limit: int
) -> None:
    """Property: the pages by cursor, one after another, are the whole list, forwards and back."""
    owner = Actor(db.ids.new(db.clock.wall()), "api_key")

    async def unit(tx: Tx) -> None:
        for due, changed in rows:
            values = {"title": "t", "due_at": due, "due_day": False, "priority": "low"}
            made = await store.insert(tx, TASKS, owner.owner_id, values | {"completed": False})
            await tx.run("update tasks set updated_at = $2 where id = $1", made[0], changed)

    await db.write(unit)
    for order in ORDERS:
        query = query_of(TASKS, {"sort": order, "limit": str(limit)})
        whole = await db.read(actions.page, owner, TASKS, replace(query, limit=100))
        dates_of = [record["due_at"] for record in whole.records]
        if order.removeprefix("-") == "dueDate":
            full = [due for due in dates_of if due is not None]
            assert full == sorted(full, reverse=order.startswith("-"))
            assert dates_of == full + [None] * (len(rows) - len(full))
        pages = list[list[str]]()
        cursor: str | None = ""
        while cursor is not None:
            query = query_of(TASKS, {"sort": order, "limit": str(limit), "cursor": cursor})
            page = await db.read(actions.page, owner, TASKS, query)
            pages.append([record.id for record in page.records])
            cursor = text_of(TASKS, query, page.onward)
        ids = [one for page in pages for one in page]
        assert ids == [record.id for record in whole.records]
        assert len(ids) == len(rows)
        for earlier in reversed(pages[:-1]):
            assert page.back is not None
            query = replace(query, after=None, before=page.back)
            page = await db.read(actions.page, owner, TASKS, query)
            assert [record.id for record in page.records] == earlier
        assert page.back is None


@pytest.mark.parametrize("db_url", ["sqlite"], indirect=True)
async def test_a_page_by_cursor_reads_its_part_of_an_index(db: Database) -> None:
    """In each order of each list: nothing is sorted, and nothing before the place is read."""
    for resource in RESOURCES:
        for name, down in ((s.name, down) for s in resource.sorts for down in (False, True)):
            keys, args = keys_of(resource, Query(order=[(name, down)])), list[Any](["o"])
            place = Place("a" if keys[0][0] == "sort_name" else 1, "0" * 24)
            where = f"owner_id = $1 and {beyond(keys, place, args)}"
            sql = statements.page(resource, where, order_by(keys), size=4, offset=5, late=False)
            plan = await db.read(
                lambda tx, sql, args: tx.all(f"explain query plan {sql}", *args, 21, 0), sql, args
            )
            steps = [str(row["detail"]) for row in plan]
            assert not any("TEMP B-TREE" in step for step in steps), (resource.table, name)
            [search] = [step for step in steps if f"SEARCH {resource.table} USING" in step]
            assert search.endswith(("<?)", ">?)", "(?,?))")), search


@pytest.mark.parametrize("db_url", ["sqlite"], indirect=True)
async def test_what_names_a_record_is_read_in_its_order(db: Database) -> None:
    """Without a look at all records of the owner, in a list and in the page of that record."""
    # A store has few categories and e-books.
    large = [one for one in RESOURCES if one.plural not in ("categories", "ebooks")]
    for resource in large:
        for one in (one for one in resource.filters if one.kind == "id"):
            few = Query()
            few.few(resource, one, "f" * 24, 5)
            for wanted in (Query(filters={one.name: "f" * 24}), few):
                where, values = query.conditions(resource, wanted, 0, "UTC")
                sql = statements.page(
                    resource, where, query.order_of(resource, wanted),
                    size=len(values) + 2, offset=len(values) + 3, late=False,
                )  # fmt: skip
                plan = await db.read(
                    lambda tx, sql, args: tx.all(f"explain query plan {sql}", *args),
                    sql, ["o", *values, 21, 0],
                )  # fmt: skip
                steps = [str(row["detail"]) for row in plan]
                own = [step for step in steps if step.endswith("(owner_id=?)")]
                assert not own, (resource.table, one.name)


async def test_ids_are_looked_up_by_their_key(db: Database) -> None:
    """However many records their owner has."""
    await db.write(add_contacts, ANA.owner_id, 5_000, "0" * 24)
    if db.engine == "postgres":
        await db.write(lambda tx: tx.run("analyze contacts"))
    wanted = Query(ids=[f"{number:024x}" for number in range(300)], limit=100)
    where, values = query.conditions(CONTACTS, wanted, 0, "UTC")
    args = [ANA.owner_id, *values]
    size = len(args) + 1
    count = statements.count(CONTACTS, where)
    page = statements.page(CONTACTS, where, query.NEWEST, size=size, offset=size + 1, late=False)
    is_sqlite = db.engine == "sqlite"
    explain = f"explain {'query plan ' * is_sqlite}"
    for sql, more in ((count, ()), (page, (101, 0))):
        rows = await db.read(
            lambda tx, sql, more: tx.all(explain + sql, *args, *more), sql, more
        )  # fmt: skip
        plan = " ".join(
            str(row["detail" if db.engine == "sqlite" else "QUERY PLAN"]) for row in rows
        )
        key = "sqlite_autoindex_contacts_1 (id=?)" if db.engine == "sqlite" else "contacts_pkey"
        assert key in plan, plan
        assert "contacts_newest" not in plan


async def test_a_page_too_far_is_refused_with_the_cursor(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    await named(db, *"abcdef")
    assert names(await listed(db, page="3", limit="2")) == ["b", "a"]
    monkeypatch.setattr(query, "FARTHEST", 3)
    assert names(await listed(db, page="2", limit="2")) == ["d", "c"]
    with pytest.raises(Refusal, match=r"At most 3 records may precede .* cursor") as caught:
        await listed(db, page="3", limit="2")
    assert [fault.field for fault in caught.value.faults] == ["page"]
    # A page past the end is empty, however far that is, and a cursor leads to any.
    assert (await listed(db, page=str(2**62), limit="2")).records == []
    cursor = (await listed(db, page="2", limit="2")).cursor
    assert names(await listed(db, cursor=cursor, limit="2")) == ["b", "a"]


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


async def test_a_cursor_of_another_order_is_refused(db: Database) -> None:
    await named(db, "one", "two")
    newest = (await listed(db, limit="1")).cursor
    changes = (await listed(db, limit="1", updatedSince="2000-01-01")).cursor
    assert newest
    assert changes
    assert refused({"cursor": changes}).code == "validation_error"
    assert refused({"cursor": newest, "updatedSince": "2000-01-01"}).code == "validation_error"
    assert refused({"cursor": newest, "sort": "name"}).code == "validation_error"
    named_ = (await listed(db, limit="1", sort="name")).cursor
    assert named_
    assert query_of(CONTACTS, {"cursor": named_, "sort": "name"}).after
    for other in ({}, {"sort": "-name"}, {"sort": "name,createdAt"}, {"sort": "createdAt"}):
        assert refused({"cursor": named_, **other}).faults[0].field == "cursor"


@pytest.mark.parametrize(
    "values", [[1, "0" * 24], ["a\0", "0" * 24], ["a", "x"], ["a"], ["a", "b", "0" * 24], [None, 1]]
)
def test_a_cursor_of_values_that_no_record_has_is_refused(values: list[Any]) -> None:
    plain = b"s" + msgspec.json.encode(["name", *values])
    text = urlsafe_b64encode(plain).decode().rstrip("=")
    assert refused({"cursor": text, "sort": "name"}).faults[0].field == "cursor"
