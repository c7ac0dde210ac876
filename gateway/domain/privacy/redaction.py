"""Takes a person out of the texts of a record that names the person, by its declaration."""

from collections.abc import Mapping
from typing import Any

from msgspec import json

from gateway.domain.privacy.traces import Traces
from gateway.records.record import Record
from gateway.records.resource import Field, Resource
from gateway.records.values.strictjson import dumps


def redacted(traces: Traces, record: Record) -> dict[str, Any]:
    """Return the texts of a record that name the person, without it, by column.

    In what an owner wrote about a sale each product may share a word with a name.
    """
    changes: dict[str, Any] = {}
    for field in texts(record.resource):
        text = record[field.column]
        if text is not None and (bare := traces.redact(text, close=True)) != text:
            changes[field.column] = bare
            changes |= {beside.column: beside.of(bare) for beside in field.beside}
    for field in record.resource.fields:
        if _is_nested(field) and record[field.column] is not None:
            value = json.decode(record[field.column])
            if (bare_value := traces.redact_all(value, close=False)) != value:
                changes[field.column] = dumps(bare_value)
    return changes


def announced(record: Record, changes: Mapping[str, Any]) -> bool:
    """Return whether events of the record showed a text from which the person was taken."""
    shown = {name for listed in (record.resource.events or {}).values() for name in listed}
    return any(field.column in changes for field in texts(record.resource) if field.name in shown)


def size(record: Record) -> int:
    """Return the characters that a search of the record looks at."""
    fields = record.resource.fields
    searched = [*texts(record.resource), *filter(_is_nested, fields)]
    return sum(len(record[field.column] or "") for field in searched)


def texts(resource: Resource) -> list[Field]:
    """Return the fields with text that somebody writes."""
    return [
        field for field in resource.fields
        if field.format.schema.get("type") == "string" and not field.format.is_json
        and field.reference is None and field.format.show is None
        and not field.format.schema.keys() & {"enum", "const", "format"} and not field.made
        and not field.name.endswith("Id")
    ]  # fmt: skip


def _is_nested(field: Field) -> bool:
    """Return whether a field is stored as the JSON of a list or an object."""
    kind = field.format.schema.get("type")
    return field.reference is None and (field.format.is_json or kind in ("array", "object"))
