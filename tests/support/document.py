"""The OpenAPI document as tests use it: its entries, what they refer to, and what does not fit."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import jsonschema_rs

from gateway.rest.document import openapi
from gateway.rest.routes import ROUTES

DOCUMENT: dict[str, Any] = json.loads(json.dumps(openapi.document(ROUTES)))


def entries() -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Method, path and entry of each operation."""
    for path, item in DOCUMENT["paths"].items():
        for method, entry in item.items():
            yield method, path, entry


def resolved(node: Any) -> Any:
    """What a reference into the document stands for."""
    while isinstance(node, dict) and "$ref" in node:
        target: Any = DOCUMENT
        for step in node["$ref"].removeprefix("#/").split("/"):
            target = target[step]
        node = target
    return node


def answer_faults(method: str, path: str, status: int, body: Any) -> list[str]:
    """Why an answer is not the documented one; a status that is not documented is one reason."""
    answers = DOCUMENT["paths"][path][method.lower()]["responses"]
    if str(status) not in answers:
        return [f"{status} is not documented"]
    return faults(resolved(answers[str(status)])["content"]["application/json"]["schema"], body)


def faults(schema: Any, value: Any) -> list[str]:
    """Why `value` does not fit; nothing that the schema leaves unnamed may be in it."""
    whole = {"$ref": "#/whole", "whole": _strict(schema), "components": COMPONENTS}
    validator = jsonschema_rs.validator_for(whole, validate_formats=True)
    return [f"{list(e.instance_path)}: {e.message}" for e in validator.iter_errors(value)]


def _strict(node: Any) -> Any:
    """The same schemas, in which an object has the members named and no other."""
    if isinstance(node, list):
        return [_strict(item) for item in node]
    if not isinstance(node, dict):
        return node
    found = {name: _strict(member) for name, member in node.items() if name != "example"}
    if isinstance(node.get("properties"), dict) and "type" in node:
        found.setdefault("additionalProperties", False)
    return found


COMPONENTS: dict[str, Any] = _strict(DOCUMENT["components"])
"""What every schema may refer to; read once, since it is most of the document."""
