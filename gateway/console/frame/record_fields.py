"""Makes what a page shows of a record from its declaration."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from gateway.console.frame.inputs import kind_of, label_of, plain
from gateway.domain.catalogue import RESOURCES
from gateway.records import actions
from gateway.records.access import Actor
from gateway.records.record import Record
from gateway.records.resource import Field, Resource
from gateway.records.values.schemas import INSTANT
from gateway.texts import Texts
from outbox.database.transaction import Tx

Kind = Literal[
    "text", "code", "badge", "box", "money", "time", "chips", "pairs", "table", "record", "none"
]
HEADINGS = ("title", "name", "number")
"""The fields that can name a record, in the order in which they are tried."""
BY_TABLE = {resource.table: resource for resource in RESOURCES}
Names = Mapping[str, str]
"""The names of records by id."""


@dataclass(frozen=True, slots=True)
class Fact:
    """A value with its label. `columns` are the labels of a table."""

    name: str
    label: str
    kind: Kind
    value: Any
    columns: Sequence[str] = ()
    where: str = ""
    """The plural of the resource that the value is a record of."""


def fact(texts: Texts, record: Record, name: str, names: Names) -> Fact:
    """Return what to show of one field; `names` are those of the records that it refers to."""
    label = label_of(texts, name)
    if name in ("createdAt", "updatedAt"):
        column = "created_at" if name == "createdAt" else "updated_at"
        return Fact(name, label, "time", record[column])
    field = record.resource.named[name]
    stored = record[field.column]
    if stored is None:
        return Fact(name, label, "none", None)
    if field.reference is not None:
        plural = BY_TABLE[field.reference.table].plural
        shown = names.get(stored)
        return Fact(name, label, "record" if shown else "code", (stored, shown), where=plural)
    schema = field.format.shown or field.format.schema
    if schema is INSTANT:
        return Fact(name, label, "time", stored)
    if name == "status":
        return Fact(name, label, "badge", stored)
    kind, value, columns = _shown(texts, schema, record.shown(name))
    return Fact(name, label, kind, value, columns)


def facts(texts: Texts, record: Record, names: Names) -> list[Fact]:
    """Return what to show of a whole record, without what is unset."""
    facts = [fact(texts, record, field.name, names) for field in record.resource.fields]
    facts += [fact(texts, record, name, names) for name in ("createdAt", "updatedAt")]
    facts += [
        Fact(
            derived.name, label_of(texts, derived.name), "code", (record.shown(derived.name), None)
        )
        for derived in record.resource.derived
    ]
    facts.append(Fact("id", "Id", "code", (record.id, None)))
    return [one for one in facts if one.value is not None and one.value != []]


async def names_of(
    tx: Tx, actor: Actor, records: Iterable[Record], fields: Sequence[Field]
) -> Names:
    """Return the names of the records that these fields refer to."""
    ids_of: dict[Resource, set[str]] = {}
    for record in records:
        for field in fields:
            if field.reference is not None and record[field.column] is not None:
                target = BY_TABLE[field.reference.table]
                ids_of.setdefault(target, set()).add(record[field.column])
    names: dict[str, str] = {}
    for target, ids in ids_of.items():
        heading = next((name for name in HEADINGS if name in target.named), None)
        if heading is not None:
            page = await actions.some(tx, actor, target, sorted(ids))
            names |= {one.id: one[target.named[heading].column] for one in page.records}
    return names


def _shown(texts: Texts, schema: Mapping[str, Any], value: Any) -> tuple[Kind, Any, Sequence[str]]:
    """Return the kind, the value and the columns for a value in its JSON form."""
    schema = plain(schema)
    kind = kind_of(schema)
    if kind == "rows":
        members = schema["items"]["properties"]
        # An id means nothing to a reader, and a row has a description beside it.
        used = [
            name
            for name in members
            if not name.endswith(("id", "Id")) and any(name in row for row in value)
        ]
        rows = [[_cell(texts, members[name], row.get(name)) for name in used] for row in value]
        return "table", rows, [label_of(texts, name) for name in used]
    if kind in ("lines", "several"):
        return "chips", value, ()
    if schema.get("type") == "object":
        members = schema["properties"]
        pairs = [
            (label_of(texts, name), _cell(texts, members[name], inner))
            for name, inner in value.items()
        ]
        return "pairs", pairs, ()
    if kind == "box" or kind == "money":
        return kind, value, ()
    return "text", str(value), ()


def _cell(texts: Texts, schema: Mapping[str, Any], value: Any) -> tuple[Kind, Any]:
    if value is None:
        return "none", None
    kind, shown, _ = _shown(texts, schema, value)
    return kind, shown
