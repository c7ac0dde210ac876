"""The OpenAPI document for tests: its entries, their references, and checks against them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from typing import Any

import jsonschema_rs

from gateway.rest.document import openapi
from gateway.rest.errors import STATUS
from gateway.rest.routes import ROUTES

DOCUMENT: dict[str, Any] = json.loads(json.dumps(openapi.document(ROUTES)))


def entries() -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield method, path and entry of each operation."""
    for path, item in DOCUMENT["paths"].items():
        for method, entry in item.items():
            yield method, path, entry


def resolved(node: Any) -> Any:
    """Return the target of a reference into the document."""
    while isinstance(node, dict) and "$ref" in node:
        target: Any = DOCUMENT
        for step in node["$ref"].removeprefix("#/").split("/"):
            target = target[step]
        node = target
    return node


def answer_faults(method: str, path: str, status: int, body: Any) -> list[str]:
    """Return why a response differs from the document; an undocumented status is one reason."""
    answers = DOCUMENT["paths"][path][method.lower()]["responses"]
    if str(status) not in answers:
        return [f"{status} is not documented"]
    found = faults(resolved(answers[str(status)])["content"]["application/json"]["schema"], body)
    if status >= 400 and STATUS[body["code"]] != status:
        found.append(f"{body['code']} is no code of {status}")
    return found


def faults(schema: Any, value: Any) -> list[str]:
    """Return why `value` does not match; it may contain only members named in the schema."""
    errors = _validator(json.dumps(schema)).iter_errors(value)
    return [f"{list(e.instance_path)}: {e.message}" for e in errors]


@cache
def _validator(schema: str) -> Any:
    """Return the validator of a schema: to make one takes as long as ten requests."""
    whole = {"$ref": "#/whole", "whole": _strict(json.loads(schema)), "components": COMPONENTS}
    return jsonschema_rs.validator_for(whole, validate_formats=True)


EXAMPLES = {"example", "examples"}


def _strict(node: Any) -> Any:
    """Return the schemas with objects limited to their named members."""
    if isinstance(node, list):
        return [_strict(item) for item in node]
    if not isinstance(node, dict):
        return node
    found = {name: _strict(member) for name, member in node.items() if name not in EXAMPLES}
    if isinstance(node.get("properties"), dict) and "type" in node:
        found.setdefault("additionalProperties", False)
    return found


COMPONENTS: dict[str, Any] = _strict(DOCUMENT["components"])
"""The components for references; read once, because they are most of the document."""
