"""The contract that every resource of the catalogue keeps; a resource's own file has its own rules.

The records, the bodies and what is wrong come from the declarations, so a new resource and a new
field are tested without a line here.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from gateway.domain.catalogue import CATALOGUE, RESOURCES, Entry
from gateway.records.resource import Field, Resource
from gateway.rest.document.operations import path_of
from gateway.rest.routes import ROUTES
from outbox.database.transaction import Database, Tx
from tests.support.document import DOCUMENT, answer_faults
from tests.support.rest import Person, Reply, RestApi
from tests.support.stocked import stock

NOWHERE = "0" * 24
NO_IDS = (NOWHERE, "xyz", NOWHERE + "0", "%00", "%ff", "a%20b", "x" * 4_000)
UNREADABLE = (b"{", b"[]", b"5", b"null", b'{"a":1,"a":2}', b'{"a":NaN}', b"\xff", b"[" * 100)
CONTRACT = json.loads((Path(__file__).parent / "facts" / "contract.json").read_text("utf-8"))
LISTED = {(one["method"], one["path"]): (*one["other"], 401, 403) for one in CONTRACT["operations"]}
"""The refusals that the contract lists, 401 once for all; 403 is also a key without the scope."""
SUCCESSES = {(one["method"], one["path"]): one["success"] for one in CONTRACT["operations"]}
CHANGED = [entry for entry in CATALOGUE if entry.change is not None]


Check = Callable[["Town", Person, Resource], Awaitable[None]]


def of_each(entries: Iterable[Entry]) -> Callable[[Check], Callable[..., Awaitable[None]]]:
    """Make a check of a resource a test of all of these, in one town."""

    def over(check: Check) -> Callable[..., Awaitable[None]]:
        async def test(town: Town, bia: Person) -> None:
            for entry in entries:
                await check(town, bia, entry.resource)

        test.__doc__ = check.__doc__
        return test

    return over


def routes_of(resource: Resource, *, records: bool) -> list[tuple[str, str]]:
    """Return method and path of the routes of its single records, or of its lists and creates."""
    start = f"{path_of(resource)}/"
    return [
        (method, path)
        for method, path, _ in ROUTES
        if f"{path}/".startswith(start) and ("{id}" in path) == records
    ]


def allowed(method: str) -> str:
    """Return the scope that a key needs for a method."""
    return "read" if method in ("GET", "HEAD") else "write"


class Town:
    """One record of each resource, all of one owner."""

    def __init__(self, api: RestApi, owner: Person, ids: Mapping[str, str]) -> None:
        self.api, self.owner, self.ids = api, owner, ids
        self._theirs: Mapping[str, str] | None = None

    async def theirs(self, other: Person) -> Mapping[str, str]:
        """Return the ids of the records of another user, made once."""
        if self._theirs is None:
            self._theirs = (await town_of(self.api, other, 1)).ids
        return self._theirs

    def path(self, resource: Resource) -> str:
        return f"{path_of(resource)}/{self.ids[resource.table]}"

    def reference(self, field: Field) -> Any:
        """Return the id, or the list of ids, of a record that the field can name."""
        assert field.reference is not None
        record_id = self.ids[field.reference.table or "contacts"]
        return [record_id] if field.listed_in else record_id

    def body(self, resource: Resource) -> dict[str, Any]:
        """Return a create with the example of each field."""
        fields = [field for field in resource.creatable.values() if field.example is not None]
        return {
            field.name: field.example if field.reference is None else self.reference(field)
            for field in fields
        }

    async def events(self) -> list[tuple[str, dict[str, Any]]]:
        return await self.api.events()


async def town_of(api: RestApi, owner: Person, first: int = 0) -> Town:
    """Stock one record of each resource; each reference names one of these records."""
    ids = await stock(api.db, owner.user_id, 1, first)

    async def link(tx: Tx) -> None:
        for resource in RESOURCES:
            for field, reference in resource.references:
                to = ids.get(reference.table or "contacts")
                if not field.listed_in and to != ids[resource.table]:
                    await tx.run(
                        f"update {resource.table} set {field.column} = $1 where owner_id = $2",
                        to, owner.user_id,
                    )  # fmt: skip

    await api.db.write(link)
    return Town(api, owner, ids)


@pytest.fixture
async def town(api: RestApi, ana: Person) -> Town:
    return await town_of(api, ana)


async def written(db: Database) -> list[tuple[int, ...]]:
    """Return how many rows each table has and the sum of their versions: any write changes it."""

    async def unit(tx: Tx) -> list[tuple[int, ...]]:
        sums = [await tx.one(
            f"select count(*) as n, cast(coalesce(sum(version), 0) as bigint) as v from {one.table}"
        ) for one in RESOURCES]  # fmt: skip
        events = await tx.one("select count(*) as n, 0 as v from events")
        return [(row["n"], row["v"]) for row in (*sums, events) if row]

    return await db.read(unit)


def refused(reply: Reply, status: int, method: str, path: str, code: str = "") -> None:
    """Assert that this is the documented refusal."""
    assert reply.status == status, (method, path, reply.text)
    if method == "HEAD":
        return
    assert reply.body["requestId"] == reply.headers["X-Request-Id"]
    assert not code or reply.body["code"] == code
    documented = {"PATCH": "PUT"}.get(method, method)
    assert answer_faults(documented, path, status, reply.body) == []
    assert status in LISTED.get((method, path), (status,))


def answered(reply: Reply, method: str, path: str) -> None:
    """Assert that this is the documented success, and that of the contract."""
    [success] = [
        status for status in DOCUMENT["paths"][path][method.lower()]["responses"] if status < "300"
    ]
    assert reply.status == int(success) == SUCCESSES.get((method, path), int(success)), reply.text
    assert reply.headers["Content-Type"] == "application/json"
    assert answer_faults(method, path, reply.status, reply.body) == []


@pytest.mark.slow
@of_each(CATALOGUE)
@pytest.mark.slow
async def test_only_its_owner_reaches_a_record(town: Town, bia: Person, resource: Resource) -> None:
    """As nobody, another user, and a key without the scope; an id of nothing; unreadable bodies."""
    ana, api = town.owner, town.api
    before = await written(api.db)
    blind = {
        "read": await api.key_of(ana.user_id, ["write"]),
        "write": await api.key_of(ana.user_id, ["read"]),
    }
    for method, path in routes_of(resource, records=True):
        mine = path.replace("{id}", town.ids[resource.table])
        body: Any = {} if allowed(method) == "write" and method != "DELETE" else None
        nobody = await api.nobody.call(method, mine, body)
        refused(nobody, 401, method, path, "unauthenticated")
        assert nobody.headers["WWW-Authenticate"] == "Bearer, ApiKey"
        for who in (bia, blind[allowed(method)]):
            refused(await who.call(method, mine, body), 403, method, path, "forbidden")
        # Neither a field nor a key may bring the id to the database before it is looked at.
        cleared = dict.fromkeys((field.name for field in resource.fields), None)
        for wrong in NO_IDS:
            for sent in [body] if body is None else [body, cleared]:
                reply = await ana.call(
                    method, path.replace("{id}", wrong), sent, Idempotency_Key="k"
                )
                refused(reply, 404, method, path, "not_found")
        if "requestBody" in DOCUMENT["paths"][path][method.lower()]:
            for data in UNREADABLE:
                refused(await ana.call(method, mine, data=data), 400, method, path)
            # Who may not change it does not learn whether the body could be read.
            data = UNREADABLE[0]
            refused(await bia.call(method, mine, data=data), 403, method, path)
            unknown = await ana.call(method, path.replace("{id}", NOWHERE), data=data)
            refused(unknown, 404, method, path)
    assert await written(api.db) == before


def unmatched(resource: Resource) -> list[str]:
    """Return filters with a text that fits and that no record has."""
    return [f"{one.name}=%00" for one in resource.filters if one.kind == "text" and not one.allowed]


ODD_QUERIES = (
    "", "?search=%FF&ids=%00&stage=foo", f"?page={'9' * 30}&limit={'9' * 30}",
)  # fmt: skip


@of_each(CATALOGUE)
@pytest.mark.slow
async def test_lists_and_creates_are_those_of_the_caller(
    town: Town, bia: Person, resource: Resource
) -> None:
    ana, api = town.owner, town.api
    before = await written(api.db)
    for method, path in routes_of(resource, records=False):
        target = path.replace("{entityId}", town.ids["contacts"])
        blind = await api.key_of(ana.user_id, ["write" if method == "GET" else "read"])
        for body in ({}, {"name": "x"}) if method == "POST" else (None,):
            nobody = await api.nobody.call(method, target, body)
            refused(nobody, 401, method, path, "unauthenticated")
            refused(await blind.call(method, target, body), 403, method, path, "forbidden")
        for data in UNREADABLE if method == "POST" else ():
            refused(await ana.call(method, path, data=data), 400, method, path)
        # The list of the latest activities has no pages, and refuses to skip any.
        for query in ODD_QUERIES if method == "GET" and "/recent" not in path else ():
            answered(await ana.get(f"{target}{query}"), method, path)
            theirs = (await bia.get(f"{target}{query}")).body
            assert (theirs.get("data", []), theirs.get("total", 0)) == ([], 0)
    assert await written(api.db) == before


@pytest.mark.slow
@of_each(CATALOGUE)
async def test_the_envelope_of_a_list(town: Town, bia: Person, resource: Resource) -> None:
    ana, path = town.owner, path_of(resource)
    record = (await ana.get(town.path(resource))).body
    reply = await ana.get(path)
    assert reply.body == {"data": [record], "total": 1, "page": 1, "limit": 20}
    assert "Link" not in reply.headers
    assert (await ana.get(f"{path}?ids={record['id']}")).body["data"] == [record]
    for query in (f"ids={NOWHERE}", "page=2", *unmatched(resource)):
        assert (await ana.get(f"{path}?{query}")).body["data"] == [], query
    for sort in resource.sorts:
        for sign in ("", "-"):
            assert (await ana.get(f"{path}?sort={sign}{sort.name}")).body["data"] == [record]
    for name in ("cursor", "sort", "updatedSince"):
        wrong = await ana.get(f"{path}?{name}=%F0%9F%98%80%00")
        assert (wrong.status, wrong.faults) == (400, {name: "invalid_parameter"})


@pytest.mark.slow
@of_each([entry for entry in CATALOGUE if entry.create or entry.change])
async def test_every_field_of_a_wrong_type_is_named_at_once(
    town: Town, bia: Person, resource: Resource
) -> None:
    before = await written(town.api.db)
    for method, path, fields in (
        ("POST", path_of(resource), resource.creatable),
        ("PUT", town.path(resource), resource.changeable),
        ("PATCH", town.path(resource), resource.changeable),
    ):
        if method == "POST" and ("POST", path) not in {(m, p) for m, p, _ in ROUTES}:
            continue
        strange = {name: wrong_value(field) for name, field in fields.items()}
        reply = await town.owner.call(method, path, strange)
        assert (reply.status, reply.body["code"]) == (400, "validation_error")
        assert {name.partition("[")[0].partition(".")[0] for name in reply.faults} == {*fields}
        for name, value in strange.items():
            alone = await town.owner.call(method, path, {name: value})
            assert alone.status == 400, name
            assert name in {one.partition("[")[0].partition(".")[0] for one in alone.faults}
    assert await written(town.api.db) == before


def wrong_value(field: Field) -> Any:
    """Return a JSON value of a type that the field does not have."""
    types = field.format.schema.get("type", "")
    return 5 if "object" in types or "array" in types else {"a": []}


@of_each(CHANGED)
async def test_a_stale_etag_changes_nothing(town: Town, bia: Person, resource: Resource) -> None:
    before = await written(town.api.db)
    for method in ("PUT", "PATCH", "DELETE") if resource.deletable else ("PUT", "PATCH"):
        body: Any = None if method == "DELETE" else {}
        reply = await town.owner.call(method, town.path(resource), body, If_Match='"99"')
        assert (reply.status, reply.body["code"]) == (412, "precondition_failed"), method
        assert '"' in reply.headers["ETag"]
    assert await written(town.api.db) == before


@pytest.mark.slow
@of_each([entry for entry in CATALOGUE if entry.create or entry.change])
async def test_a_reference_names_a_record_of_the_owner(
    town: Town, bia: Person, resource: Resource
) -> None:
    """A record of another user, one that never was, and one of another kind look the same."""
    theirs = await town.theirs(bia)
    before, replies = await written(town.api.db), []
    for method, path, fields in (
        ("POST", path_of(resource), resource.creatable),
        ("PUT", town.path(resource), resource.changeable),
    ):
        if (method, path.replace(town.ids[resource.table], "{id}")) not in {
            (m, p) for m, p, _ in ROUTES
        }:
            continue
        for field, reference in resource.references:
            if field.name not in fields:
                continue
            kind = reference.table or "contacts"
            other = "deals" if kind != "deals" else "contacts"
            body: dict[str, Any] = town.body(resource) if method == "POST" else {}
            if reference.by and method == "PUT":
                body = {reference.by: "contact"}
            for wrong in (theirs[kind], NOWHERE, town.ids[other], "x"):
                sent = [wrong] if field.listed_in else wrong
                reply = await town.owner.call(method, path, body | {field.name: sent})
                assert (reply.status, reply.body["code"]) == (400, "invalid_reference"), field.name
                assert field.name in {one.partition("[")[0] for one in reply.faults}
                replies.append((field.name, wrong == "x", reply.body["error"]))
    assert await written(town.api.db) == before
    assert len({*replies}) <= 2 * len({name for name, _, _ in replies})
