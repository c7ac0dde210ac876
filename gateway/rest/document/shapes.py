"""JSON Schemas and examples made of declarations: resources, and the structs that answers are.

An example of a record goes the way of a real one: check, compute, view.
"""

import hashlib
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import msgspec
from msgspec import Struct

from gateway.records.draft import check
from gateway.records.record import record_of
from gateway.records.resource import SYSTEM_COLUMNS, Field, Form, Remove, Resource
from gateway.records.values import dates
from gateway.records.values.format import of_json
from gateway.records.values.schemas import ID, INSTANT, Schema, or_null
from gateway.rest.document.operations import Shape
from gateway.rest.wire import view

MOMENT = 1_795_271_400_000_000
NOW = dates.show(MOMENT)
"""The time at which the examples are made."""
COMPONENT = "#/components/schemas/{name}"


def title_of(form: Form) -> str:
    """The name of a record's component."""
    return "".join(word.capitalize() for word in form.noun.split())


def example_id(noun: str) -> str:
    """The same for each mention of a noun, and of the form of a real one."""
    return f"019a9d1c2f00{hashlib.sha256(noun.encode()).hexdigest()[:12]}"


def reference(name: str) -> dict[str, str]:
    """A schema that is the component `name`."""
    return {"$ref": COMPONENT.format(name=name)}


@lru_cache(maxsize=256)
def record(resource: Resource) -> Shape:
    """A record as its owner sees it."""
    properties: dict[str, Any] = {"id": {**ID, "description": "Made when it is created."}}
    required = ["id", "createdAt"]
    for field in resource.fields:
        schema = _said(field.format.shown or field.format.schema, field.description)
        if field.always:
            schema = or_null(schema)
        if not field.on_create and not field.on_update:
            schema["readOnly"] = True
        properties[field.name] = schema
        if _is_always_there(field):
            required.append(field.name)
    for derived in resource.derived:
        properties[derived.name] = {**_said(derived.schema, derived.description), "readOnly": True}
        if derived.name not in required:
            required.append(derived.name)
    properties["createdAt"] = _said(INSTANT, "When it was created.")
    properties["updatedAt"] = _said(INSTANT, "When it was last changed, if it ever was.")
    schema = {
        "type": "object",
        "description": resource.description,
        "properties": properties,
        "required": required,
    }
    return Shape(schema, _example(resource), title_of(resource))


def written(made: Shape) -> Shape:
    """What a write answers: the record, or what a caller gets who may not read it."""
    alone = {
        "type": "object",
        "description": "What a write answers to a key without the scope `read`: the id, where the "
        "record has one. The header ETag holds its version.",
        "properties": {"id": ID},
        "additionalProperties": False,
    }
    schema = {"anyOf": [reference(made.name), reference("Written")]}
    parts = {made.name: made.schema, **made.parts, "Written": alone}
    return Shape(schema, made.example, "", parts)


@lru_cache(maxsize=256)
def new(form: Form) -> Shape:
    """The body of a create."""
    open_fields = [f for f in form.fields if f.on_create]
    schema = {
        "type": "object",
        "properties": {f.name: _sent(f) for f in open_fields},
        "required": [f.name for f in open_fields if f.required],
    }
    return Shape(schema, {f.name: f.example for f in open_fields}, f"{title_of(form)}Create")


@lru_cache(maxsize=256)
def changes(form: Form) -> Shape:
    """The body of an update: whatever is sent is written over the record."""
    open_fields = [f for f in form.fields if f.on_update]
    schema = {"type": "object", "properties": {f.name: _sent(f) for f in open_fields}}
    example = {f.name: f.example for f in open_fields if f.reference is None}
    return Shape(schema, dict([*example.items()][:3]), f"{title_of(form)}Update")


def some(form: Form, names: Sequence[str]) -> Shape:
    """A body of these fields alone, none of them required: that of a verb."""
    fields = [form.named[name] for name in names]
    schema = {"type": "object", "properties": {f.name: _sent(f) for f in fields}}
    return Shape(schema, {f.name: f.example for f in fields})


def page_of(item: Shape, *, walks: bool = True) -> Shape:
    """The envelope of a list; `walks` when a cursor can lead on."""
    properties: dict[str, Any] = {
        "data": {"type": "array", "items": reference(item.name)},
        "total": {"type": "integer", "minimum": 0, "description": "How many match in all."},
        "page": {"type": "integer", "minimum": 1},
        "limit": {"type": "integer", "minimum": 1, "description": "The page size that was used."},
    }
    example = {"data": [item.example], "total": 1, "page": 1, "limit": 20}
    if walks:
        properties["nextCursor"] = {
            "type": "string",
            "description": "Send it as `cursor` for the next page; absent on the last one.",
        }
    schema = {
        "type": "object",
        "properties": properties,
        "required": ["data", "total", "page", "limit"],
    }
    name = f"{item.name}{'Page' if walks else 'List'}"
    return Shape(schema, example, name, {item.name: item.schema, **item.parts})


def list_of(item: Shape, name: str) -> Shape:
    """`{"data": […]}`, the whole of a list, unless it is truncated."""
    schema = {
        "type": "object",
        "properties": {
            "data": {"type": "array", "items": reference(item.name)},
            "truncated": {
                "const": True,
                "description": "Only where the list ends before its end, for its size.",
            },
        },
        "required": ["data"],
    }
    return Shape(schema, {"data": [item.example]}, name, {item.name: item.schema, **item.parts})


def said_of_delete(resource: Resource) -> str:
    """What a delete tells, with what went along."""
    tables = [cascade.table for cascade in resource.cascades if isinstance(cascade, Remove)]
    if not tables:
        return f"The {resource.noun} was deleted."
    return f"The {resource.noun} and its {' and '.join(tables)} were deleted."


def deleted(resource: Resource) -> Shape:
    """What a delete answers."""
    example = {"message": said_of_delete(resource), "id": example_id(resource.noun)}
    schema = {
        "type": "object",
        "properties": {"message": {"type": "string"}, "id": ID},
        "required": ["message", "id"],
    }
    return Shape(schema, example, "Deleted")


def struct(example: Struct) -> Shape:
    """An answer that is a struct: its schema comes from the type, its example from an instance."""
    kind = type(example)
    [_], parts = msgspec.json.schema_components([kind], ref_template=COMPONENT)
    body = msgspec.json.decode(msgspec.json.encode(example))
    return Shape(parts[kind.__name__], body, kind.__name__, parts)


def _sent(field: Field) -> dict[str, Any]:
    schema = _said(field.format.schema, field.description)
    return schema if field.required or not field.nullable else or_null(schema)


def _said(schema: Schema, description: str) -> dict[str, Any]:
    return {**schema, "description": description}


def _is_always_there(field: Field) -> bool:
    return field.always or field.made or field.required or field.default is not None


def _example(resource: Resource) -> Mapping[str, Any]:
    """The record that the example of a create makes."""
    told = {f.name: f.shown_example for f in resource.fields if f.shown_example is not None}
    sent = {f.name: f.example for f in resource.fields if f.on_create and f.name not in told}
    values = check(resource, sent, read=of_json, creating=True).values
    for field in resource.fields:
        if field.made and values.get(field.column) is None:
            values[field.column] = field.format.accept(field.example, of_json)
    system = (example_id(resource.noun), example_id("user"), 1, MOMENT, None)
    stored = [*system, *(values.get(c) for c in resource.columns[len(SYSTEM_COLUMNS) :])]
    members = {**view(record_of(resource, stored, MOMENT, "UTC")).members, **told}
    order = ("id", *resource.named, *(d.name for d in resource.derived), "createdAt")
    return {name: members[name] for name in dict.fromkeys(order) if name in members}
