"""Records in their tables: read, insert, update, delete, and the running totals.

Rows travel as sequences in the order of `Resource.columns`. Who may do it was settled before.
"""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from msgspec import json

from gateway import statements
from gateway.errors import Fault, Refusal
from gateway.folding import fold, fold_all
from gateway.resource import Field, Resource
from gateway.strictjson import decode
from outbox.database.transaction import Tx

Record = Sequence[Any]
# Writers of one owner spread over this many counters, so that they seldom wait for each other.
SLOTS = 16


async def fetch(tx: Tx, resource: Resource, record_id: str, *, lock: bool = False) -> Record | None:
    """The record with this id, whoever owns it."""
    row = await tx.one(statements.select_one(resource, lock=lock), record_id)
    # Both drivers' rows can be read by position.
    return cast("Record | None", row)


async def fetch_all(tx: Tx, sql: str, *args: Any) -> tuple[list[Record], frozenset[str]]:
    """The records of a statement made by `statements.page`, and the ids of the long ones.

    A long record lacks its long texts.
    """
    rows = await tx.all(sql, *args)
    found: list[list[Any]] = (
        json.decode(rows[0][0]) if tx.engine == "sqlite" else [[*cast(Any, row)] for row in rows]
    )
    return [*found], frozenset(record[0] for record in found if record.pop())


async def insert(tx: Tx, resource: Resource, owner_id: str, values: Mapping[str, Any]) -> Record:
    """A new record of `owner_id`; `values` by column, what is absent is null."""
    record_id = tx.new_id()
    system = (record_id, owner_id, 1, tx.now, None)
    record = [*system, *map(values.get, resource.columns[len(system) :])]
    await tx.run(statements.insert(resource), *record, *_search_columns(resource, record))
    for field in resource.fields:
        if field.listed_in and values.get(field.column):
            await _list_items(tx, field.listed_in, owner_id, record_id, values[field.column])
        if field.unique_in and values.get(field.column) is not None:
            await _claim(tx, resource, field, record)
    await tally(tx, owner_id, resource.table, {slot(record_id): 1})
    return record


async def update(tx: Tx, resource: Resource, record: Record, changes: Mapping[str, Any]) -> Record:
    """Write `changes` (by column) over the record; its version and updatedAt move on."""
    position = resource.position
    changed = list(record)
    for column, value in changes.items():
        changed[position[column]] = value
    changed[position["version"]] += 1
    changed[position["updated_at"]] = tx.now
    # What reads as ended is written so; of a single reference nothing tells that but its null.
    columns = {
        field.column: record[position[field.column]]
        for field in resource.ending
        if field.listed_in or record[position[field.column]] is None
    } | dict(changes)
    folded = (*resource.search, resource.folded_sort)
    if any(field.column in changes for field in resource.fields if field.name in folded):
        written = statements.written(resource)[len(resource.columns) :]
        columns |= zip(written, _search_columns(resource, changed), strict=True)
    record_id, owner_id = record[0], record[1]
    sql = statements.update(resource, tuple(columns))
    await tx.run(sql, record_id, tx.now, changed[position["version"]], *columns.values())
    for field in resource.fields:
        if field.listed_in and field.column in changes:
            await tx.run(statements.unlist_items(field.listed_in), record_id)
            await _list_items(tx, field.listed_in, owner_id, record_id, changes[field.column])
        if field.unique_in and field.column in changes:
            await tx.run(statements.unlist_items(field.unique_in), record_id)
            if changes[field.column] is not None:
                await _claim(tx, resource, field, changed)
    return changed


async def delete(tx: Tx, resource: Resource, record: Record) -> None:
    """Remove the record for good; the tables of its lists follow by foreign key."""
    record_id, owner_id = record[0], record[1]
    await tx.run(statements.delete(resource.table), record_id)
    await tally(tx, owner_id, resource.table, {slot(record_id): -1})


async def owned_of(tx: Tx, table: str, owner_id: str, ids: Sequence[str]) -> set[str]:
    """Which of `ids` are records of `owner_id`; they stay until the transaction ends."""
    if not ids:
        return set()
    rows = await tx.all(statements.owned(table, len(ids)), owner_id, *ids)
    return {row[0] for row in rows}


async def total(tx: Tx, owner_id: str, resource: Resource) -> int:
    """How many records `owner_id` has, without counting them."""
    row = await tx.one(statements.total(resource), owner_id, resource.table)
    return int(row[0]) if row else 0


async def tally(tx: Tx, owner_id: str, table: str, by_slot: Mapping[int, int]) -> None:
    """Add to the running totals; always in the order of slots, so that writers cannot deadlock."""
    for number in sorted(by_slot):
        await tx.run(statements.TALLY, owner_id, table, number, by_slot[number])


def slot(record_id: str) -> int:
    """The counter that a record belongs to, the same at its birth and at its end."""
    return int(record_id[-1], SLOTS)


def _search_columns(resource: Resource, record: Record) -> list[str]:
    """The values of `folded` and `sort_name`, as far as the resource has them."""
    position = resource.position
    found = []
    if resource.search:
        texts = [record[position[resource.named[name].column]] or "" for name in resource.search]
        found.append(fold_all(texts))
    if resource.folded_sort:
        found.append(fold(record[position[resource.named[resource.folded_sort].column]]))
    return found


async def _list_items(tx: Tx, table: str, owner_id: str, record_id: str, items: str) -> None:
    rows = [(owner_id, value, record_id) for value in decode(items.encode())]
    if rows:
        await tx.many(statements.list_items(table), rows)


async def _claim(tx: Tx, resource: Resource, field: Field, record: Record) -> None:
    """Make a value the record's alone among its owner's. Raises conflict."""
    value = record[resource.position[field.column]]
    claimed = await tx.run(statements.claim(field.unique_in), record[1], value, record[0])
    if not claimed:
        message = f"Another {resource.noun} of yours has this {field.name}; send another one."
        raise Refusal("conflict", message, faults=[Fault(field.name, "taken", message)])
