"""Finds the records that the fields of a record refer to, and their names for a page."""

from collections.abc import Iterable, Mapping, Sequence

from msgspec import json

from gateway.domain.catalogue import BY_PLURAL, BY_TABLE
from gateway.records import actions
from gateway.records.audit import Actor
from gateway.records.record import Record
from gateway.records.resource import Field, Resource
from outbox.database.transaction import Tx

MOST_NAMED = 200
"""Records of one resource whose names a page reads."""
Names = Mapping[str, str]
"""The names of records by id."""


async def names_of(
    tx: Tx,
    actor: Actor,
    records: Iterable[Record],
    fields: Sequence[Field],
    links: Mapping[str, str],
) -> Names:
    """Return the names of the records that these fields refer to."""
    ids_of: dict[Resource, set[str]] = {}
    for record in records:
        for field in fields:
            target = target_of(record, field, links)
            if target is not None:
                ids_of.setdefault(target, set()).update(ids_in(record, field))
    names: dict[str, str] = {}
    for target, ids in ids_of.items():
        if ids:
            names |= await named(tx, actor, target, sorted(ids)[:MOST_NAMED])
    return names


async def named(tx: Tx, actor: Actor, target: Resource, ids: Sequence[str]) -> dict[str, str]:
    """Return the names of records of one resource by id, without deleted ones."""
    page = await actions.some(tx, actor, target, ids)
    return {one.id: name_of(one) for one in page.records}


def name_of(record: Record) -> str:
    """Return the text that names a record."""
    heading = record.resource.heading
    return str(record.shown(heading) or "") if heading else record.id


def target_of(record: Record, field: Field, links: Mapping[str, str]) -> Resource | None:
    """Return the resource that a field of a record refers to, or None."""
    if field.name in links:
        return BY_PLURAL[links[field.name]]
    reference = field.reference
    if reference is None:
        return None
    table = reference.table
    if reference.by:
        kind = record[record.resource.named[reference.by].column]
        table = (reference.tables or {}).get(kind, "")
    return BY_TABLE.get(table)


def ids_in(record: Record, field: Field) -> list[str]:
    """Return the ids that a field of a record has."""
    value = record[field.column]
    if value is None:
        return []
    return list(json.decode(value)) if field.listed_in else [value]
