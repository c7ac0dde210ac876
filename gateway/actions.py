"""Create, read, change, remove: the way of every door to the records.

Each is a unit: access, then validation, then the write, then the event, in one transaction. The
order in which a request is refused is 404, 403, 400, 412.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from msgspec import Struct, json

from gateway import cascades, listing, store
from gateway.access import Caller, Scope, must_own
from gateway.errors import Fault, Refusal
from gateway.formats import missing
from gateway.listing import Plan
from gateway.resource import Resource
from gateway.store import Record
from gateway.validation import Draft
from gateway.views import View, shown, view
from outbox.database.transaction import Tx
from outbox.events import enqueue
from outbox.ids import is_id


async def create(tx: Tx, caller: Caller, resource: Resource, draft: Draft) -> View:
    """A new record of the caller's. Raises forbidden, or what is wrong with the draft."""
    caller.must("write")
    draft.must_hold(await reference_faults(tx, caller, resource, draft))
    values = draft.values
    if resource.compute is not None:
        values = values | resource.compute(None, values, tx.now)
    record = await store.insert(tx, resource, caller.user_id, values)
    return announce(tx, resource, "created", record, await zone_of(tx, resource, caller))


async def read(tx: Tx, caller: Caller, resource: Resource, record_id: str) -> View:
    """One record. Raises not_found, then forbidden."""
    record = await own(tx, caller, resource, record_id, "read")
    return view(resource, record, tx.now, await zone_of(tx, resource, caller))


async def change(
    tx: Tx,
    caller: Caller,
    resource: Resource,
    record_id: str,
    draft: Draft,
    if_match: str | None = None,
) -> View:
    """Write what was sent over a record (merge-patch). What changes nothing emits nothing.

    Raises not_found, forbidden, what is wrong with the draft, precondition_failed.
    """
    record = await own(tx, caller, resource, record_id, "write", lock=True)
    zone = await zone_of(tx, resource, caller)
    draft.must_hold(await reference_faults(tx, caller, resource, draft, record))
    before = view(resource, record, tx.now, zone)
    must_match(before, if_match)
    changes = changes_of(resource, record, draft.values)
    if not changes and not any(name in draft.sent for name in resource.announce_on):
        return before
    if resource.compute is not None:
        stored = dict(zip(resource.columns, record, strict=True))
        changes |= resource.compute(stored, changes, tx.now)
    record = await store.update(tx, resource, record, changes)
    return announce(tx, resource, "updated", record, zone)


async def remove(
    tx: Tx, caller: Caller, resource: Resource, record_id: str, if_match: str | None = None
) -> None:
    """Delete a record for good, and settle what points to it.

    Raises not_found, forbidden, precondition_failed.
    """
    record = await own(tx, caller, resource, record_id, "write", lock=True)
    zone = await zone_of(tx, resource, caller)
    must_match(view(resource, record, tx.now, zone), if_match)
    await store.delete(tx, resource, record)
    await cascades.follow(tx, resource, caller.user_id, record[0])
    # Its end is the last of its versions, for receivers that drop what is older.
    gone = [*record]
    gone[resource.position["version"]] += 1
    announce(tx, resource, "deleted", gone, zone)


async def own(
    tx: Tx, caller: Caller, resource: Resource, record_id: str, scope: Scope, *, lock: bool = False
) -> Record:
    """The record, when it is there (else not_found) and the caller's (else forbidden)."""
    record = None
    if is_id(record_id):
        record = await store.fetch(tx, resource, record_id.lower(), lock=lock)
    if record is None:
        raise Refusal("not_found", f"There is no {resource.noun} with this id.")
    must_own(caller, record[1], resource.noun)
    caller.must(scope)
    return record


def announce(tx: Tx, resource: Resource, change: str, record: Record, zone: str) -> View:
    """Enqueue the event of `change`, if the catalogue has one; the record's view.

    `data` holds exactly the listed fields, null where unset.
    """
    current = view(resource, record, tx.now, zone)
    listed = resource.events.get(change)
    if listed is not None:
        enqueue(
            tx,
            owner_id=record[1],
            name=f"{resource.noun}.{change}",
            record_id=record[0],
            record_version=record[2],
            data={name: getattr(current.shown, name) for name in listed},
        )
    return current


def must_match(current: View, if_match: str | None) -> None:
    """Raise precondition_failed unless `if_match` (an If-Match header) names the current state."""
    if if_match is None:
        return
    tags = [tag.strip() for tag in if_match.split(",")]
    # RFC 9110 13.1.1: strong comparison, so a weak tag never matches.
    if "*" not in tags and current.etag not in tags:
        raise Refusal(
            "precondition_failed",
            "The record has changed since you read it; read it again and repeat your change.",
            headers={"ETag": current.etag},
        )


async def zone_of(tx: Tx, resource: Resource, caller: Caller) -> str:
    """The owner's time zone, asked only where a derived field needs it."""
    return await time_zone(tx, caller.user_id) if resource.derived else "UTC"


async def time_zone(tx: Tx, owner_id: str) -> str:
    """The time zone by which the owner's days end."""
    row = await tx.one("select timezone from users where id = $1", owner_id)
    return str(row[0]) if row else "UTC"


def changes_of(resource: Resource, record: Record, values: Mapping[str, Any]) -> dict[str, Any]:
    """Those of `values` (by column) that are other than what `record` has."""
    position = resource.position
    changes = {c: v for c, v in values.items() if v != record[position[c]]}
    for field in resource.fields:
        for beside in field.beside if field.column not in changes else ():
            # A value that comes back as it was shown has lost what was beside it, such as that
            # it was a date without a time. That alone is no change.
            if not changes.get(beside.column, True):
                del changes[beside.column]
    return changes


async def reference_faults(
    tx: Tx, caller: Caller, resource: Resource, draft: Draft, record: Record | None = None
) -> Sequence[Fault]:
    """A fault for each sent reference to what is missing or another user's: no telling which."""
    faults = []
    for field, reference in resource.references:
        name = field.name
        kept = draft.sent.get(name)
        if kept is None and record is not None and reference.by in draft.sent:
            # The same id under another kind is another reference.
            kept = record[resource.position[field.column]]
        if kept is None:
            continue
        ids = json.decode(kept) if field.listed_in else [kept]
        table, noun = reference.table, reference.noun
        if reference.by:
            kind = draft.sent.get(reference.by)
            if kind is None and record is not None:
                kind = record[resource.position[resource.named[reference.by].column]]
            table, noun = (reference.tables or {}).get(kind or "", ""), kind or "record"
            if not table:
                # What is wrong is the kind, and that is told.
                continue
        found = await store.owned_of(tx, table, caller.user_id, ids)
        wrong = missing(noun)
        faults += [
            Fault(name + (f"[{i}]" if field.listed_in else ""), wrong.code, wrong.message)
            for i, target in enumerate(ids)
            if target not in found
        ]
    return faults


class Long(str):
    """The id of a record that is read alone, because it is long."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Shown:
    """A page of records as their owner sees them; an id stands for what is yet to be read."""

    records: list[Struct | str]
    total: int
    cursor: str | None


async def page(tx: Tx, caller: Caller, resource: Resource, wanted: Plan) -> Shown:
    """One page of the caller's own records. Raises forbidden."""
    caller.must("read")
    timed = wanted.timed
    zone = await (time_zone(tx, caller.user_id) if timed else zone_of(tx, resource, caller))
    if timed:
        wanted = wanted.at(tx.now, zone)
    found = await listing.page(tx, resource, caller.user_id, wanted)
    return Shown(_beside(tx, resource, found, zone), found.total, found.cursor)


async def some(tx: Tx, caller: Caller, resource: Resource, ids: Sequence[str]) -> Shown:
    """Records of the caller's by their ids; those that are gone are left out. Raises forbidden."""
    caller.must("read")
    found = await listing.some(tx, resource, caller.user_id, ids)
    zone = await zone_of(tx, resource, caller)
    return Shown(_beside(tx, resource, found, zone), found.total, None)


def _beside(tx: Tx, resource: Resource, found: listing.Page, zone: str) -> list[Struct | str]:
    """What was read, with ids in the place of what was not."""
    records: list[Struct | str] = [*shown(resource, found.records, tx.now, zone)]
    if found.long:
        for number, record in enumerate(found.records):
            if record[0] in found.long:
                records[number] = Long(record[0])
    return [*records, *found.rest]
