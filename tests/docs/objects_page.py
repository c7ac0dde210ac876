"""Writes docs/reference/objects.md: the fields of each record, from the declarations."""

from collections.abc import Iterator, Mapping
from typing import Any

from gateway.domain.catalogue import RESOURCES
from gateway.records.resource import Field, Resource
from gateway.records.values.schemas import ID, INSTANT
from gateway.rest.document import shapes


def lines() -> Iterator[str]:
    """Yield the generated part of the page."""
    for resource in RESOURCES:
        yield f"## {resource.noun}\n\n{resource.description}\n"
        yield "| field | type | sent | meaning |\n| --- | --- | --- | --- |"
        yield "\n".join(_rows(resource)) + "\n"


def _rows(resource: Resource) -> Iterator[str]:
    shape = shapes.record(resource)
    for name, schema in shape.schema["properties"].items():
        if name == "included":
            continue
        field = resource.named.get(name)
        text = schema.get("description", "")
        yield from _row(name, schema, text, "–" if field is None else _sent(field), shape.parts)


def _row(
    name: str, schema: Mapping[str, Any], text: str, sent: str, parts: Mapping[str, Any]
) -> Iterator[str]:
    """Yield the row of a field, and those of its members."""
    text = text.replace("|", "\\|")
    yield f"| `{name}` | {_type(schema, parts)} | {sent} | {text} |"
    inner = _resolved(schema, parts)
    if inner.get("type") == "array":
        name, inner = f"{name}[]", _resolved(inner["items"], parts)
    for member, its in inner.get("properties", {}).items():
        yield from _row(f"{name}.{member}", its, its.get("description", ""), "–", parts)


def _sent(field: Field) -> str:
    create = "create*" if field.required else "create"
    return ", ".join([create] * field.on_create + ["change"] * field.on_update) or "–"


def _type(schema: Mapping[str, Any], parts: Mapping[str, Any]) -> str:
    its = _resolved(schema, parts)
    if "enum" in its:
        return " ".join(f"`{value}`" for value in its["enum"])
    if its.get("pattern") == ID["pattern"]:
        return "id"
    if its.get("format") == INSTANT["format"]:
        return "date-time"
    kind = its.get("type", "any")
    if kind == "array":
        return f"array of {_type(its['items'], parts)}"
    return kind if isinstance(kind, str) else " or ".join(kind)


def _resolved(schema: Mapping[str, Any], parts: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what a reference names; of null or something, the latter."""
    while True:
        if "$ref" in schema:
            schema = parts[schema["$ref"].rpartition("/")[2]]
        elif "anyOf" in schema and "type" not in schema:
            schema = schema["anyOf"][0]
        else:
            return schema
