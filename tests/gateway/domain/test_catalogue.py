"""Tests the catalogue against the contract, and the declarations against each other."""

import importlib
import json
import pkgutil
from pathlib import Path
from typing import Any

import pytest

import gateway
from gateway.domain.catalogue import (
    AVAILABLE_NAMES,
    CATALOGUE,
    EVENT_NAMES,
    EVENTS,
    FURTHER_NAMES,
    RESOURCES,
)
from gateway.records.resource import Drop, Remove, Resource, Unset
from gateway.rest.document.operations import path_of
from gateway.rest.routes import ROUTES

CONTRACT: dict[str, Any] = json.loads(
    (Path(__file__).parents[1] / "rest" / "facts" / "contract.json").read_text("utf-8")
)
every_resource = pytest.mark.parametrize("resource", RESOURCES, ids=lambda r: r.plural)


def test_names_order_and_fields_of_events() -> None:
    documented = [(e["name"], tuple(e["data"])) for e in CONTRACT["events"]]
    assert [(name, EVENTS[name]) for name in AVAILABLE_NAMES] == documented
    assert (*AVAILABLE_NAMES, *FURTHER_NAMES) == EVENT_NAMES == tuple(EVENTS)


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
