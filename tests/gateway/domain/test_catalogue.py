"""Tests the catalogue against the contract, and the declarations against each other."""

import importlib
import json
import pkgutil
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

import gateway
from gateway.domain.catalogue import CATALOGUE, EVENT_NAMES, EVENTS, RESOURCES
from gateway.records import statements
from gateway.records.resource import Drop, Remove, Resource, Unset
from gateway.rest.document.operations import path_of
from gateway.rest.routes import ROUTES
from outbox.database.transaction import Database, Tx
from tests.support.records import asked
from tests.support.rest import Person

CONTRACT: dict[str, Any] = json.loads(
    (Path(__file__).parents[1] / "rest" / "facts" / "contract.json").read_text("utf-8")
)
every_resource = pytest.mark.parametrize("resource", RESOURCES, ids=lambda r: r.plural)


def test_the_contract_file_is_complete() -> None:
    assert len(CONTRACT["events"]) == 20
    assert len(CONTRACT["operations"]) == 29


def test_names_order_and_fields_of_events() -> None:
    documented = [(e["name"], tuple(e["data"])) for e in CONTRACT["events"]]
    assert list(EVENTS.items()) == documented
    assert [name for name, _ in documented] == list(EVENT_NAMES)


async def test_the_api_lists_them(ana: Person) -> None:
    reply = await ana.get("/api/webhooks")
    assert reply.body["availableEvents"] == [e["name"] for e in CONTRACT["events"]]


def declared() -> list[Resource]:
    """Return every resource that a module of the product declares."""
    found: dict[str, Resource] = {}
    for module in pkgutil.walk_packages(gateway.__path__, "gateway."):
        if not module.name.endswith("__main__"):
            for value in vars(importlib.import_module(module.name)).values():
                if isinstance(value, Resource):
                    found[value.noun] = value
    return list(found.values())


def test_every_declared_resource_is_catalogued_and_served() -> None:
    assert {one.noun for one in declared()} == {one.noun for one in RESOURCES}
    paths = {(method, path) for method, path, _ in ROUTES}
    for entry in CATALOGUE:
        path = path_of(entry.resource)
        assert {("GET", path), ("GET", f"{path}/{{id}}")} <= paths
        assert (("POST", path) in paths) == (entry.create is not None)
        assert (("PUT", f"{path}/{{id}}") in paths) == (entry.change is not None)


@every_resource
def test_event_fields_are_fields_of_the_record(resource: Resource) -> None:
    shown = {"id", "createdAt", "updatedAt"} | set(resource.named)
    for fields in resource.events.values():
        assert set(fields) <= shown


@every_resource
def test_examples_pass_their_own_checks(resource: Resource) -> None:
    writable = {f.name: f.example for f in resource.fields if f.on_create}
    found = asked(resource, writable, creating=True)
    assert found.faults == []
    assert found.ignored == []
    for field in resource.fields:
        # A field that another one excludes has no example.
        if field.example is not None:
            assert jsonschema_rs.is_valid(dict(field.format.schema), field.example), field.name
        assert field.description.endswith(".")


@every_resource
def test_names_in_search_sorting_and_events_exist(resource: Resource) -> None:
    assert set(resource.search) | {resource.folded_sort} <= set(resource.named) | {""}
    assert len({s.name for s in resource.sorts}) == len(resource.sorts)
    assert len({f.name for f in resource.filters}) == len(resource.filters)
    reserved = {"page", "limit", "search", "sort", "cursor", "ids", "updatedSince"}
    assert not reserved & {f.name for f in resource.filters}


@every_resource
def test_every_reference_is_settled_when_its_target_is_deleted(resource: Resource) -> None:
    by_table = {r.table: r for r in RESOURCES}
    for field, reference in resource.references:
        for table in (reference.tables or {"": reference.table}).values():
            if not by_table[table].deletable:
                continue
            settled = [
                c for c in by_table[table].cascades
                if c.table == resource.table and c.column == field.column
            ]  # fmt: skip
            assert len(settled) == 1, (table, resource.table, field.column)
            expected = Drop if field.listed_in else Unset
            assert isinstance(settled[0], Remove if reference.owns else expected | Remove)


@every_resource
async def test_columns_and_tables_exist(db: Database, resource: Resource) -> None:
    async def unit(tx: Tx) -> None:
        await tx.one(f"select {', '.join(statements.written(resource))} from {resource.table}")
        for field in resource.fields:
            if field.listed_in:
                await tx.one(f"select owner_id, value, record_id from {field.listed_in}")
        for sort in resource.sorts:
            await tx.one(f"select {sort.column} as k from {resource.table}")

    await db.read(unit)
