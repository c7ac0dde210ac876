"""Reads, inserts, updates and deletes records in their tables and maintains running totals.

Rows are sequences in the order of `Resource.columns`. It checks no permissions.
"""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from msgspec import json

from gateway.records import statements
from gateway.records.errors import Fault, Refusal
from gateway.records.record import ID, Row
from gateway.records.resource import Field, Resource, Unique
from gateway.records.searching import digits_of
from gateway.records.values.folding import fold, fold_all, without_case
from gateway.records.values.strictjson import decode
from outbox.database.sql import items
from outbox.database.transaction import Tx

# Writers of one owner spread over this many counters, so that they seldom wait for each other.
SLOTS = 16


async def fetch(tx: Tx, resource: Resource, record_id: str, *, lock: bool = False) -> Row | None:
    """Return the record with this id, of any owner, or None."""
    row = await tx.one(statements.select_one(resource, lock=lock), record_id)
    # Both drivers' rows can be read by position.
    return cast("Row | None", row)


async def fetch_all(tx: Tx, sql: str, *args: Any) -> tuple[list[Row], frozenset[str]]:
    """Return the records of a query from `statements.page`, and the ids of the long ones.

    A long record lacks its long texts.
    """
    rows = await tx.all(sql, *args)
    records: list[list[Any]] = (
        json.decode(rows[0][0]) if tx.engine == "sqlite" else [[*cast(Any, row)] for row in rows]
    )
    return [*records], frozenset(record[0] for record in records if record.pop())


async def fetch_whole(tx: Tx, resource: Resource, ids: Sequence[str]) -> dict[str, Row]:
    """Return the records with these ids, of any owner, by id."""
    rows = await tx.all(statements.select_some(resource), items(ids))
    return {row[0]: cast("Row", row) for row in rows}


async def insert(
    tx: Tx,
    resource: Resource,
    owner_id: str,
    values: Mapping[str, Any],
    record_id: str | None = None,
) -> Row:
    """Insert a record of `owner_id`; `values` by column, absent columns are null."""
    record_id = record_id or tx.new_id()
    system = (record_id, owner_id, 1, tx.now, None)
    row = [*system, *map(values.get, resource.columns[len(system) :])]
    tx.later(statements.insert(resource), (*row, *_search_columns(resource, row)))
    for field in resource.fields:
        if field.listed_in and values.get(field.column):
            _list_items(tx, field.listed_in, owner_id, record_id, values[field.column])
        if field.unique is not None and values.get(field.column) is not None:
            await _claim(tx, resource, field, field.unique, row)
    tally(tx, owner_id, resource.table, {slot(record_id): 1})
    return row


async def update(tx: Tx, resource: Resource, row: Row, changes: Mapping[str, Any]) -> Row:
    """Update a record with `changes` (by column), increment its version and set updatedAt."""
    position = resource.position
    changed = list(row)
    for column, value in changes.items():
        changed[position[column]] = value
    changed[position["version"]] += 1
    # See statements.changed_at.
    updated_at = max(tx.now, row[position["updated_at"]] or row[position["created_at"]])
    changed[position["updated_at"]] = updated_at
    # Also store the references that read as removed: lists, and single ones that are null.
    columns = {
        column: row[position[column]]
        for field in resource.ending
        if field.listed_in or row[position[field.column]] is None
        for column in (field.column, *(field.reference.also if field.reference else ()))
    } | dict(changes)
    folded = (*resource.search, *resource.numbers, resource.folded_sort)
    if any(field.column in changes for field in resource.fields if field.name in folded):
        written = statements.written(resource)[len(resource.columns) :]
        columns |= zip(written, _search_columns(resource, changed), strict=True)
    record_id, owner_id = row[0], row[1]
    sql = statements.update(resource, tuple(columns))
    await tx.run(sql, record_id, updated_at, changed[position["version"]], *columns.values())
    for field in resource.fields:
        if field.listed_in and field.column in changes:
            await tx.run(statements.unlist_items(field.listed_in), record_id)
            _list_items(tx, field.listed_in, owner_id, record_id, changes[field.column])
        if field.unique is not None and not changes.keys().isdisjoint(
            (field.column, field.unique.scope)
        ):
            await tx.run(statements.unlist_items(field.unique.table), record_id)
            if changed[position[field.column]] is not None:
                await _claim(tx, resource, field, field.unique, changed)
    return changed


async def delete(tx: Tx, resource: Resource, row: Row) -> None:
    """Delete the record permanently; foreign keys delete the index rows of its lists."""
    record_id, owner_id = row[0], row[1]
    await tx.run(statements.delete(resource.table), record_id)
    tally(tx, owner_id, resource.table, {slot(record_id): -1})


async def owned_of(tx: Tx, table: str, owner_id: str, ids: Sequence[str]) -> set[str]:
    """Return the ids of records of `owner_id`, locked against deletes in this transaction."""
    if not ids:
        return set()
    rows = await tx.all(statements.owned(table, len(ids)), owner_id, *ids)
    return {row[0] for row in rows}


async def total(tx: Tx, owner_id: str, resource: Resource) -> int:
    """Return how many records `owner_id` has, without counting them."""
    row = await tx.one(statements.total(resource), owner_id, resource.table)
    return int(row[0]) if row else 0


def tally(tx: Tx, owner_id: str, table: str, by_slot: Mapping[int, int]) -> None:
    """Add to the running totals; always in the order of slots, so that writers cannot deadlock."""
    for number in sorted(by_slot):
        tx.later(statements.TALLY, (owner_id, table, number, by_slot[number]))


def slot(record_id: str) -> int:
    """Return the counter of a record, the same on insert and on delete."""
    return int(record_id[-1], SLOTS)


def _search_columns(resource: Resource, row: Row) -> list[str]:
    """Return the values of `folded`, `digits` and `sort_name`, if the resource has them."""
    position = resource.position
    folded = []
    if resource.search:
        texts = [row[position[resource.named[name].column]] or "" for name in resource.search]
        folded.append(fold_all(texts))
    if resource.numbers:
        numbers = [_number(resource, row, name) for name in resource.numbers]
        folded.append(digits_of(numbers) if any(numbers) else "")
    if resource.folded_sort:
        folded.append(fold(row[position[resource.named[resource.folded_sort].column]]))
    return folded


def _number(resource: Resource, row: Row, name: str) -> str | None:
    """Return a phone or a document, in its usual form if it has one."""
    field = resource.named[name]
    columns = (*(one.column for one in field.beside[:1]), field.column)
    return next(
        (row[resource.position[one]] for one in columns if row[resource.position[one]]), None
    )


def _list_items(tx: Tx, table: str, owner_id: str, record_id: str, listed: str) -> None:
    for value in decode(listed.encode()):
        tx.later(statements.list_items(table), (owner_id, value, record_id))


async def _claim(tx: Tx, resource: Resource, field: Field, unique: Unique, row: Row) -> None:
    """Claim a unique value for the record. Raises conflict.

    A record without a store claims nothing within it.
    """
    value = row[resource.position[field.column]]
    scope = () if unique.within == "installation" else (row[resource.position[unique.scope]],)
    if None in scope:
        return
    used = without_case(value) if unique.folded else value
    claimed = await tx.run(statements.claim(unique), *scope, used, row[ID])
    if not claimed:
        whose = "" if unique.within == "installation" else " of yours"
        message = f"Another {resource.noun}{whose} has this {field.name}; send another one."
        raise Refusal("conflict", message, faults=[Fault(field.name, "taken", message)])
