"""Generates JSON Schemas and examples from resources and from response structs.

It builds an example of a record like a real one: check, compute, view.

It is one module because each shape is made of the schema and the example of a record.
"""

import csv
import hashlib
from collections.abc import Mapping, Sequence
from functools import lru_cache
from io import StringIO
from typing import Any

import msgspec
from msgspec import Struct

from gateway.records.record import check, record_of
from gateway.records.resource import SYSTEM_COLUMNS, Field, Form, Remove, Resource
from gateway.records.values import csv_cells, dates
from gateway.records.values.schemas import ID, INSTANT, Schema, or_null
from gateway.rest.body import members_of
from gateway.rest.document.operations import Shape
from gateway.rest.document.schema_parts import (
    COMPONENT,
    named_parts,
    reference,
    sent,
    shown,
    title_of,
    with_text,
)
from gateway.rest.selections import includes

MOMENT = 1_795_271_400_000_000
NOW = dates.show(MOMENT)
"""The creation time of the examples."""


def example_id(noun: str) -> str:
    """Return an id in the form of a real one, always the same for a noun."""
    return f"019a9d1c2f00{hashlib.sha256(noun.encode()).hexdigest()[:12]}"


@lru_cache(maxsize=256)
def record(resource: Resource) -> Shape:
    """Return the shape of a record."""
    properties: dict[str, Any] = {"id": {**ID, "description": "Set by the server."}}
    required = ["id", "createdAt"]
    parts: dict[str, Schema] = {}
    for field in resource.fields:
        schema = with_text(shown(resource, field, parts), field.description)
        if field.always:
            schema = or_null(schema)
        if not field.on_create and not field.on_update:
            schema["readOnly"] = True
        properties[field.name] = schema
        if _is_always_there(field):
            required.append(field.name)
    for derived in resource.derived:
        properties[derived.name] = {
            **with_text(derived.schema, derived.description),
            "readOnly": True,
        }
        if derived.name not in required:
            required.append(derived.name)
    properties["createdAt"] = with_text(INSTANT, "Time of creation.")
    properties["updatedAt"] = with_text(
        INSTANT, "Time of the last change; absent before the first."
    )
    beside = included(resource)
    if beside is not None:
        properties["included"] = reference(beside.name)
        parts[beside.name] = beside.schema
    schema = {
        "type": "object",
        "description": resource.description,
        "properties": properties,
        "required": required,
    }
    return Shape(schema, _example(resource), title_of(resource), parts)


@lru_cache(maxsize=256)
def selected(resource: Resource) -> Shape:
    """Return the shape of a record, or with `fields` of the chosen members of it."""
    whole = record(resource)
    part = {
        **whole.schema,
        "description": f"With `fields`: the chosen members of the {resource.noun}, and `id`.",
        "required": ["id"],
    }
    name = f"{whole.name}Part"
    schema = {"anyOf": [reference(whole.name), reference(name)]}
    parts = {whole.name: whole.schema, **whole.parts, name: part}
    return Shape(schema, whole.example, "", parts)


def included(resource: Resource) -> Shape | None:
    """Return the member `included` of responses with a resource; None if it refers to nothing."""
    targets = {t for include in includes(resource).values() for t in include.targets.values()}
    if not targets:
        return None
    properties: dict[str, Any] = {
        target.plural: {"type": "array", "items": reference(title_of(target))}
        for target in sorted(targets, key=lambda target: target.plural)
    }
    properties["truncated"] = {
        "type": "boolean",
        "description": "true when the response refers to more records than it includes.",
    }
    schema = {
        "type": "object",
        "description": "With `include`: the records that the response refers to, each once.",
        "properties": properties,
    }
    return Shape(schema, None, f"{title_of(resource)}Included")


def written(record: Shape) -> Shape:
    """Return the response to a write: the record, or the id for a key without the scope `read`."""
    alone = {
        "type": "object",
        "description": "The response to a write by a key without the scope `read`: the id, if the "
        "record has one. The header ETag has its version.",
        "properties": {"id": ID},
        "additionalProperties": False,
    }
    schema = {"anyOf": [reference(record.name), reference("Written")]}
    parts = {record.name: record.schema, **record.parts, "Written": alone}
    return Shape(schema, record.example, "", parts)


@lru_cache(maxsize=256)
def new(form: Form) -> Shape:
    """Return the body of a create."""
    open_fields = [f for f in form.fields if f.on_create]
    parts: dict[str, Schema] = {}
    schema = {
        "type": "object",
        "properties": {f.name: sent(form, f, parts) for f in open_fields},
        "required": [f.name for f in open_fields if f.required],
    }
    # An account without records can send it: it names no record unless it must.
    named = (f for f in open_fields if f.example is not None and (f.required or not f.reference))
    example = {f.name: f.example for f in named}
    return Shape(schema, example, f"{title_of(form)}Create", parts)


@lru_cache(maxsize=256)
def changes(form: Form) -> Shape:
    """Return the body of an update, a merge patch."""
    open_fields = [f for f in form.fields if f.on_update]
    parts: dict[str, Schema] = {}
    schema = {"type": "object", "properties": {f.name: sent(form, f, parts) for f in open_fields}}
    example = {f.name: f.example for f in open_fields if f.reference is None}
    return Shape(schema, dict([*example.items()][:3]), f"{title_of(form)}Update", parts)


def some(form: Form, names: Sequence[str], title: str) -> Shape:
    """Return the body of a verb, called `title`: these fields, all optional."""
    fields = [form.named[name] for name in names]
    parts: dict[str, Schema] = {}
    schema = {"type": "object", "properties": {f.name: sent(form, f, parts) for f in fields}}
    example = {f.name: f.example for f in fields if f.example is not None}
    return Shape(schema, example, title, parts)


def page_of(item: Shape, *, selected: Shape | None = None, beside: Shape | None = None) -> Shape:
    """Return the envelope of a list; `beside` is what it includes.

    With `selected`, the form of the items with `fields`, the list has a cursor.
    """
    items, walks = reference(item.name) if selected is None else selected.schema, bool(selected)
    properties: dict[str, Any] = {
        "data": {"type": "array", "items": items},
        "total": {"type": "integer", "minimum": 0, "description": "Number of all matches."},
        "page": {"type": "integer", "minimum": 1},
        "limit": {"type": "integer", "minimum": 1, "description": "The page size."},
    }
    example = {"data": [item.example], "total": 1, "page": 1, "limit": 20}
    if walks:
        properties["nextCursor"] = {
            "type": "string",
            "description": "Send it as `cursor` for the next page; absent on the last page.",
        }
    if beside is not None:
        properties["included"] = reference(beside.name)
    schema = {
        "type": "object",
        "properties": properties,
        "required": ["data", "total", "page", "limit"],
    }
    name = f"{item.name}{'Page' if walks else 'List'}"
    parts = {} if selected is None else selected.parts
    return Shape(schema, example, name, {item.name: item.schema, **item.parts, **parts})


def list_of(item: Shape, name: str) -> Shape:
    """Return the shape `{"data": […]}` of a list without pages."""
    schema = {
        "type": "object",
        "properties": {
            "data": {"type": "array", "items": reference(item.name)},
            "truncated": {
                "type": "boolean",
                "description": "true when the list is cut because of its size; absent otherwise.",
            },
        },
        "required": ["data"],
    }
    return Shape(schema, {"data": [item.example]}, name, {item.name: item.schema, **item.parts})


def delete_message(resource: Resource) -> str:
    """Return the message of a delete, which names the records deleted with it."""
    tables = [
        cascade.table.replace("_", " ")
        for cascade in resource.cascades
        if isinstance(cascade, Remove)
    ]
    if not tables:
        return f"The {resource.noun} was deleted."
    return f"The {resource.noun} and its {' and '.join(tables)} were deleted."


def deleted(resource: Resource) -> Shape:
    """Return the response to a delete."""
    example = {"message": delete_message(resource), "id": example_id(resource.noun)}
    schema = {
        "type": "object",
        "properties": {"message": {"type": "string"}, "id": ID},
        "required": ["message", "id"],
    }
    return Shape(schema, example, "Deleted")


def csv_file(resource: Resource) -> str:
    """Return a short file: what a new record needs, and one or two columns beside it."""
    told = [f for f in resource.creatable.values() if f.example is not None]
    needed = [f for f in told if f.required or f.name == "items"]
    plain = (f for f in told if isinstance(f.example, str | int | float) and not f.reference)
    columns = needed + [f for f in plain if f not in needed][:2]
    line = [
        f.example if isinstance(f.example, str) else csv_cells.write(f.example) for f in columns
    ]
    text = StringIO()
    csv.writer(text).writerows(([f.name for f in columns], line))
    return text.getvalue()


def struct(example: Struct) -> Shape:
    """Return the shape of a response struct: schema from the type, example from an instance."""
    kind = type(example)
    [_], components = msgspec.json.schema_components([kind], ref_template=COMPONENT)
    parts: dict[str, Schema] = {}
    for name, schema in components.items():
        named_parts(name, schema, parts)
    body = msgspec.json.decode(msgspec.json.encode(example))
    return Shape(parts[kind.__name__], body, kind.__name__, parts)


def _is_always_there(field: Field) -> bool:
    return field.always or field.made or field.required or field.default is not None


def _example(resource: Resource) -> Mapping[str, Any]:
    """Return the record that the example of a create produces."""
    shown = {f.name: f.shown_example for f in resource.fields if f.shown_example is not None}
    sent = {f.name: f.example for f in resource.fields if f.on_create and f.name not in shown}
    values = check(resource, sent, from_json=True, creating=True).values
    for field in resource.fields:
        if field.made and values.get(field.column) is None:
            values[field.column] = field.format.accept(field.example)
    system = (example_id(resource.noun), example_id("user"), 1, MOMENT, None)
    stored = [*system, *(values.get(c) for c in resource.columns[len(SYSTEM_COLUMNS) :])]
    members = {**members_of(record_of(resource, stored, MOMENT, "UTC")), **shown}
    order = ("id", *resource.named, *(d.name for d in resource.derived), "createdAt")
    return {name: members[name] for name in dict.fromkeys(order) if name in members}


_RESULT = {
    "type": "object",
    "description": "What became of one item.",
    "properties": {
        "index": {"type": "integer", "minimum": 0},
        "status": {"type": "integer", "description": "201, or that of the error."},
        "id": ID,
        "error": {"type": "string"},
        "code": {"type": "string"},
        "details": {"type": "array", "items": reference("ErrorDetail")},
    },
    "required": ["index", "status"],
}
RESULTS = Shape(
    {
        "type": "object",
        "properties": {
            "results": {
                "type": "array",
                "description": "In the order of the items.",
                "items": reference("BatchResult"),
            },
        },
        "required": ["results"],
    },
    {
        "results": [
            {"index": 0, "status": 201, "id": example_id("contact")},
            {
                "index": 1, "status": 400, "error": "name is required.", "code": "validation_error",
                "details": [
                    {"field": "name", "code": "required", "message": "name is required."},
                ],
            },
        ],
    },
    "BatchResults",
    {"BatchResult": _RESULT},
)  # fmt: skip
