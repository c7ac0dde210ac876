"""Reads the schemas of tools' arguments and results from the OpenAPI document."""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from gateway.domain.catalogue import BY_PLURAL, CATALOGUE
from gateway.rest.document.openapi import document
from gateway.rest.document.operations import path_of
from gateway.rest.routes import ROUTES

Schema = Mapping[str, Any]
LONGEST_PATTERN = 60
"""Longer patterns are left out for models: descriptions say the same in words."""
_PREFIX = "#/components/schemas/"
PAGING = ("page", "limit", "cursor", "sort", "updatedSince", "fields", "include", "search")
"""Parameters of lists that are arguments of tools, and no filters."""
HIDDEN = frozenset({"erase"})
"""Verbs that no tool has: an erasure is for people."""
TYPES: tuple[str, ...] = tuple(BY_PLURAL)
TEXT: Schema = {"type": "string"}
OBJECT: Schema = {"type": "object"}
ID: Schema = {"type": "string", "description": "24 hexadecimal digits."}
KEY: Schema = {
    "type": "string",
    "description": "Idempotency-Key: the same call with the same key is done once in 24 hours.",
}


def one_of(*allowed: str) -> Schema:
    """Return the schema of a closed list."""
    return {"type": "string", "enum": list(allowed)}


@cache
def openapi() -> Mapping[str, Any]:
    """Return the OpenAPI document."""
    return document(ROUTES)


@cache
def types(method: str, *, one: bool = False) -> tuple[str, ...]:
    """Return the resources with this method on the collection, or on one record."""
    ending = "/{id}" if one else ""
    paths = {path for its, path, _ in ROUTES if its == method}
    return tuple(e.resource.plural for e in CATALOGUE if path_of(e.resource) + ending in paths)


@cache
def searchable() -> tuple[str, ...]:
    """Return the resources that have a search."""
    return tuple(plural for plural, resource in BY_PLURAL.items() if resource.search)


@cache
def verbs() -> Mapping[str, tuple[str, ...]]:
    """Return the verbs of records by resource, such as `invoices`: `pay`, `cancel`."""
    found: dict[str, tuple[str, ...]] = {}
    for method, path, _ in ROUTES:
        _, _, plural, *rest = path.split("/")
        of_one = method == "POST" and plural in BY_PLURAL and rest[:1] == ["{id}"]
        if of_one and len(rest) == 2 and rest[1] not in HIDDEN and not _takes_a_file(path):
            found[plural] = (*found.get(plural, ()), rest[1])
    return found


def _takes_a_file(path: str) -> bool:
    """Return whether a POST takes something else than JSON, which no tool can send."""
    body = openapi()["paths"].get(path, {}).get("post", {}).get("requestBody")
    return body is not None and "application/json" not in body["content"]


def filters_of(plural: str) -> dict[str, Schema]:
    """Return the schemas of a list's filters by name."""
    entry = openapi()["paths"][f"/api/{plural}"]["get"]
    return {
        p["name"]: {**inlined(p["schema"]), "description": p["description"]}
        for p in entry["parameters"]
        if p["in"] == "query" and p["name"] not in PAGING
    }


def named(name: str) -> Schema:
    """Return a component of the document, such as Delivery."""
    return inlined({"$ref": f"{_PREFIX}{name}"})


def body_of(method: str, path: str) -> Schema | None:
    """Return the schema of an operation's body, or None without one."""
    entry = openapi()["paths"].get(path, {}).get(method.lower(), {})
    body = entry.get("requestBody")
    return None if body is None else inlined(body["content"]["application/json"]["schema"])


def record_of(plural: str) -> Schema:
    """Return the schema of a record."""
    response = openapi()["paths"][f"/api/{plural}/{{id}}"]["get"]["responses"]["200"]
    schema = response["content"]["application/json"]["schema"]
    # The other one has a selection of the members.
    return inlined(schema["anyOf"][0] if "anyOf" in schema else schema)


def parameter(path: str, name: str) -> Schema:
    """Return the schema of a parameter of GET of a path."""
    for one in openapi()["paths"][path]["get"]["parameters"]:
        if one["name"] == name:
            return {**inlined(one["schema"]), "description": one["description"]}
    raise KeyError(name)


def inlined(schema: Schema) -> dict[str, Any]:
    """Return a schema of the document without references and without long patterns."""
    if "$ref" in schema:
        named = openapi()["components"]["schemas"][schema["$ref"].removeprefix(_PREFIX)]
        return {**inlined(named), **{k: v for k, v in schema.items() if k != "$ref"}}
    return dict(_members(schema))


def _members(schema: Schema) -> Iterator[tuple[str, Any]]:
    for key, value in schema.items():
        if key == "pattern" and len(value) > LONGEST_PATTERN:
            continue
        if key == "properties":
            # Records within records would never end; no tool shows them.
            yield key, {n: inlined(its) for n, its in value.items() if n != "included"}
        elif key in ("items", "additionalProperties") and isinstance(value, Mapping):
            yield key, inlined(value)
        elif key in ("anyOf", "allOf", "oneOf"):
            yield key, [inlined(item) for item in value]
        else:
            yield key, value
