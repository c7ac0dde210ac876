"""Creates, reads, changes and deletes records for every door.

Each action runs the steps own → check → rules → store → announce in one transaction. `rules` are
plain functions in the module of a resource that validate the changed values; a resource with rules
composes the steps itself. Errors take precedence in the order 404, 403, 400, 412.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from msgspec import json

from gateway.records import audit, cascades, list_versions, query, store
from gateway.records.audit import Actor, Scope, must_own
from gateway.records.errors import Fault, Refusal
from gateway.records.list_versions import Edition
from gateway.records.query import Page, Query
from gateway.records.record import ID, OWNER_ID, VERSION, Draft, Record, record_of
from gateway.records.resource import Resource
from gateway.records.values.formats import missing
from outbox.database.transaction import Tx
from outbox.events import NO_FIELDS, RecordField, enqueue
from outbox.ids import is_id

ANY = "*"
"""In `expected`: matches every state."""


async def create(tx: Tx, actor: Actor, resource: Resource, draft: Draft) -> Record:
    """Create a record for the actor. Raises forbidden, or the faults of the draft."""
    actor.must("write")
    values = await check(tx, actor, resource, draft)
    return announce(tx, "created", await insert(tx, actor, resource, values), before=None)


def create_of(resource: Resource) -> Callable[[Tx, Actor, Draft], Awaitable[Record]]:
    """Return the unit that creates a record of a resource without rules of its own."""

    async def unit(tx: Tx, actor: Actor, draft: Draft) -> Record:
        return await create(tx, actor, resource, draft)

    # Traces show the name of the unit.
    unit.__name__ = "create"
    return unit


async def read(tx: Tx, actor: Actor, resource: Resource, record_id: str) -> Record:
    """Return one record. Raises not_found, then forbidden."""
    return await own(tx, actor, resource, record_id, "read")


async def change(
    tx: Tx,
    actor: Actor,
    resource: Resource,
    record_id: str,
    draft: Draft,
    expected: frozenset[str] | None = None,
) -> Record:
    """Update a record with the values of the draft (merge-patch) and return it.

    An update without changes emits no event. Raises not_found, forbidden, the faults of the draft,
    precondition_failed.
    """
    before = await own(tx, actor, resource, record_id, "write", lock=True)
    values = await check(tx, actor, resource, draft, before)
    must_match(before, expected)
    changes = changes_of(before, values)
    if not changes:
        return before
    return announce(tx, "updated", await update(tx, actor, before, changes), before=before)


def change_of(
    resource: Resource,
) -> Callable[[Tx, Actor, str, Draft, frozenset[str] | None], Awaitable[Record]]:
    """Return the unit that changes a record of a resource without rules of its own."""

    async def unit(
        tx: Tx, actor: Actor, record_id: str, draft: Draft, expected: frozenset[str] | None
    ) -> Record:
        return await change(tx, actor, resource, record_id, draft, expected)

    unit.__name__ = "change"
    return unit


async def remove(
    tx: Tx,
    actor: Actor,
    resource: Resource,
    record_id: str,
    expected: frozenset[str] | None = None,
    *,
    action: audit.Action = "deleted",
) -> Record:
    """Delete a record permanently, and update or delete its dependants; return what it was.

    `action` is what the audit log says. Raises not_found, forbidden, precondition_failed.
    """
    before = await own(tx, actor, resource, record_id, "write", lock=True)
    must_match(before, expected)
    await store.delete(tx, resource, before.row)
    audit.record(tx, actor, action, resource.noun, before.id)
    await cascades.follow(tx, resource, actor.owner_id, before.id)
    # The deleted event has the highest version, so receivers that drop older versions keep it.
    gone = [*before.row]
    gone[VERSION] += 1
    announce(tx, "deleted", Record(resource, gone, before.derived), before=before)
    return before


async def page(tx: Tx, actor: Actor, resource: Resource, list_query: Query) -> Page:
    """Return one page of the actor's own records. Raises forbidden."""
    actor.must("read")
    return await query.page(tx, resource, actor.owner_id, list_query, actor.zone)


async def edition(tx: Tx, actor: Actor, resource: Resource, limit: int) -> Edition:
    """Return the edition of the first page of the actor's own records. Raises forbidden."""
    actor.must("read")
    return await list_versions.current(tx, resource, actor.owner_id, limit, actor.zone)


async def some(tx: Tx, actor: Actor, resource: Resource, ids: Sequence[str]) -> Page:
    """Return the actor's records with these ids, without deleted ones. Raises forbidden."""
    actor.must("read")
    return await query.some(tx, resource, actor.owner_id, ids, actor.zone)


async def own(
    tx: Tx, actor: Actor, resource: Resource, record_id: str, scope: Scope, *, lock: bool = False
) -> Record:
    """Return the record. Raises not_found, or forbidden when another account owns it."""
    row = None
    if is_id(record_id):
        row = await store.fetch(tx, resource, record_id.lower(), lock=lock)
    if row is None:
        raise Refusal("not_found", f"There is no {resource.noun} with this id.")
    must_own(actor, row[OWNER_ID], resource.noun)
    actor.must(scope)
    return record_of(resource, row, tx.now, actor.zone)


async def check(
    tx: Tx,
    actor: Actor,
    resource: Resource,
    draft: Draft,
    before: Record | None = None,
    faults: Sequence[Fault] = (),
) -> dict[str, Any]:
    """Check that the actor owns every reference, and return the draft's values by column.

    Raises the faults of the draft together with `faults`, which come from the resource's rules.
    """
    draft.must_hold([*faults, *await reference_faults(tx, actor, resource, draft, before)])
    return dict(draft.values)


async def insert(
    tx: Tx,
    actor: Actor,
    resource: Resource,
    values: Mapping[str, Any],
    record_id: str | None = None,
) -> Record:
    """Store a new record for the actor; `values` by column, absent columns are null.

    `record_id` is an id of tx.new_id that other rows of the unit refer to already.
    """
    row = await store.insert(tx, resource, actor.owner_id, values, record_id)
    audit.record(tx, actor, "created", resource.noun, row[ID])
    return record_of(resource, row, tx.now, actor.zone)


async def update(tx: Tx, actor: Actor, before: Record, changes: Mapping[str, Any]) -> Record:
    """Store `changes` (by column) of a record; increment its version and set updatedAt."""
    resource = before.resource
    row = await store.update(tx, resource, before.row, changes)
    fields = audit.fields_of(resource, changes)
    audit.record(tx, actor, "updated", resource.noun, before.id, fields)
    return record_of(resource, row, tx.now, actor.zone)


def announce(tx: Tx, change: str, record: Record, *, before: Record | None) -> Record:
    """Enqueue the event of `change`, if the resource declares one, and return the record.

    `data` holds exactly the listed fields, null where unset. `before` is the record before this
    write, None if the write created it.
    """
    resource = record.resource
    listed = resource.events.get(change)
    if listed is not None:
        enqueue(
            tx,
            owner_id=record.owner_id,
            name=f"{resource.noun}.{change}",
            record_id=record.id,
            record_version=record.version,
            data=data_of(record, listed),
            record_fields=record_fields(record, before) if resource.filterable else NO_FIELDS,
        )
    return record


def record_fields(record: Record, before: Record | None) -> dict[str, RecordField]:
    """Return the fields that filters of webhooks can use beside `data`.

    A write changes a field whose stored value differs; a create changes those that it sets.
    """
    columns = ((name, record.resource.named[name].column) for name in record.resource.filterable)
    return {
        name: RecordField(
            record.shown(name),
            record.column(column) != (None if before is None else before.column(column)),
        )
        for name, column in columns
    }


def data_of(record: Record, fields: Sequence[str]) -> dict[str, Any]:
    """Return the `data` of an event with these fields of the record, null where unset."""
    return {name: record.shown(name) for name in fields}


def must_match(current: Record, expected: frozenset[str] | None) -> None:
    """Raise precondition_failed when `expected` is set without the record's ETag or ANY."""
    if expected is not None and ANY not in expected and current.etag not in expected:
        raise changed_meanwhile(current.etag)


def changed_meanwhile(etag: str) -> Refusal:
    """Return the refusal of a write with an outdated ETag; `etag` is the current one."""
    return Refusal(
        "precondition_failed",
        "The record has changed since you read it; read it again and repeat your change.",
        facts={"etag": etag},
    )


def changes_of(before: Record, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the items of `values` (by column) that differ from the stored ones."""
    position, row = before.resource.position, before.row
    changes = {c: v for c, v in values.items() if v != row[position[c]]}
    for field in before.resource.fields:
        if not field.beside or field.column in changes:
            continue
        # A client that sends back a displayed value loses its parts, such as the fact that it was
        # a date without a time. That alone is no change, nor is another form of the same value.
        if not any(changes.get(beside.column) for beside in field.beside if beside.part):
            for beside in field.beside:
                changes.pop(beside.column, None)
    return changes


async def reference_faults(
    tx: Tx, actor: Actor, resource: Resource, draft: Draft, before: Record | None = None
) -> Sequence[Fault]:
    """Return a fault for each reference to a missing record or to one of another owner.

    The fault is the same in both cases, so it does not reveal which ids exist.
    """
    faults = []
    for field, reference in resource.references:
        name = field.name
        value = draft.sent.get(name)
        if value is None and before is not None and reference.by in draft.sent:
            # The same id with another kind refers to another record.
            value = before[field.column]
        if value is None:
            continue
        ids = json.decode(value) if field.listed_in else [value]
        table, noun = reference.table, reference.noun
        if reference.by:
            kind = draft.sent.get(reference.by)
            if kind is None and before is not None:
                kind = before[resource.named[reference.by].column]
            table, noun = (reference.tables or {}).get(kind or "", ""), kind or "record"
            if not table:
                # The kind is invalid, and its own fault reports that.
                continue
        owned = await store.owned_of(tx, table, actor.owner_id, ids)
        wrong = missing(noun)
        faults += [
            fault
            for i, target in enumerate(ids)
            if target not in owned
            for fault in wrong.faults(name + (f"[{i}]" if field.listed_in else ""))
        ]
    return faults
