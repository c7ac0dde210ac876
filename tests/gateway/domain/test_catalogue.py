"""Tests the catalogue against the contract, and the declarations against each other."""

import importlib
import pkgutil

import gateway
from gateway.domain.catalogue import CATALOGUE, RESOURCES
from gateway.records.resource import Resource
from gateway.rest.document.operations import path_of
from gateway.rest.routes import ROUTES


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
