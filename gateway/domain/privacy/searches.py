"""Searches records for a person, outside the transactions that change them.

A text is read once and searched once, apart from the event loop; what is found holds for one
version of the record.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from msgspec import json

from gateway.domain.catalogue import BY_TABLE
from gateway.domain.contacts.person_erasures import Erasure
from gateway.domain.privacy import knowledge
from gateway.domain.privacy.apart import apart
from gateway.domain.privacy.traces import Traces
from gateway.domain.sales.orders import ORDERS
from gateway.records import store
from gateway.records.record import Record
from gateway.records.resource import Field, Resource
from gateway.records.values.strictjson import dumps
from outbox.database.transaction import DUTIES, Database
from outbox.queue.upkeep import event_texts

Key = tuple[str, str]
"""The table and the id of a record."""
BYTES = 262_144
"""Bytes of texts that are searched for one unit, unless a single record has more."""
EVENTS = 50
"""Events of a record, and responses to them, that are searched for the person."""


@dataclass(frozen=True, slots=True)
class Found:
    """What a search found: texts without the person, by column, and if its events name it."""

    version: int
    changes: Mapping[str, Any]
    named: bool


async def search(
    db: Database, erasure: Erasure, keys: Sequence[Key], most: int | None = None
) -> dict[Key, Found]:
    """Search records for the person of an erasure, as far as BYTES go.

    With `most`, those that would take more are left out; otherwise the last one may.
    """
    assert erasure.person is not None
    person, changed = erasure.person, dict[Key, Found]()
    left = erasure.part(BYTES) if most is None else most
    traces = await apart(Traces, person)
    for key in keys:
        if left <= 0:
            break
        resource = BY_TABLE[key[0]]
        row = await db.read(store.fetch, resource, key[1])
        if row is None:
            continue
        record = Record(resource, row)
        left -= _size(record)
        if most is not None and left < 0:
            break
        if resource is ORDERS:
            wider = knowledge.more(person, names=[record["name"]], phones=[record["phone"]])
            if wider is not person:
                person, traces = wider, await apart(Traces, wider)
        changes = await apart(_redacted, traces, record)
        named: bool | None = _announced(record, changes)
        if resource.events and resource is not ORDERS and not named:
            named, read = await _named(db, traces, record, None if most is None else left)
            left -= read
        if named is not None:
            changed[key] = Found(record.version, changes, named)
    return changed


async def _named(
    db: Database, traces: Traces, record: Record, most: int | None
) -> tuple[bool | None, int]:
    """Return whether events of a record, or responses to them, name the person; and their size.

    None: they have more than `most`.
    """
    place: event_texts.Place | None = event_texts.Place(left=EVENTS)
    read = 0
    size = BYTES if most is None else min(most, BYTES)
    while place is not None:
        page = await db.scan(DUTIES, event_texts.page, record.owner_id, record.id, place, size)
        place = page.after
        read += page.size
        if most is not None and read > most:
            return None, read
        if await apart(_any_within, traces, page):
            return True, read
    return False, read


def _any_within(traces: Traces, page: event_texts.TextPage) -> bool:
    return any(traces.within_coded(text, close=True) for text in page.texts())


def _redacted(traces: Traces, record: Record) -> dict[str, Any]:
    """Return the texts of a record that name the person, without it, by column.

    In what an owner wrote about a sale each product may share a word with a name.
    """
    changes: dict[str, Any] = {}
    for field in _texts(record.resource):
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


def _announced(record: Record, changes: Mapping[str, Any]) -> bool:
    """Return whether events of the record showed a text from which the person was taken."""
    shown = {name for listed in (record.resource.events or {}).values() for name in listed}
    return any(field.column in changes for field in _texts(record.resource) if field.name in shown)


def _size(record: Record) -> int:
    """Return the characters that a search of the record looks at."""
    fields = record.resource.fields
    searched = [*_texts(record.resource), *filter(_is_nested, fields)]
    return sum(len(record[field.column] or "") for field in searched)


def _texts(resource: Resource) -> list[Field]:
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
