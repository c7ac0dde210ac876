"""Records of every resource, made from the examples of its declaration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gateway.domain.catalogue import RESOURCES
from gateway.records import store
from gateway.records.record import ID, check
from gateway.records.resource import Resource
from outbox.database.transaction import Database, Tx


async def stock(
    db: Database, owner_id: str, count: int, first: int = 0, **values: str
) -> dict[str, str]:
    """Insert `count` records of each resource, without events; return the last id by table.

    `first` makes the values different that are unique in a store or the installation; `values`
    replace those of columns where a resource has these.
    """
    last: dict[str, str] = {}
    for resource in RESOURCES:
        numbers = range(first, first + count)
        last[resource.table] = await db.write(_some, resource, owner_id, numbers, last, values)
    return last


async def _some(
    tx: Tx,
    resource: Resource,
    owner_id: str,
    numbers: range,
    known: Mapping[str, str],
    given: Mapping[str, str],
) -> str:
    """Return the id of the last record; `known` are ids by table that references can name."""
    values = whole(resource)
    values |= {column: value for column, value in given.items() if column in values}
    for field, reference in resource.references:
        if reference.table in known and not field.listed_in:
            values[field.column] = known[reference.table]
    # Their columns have a unique index or a claim in another table.
    distinct = [f.column for f in resource.fields if f.unique or f.name == "number"]
    last = ""
    for number in numbers:
        own = {column: f"{values[column]}-{number}" for column in distinct}
        last = (await store.insert(tx, resource, owner_id, values | own))[ID]
    return last


def whole(resource: Resource) -> dict[str, Any]:
    """Return the values by column of a record with every field that a client can see."""
    sent = {f.name: f.example for f in resource.fields if f.on_create}
    values = check(resource, sent, from_json=True, creating=True).values
    for field in resource.fields:
        if values.get(field.column) is None and field.example is not None:
            values[field.column] = field.format.accept(field.example)
    return values
