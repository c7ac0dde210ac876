"""Generates the schemas of fields, and gives their parts names of their own.

Parts are closed lists of texts, and objects. Generators of clients call one without a name by its
place, so that each use of it would be a type of its own.
"""

import re
from collections.abc import Mapping
from typing import Any

from gateway.records.resource import Field, Form
from gateway.records.values.schemas import Schema, or_null

COMPONENT = "#/components/schemas/{name}"


def title_of(form: Form) -> str:
    """Return the name of a record's component."""
    return "".join(word.capitalize() for word in re.split(r"\W", form.noun))


def reference(name: str) -> dict[str, str]:
    """Return a schema that refers to the component `name`."""
    return {"$ref": COMPONENT.format(name=name)}


def sent(form: Form, field: Field, parts: dict[str, Schema]) -> dict[str, Any]:
    """Return the schema of a field in requests; what it has parts of goes into `parts`."""
    schema = with_text(_accepted(form, field, parts), field.description)
    return schema if field.required or not field.nullable else or_null(schema)


def shown(form: Form, field: Field, parts: dict[str, Schema]) -> Schema:
    """Return the schema of a field in responses; what it has parts of goes into `parts`."""
    return named_parts(_part(form, field), field.format.shown or field.format.schema, parts)


def _accepted(form: Form, field: Field, parts: dict[str, Schema]) -> Schema:
    """Return the schema of a field in requests; equal parts are those of responses."""
    name, told, accepted = _part(form, field), dict[str, Schema](), dict[str, Schema]()
    shown(form, field, told)
    schema = named_parts(name, field.format.schema, accepted)
    if any(told.get(part, its) != its for part, its in accepted.items()):
        return named_parts(f"{name}Input", field.format.schema, parts)
    parts.update(accepted)
    return schema


def _part(form: Form, field: Field) -> str:
    return f"{title_of(form)}{_capital(field.name)}"


def named_parts(name: str, schema: Schema, parts: dict[str, Schema]) -> Schema:
    """Return `schema` with references to its parts, which are put into `parts` by name."""
    if "enum" in schema or schema.get("type") == "object":
        members = {
            member: named_parts(f"{name}{_capital(member)}", its, parts)
            for member, its in schema.get("properties", {}).items()
        }
        parts[name] = {**schema, "properties": members} if members else schema
        return reference(name)
    if isinstance(schema.get("items"), Mapping):
        ending = "Input" * name.endswith("Input")
        item = name.removesuffix(ending).removesuffix("s") + ending
        return {**schema, "items": named_parts(item, schema["items"], parts)}
    return schema


def _capital(name: str) -> str:
    return name[:1].upper() + name[1:]


def reference_to(form: Form, field: Field) -> Schema:
    """Return the schema of a field's values as the component of its record names them."""
    return shown(form, field, {})


def with_text(schema: Schema, description: str) -> dict[str, Any]:
    """Return `schema` with a description."""
    return {**schema, "description": description}
