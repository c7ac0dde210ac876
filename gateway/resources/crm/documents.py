"""What quotes and invoices share: how they are made, numbered, changed and moved on.

They are ordinary code on the engine's parts, because their fields depend on one another: lines
make amounts, and the state says what may still be written.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gateway import actions, dates, formats, numbering, store
from gateway.access import Caller
from gateway.errors import Fault, Refusal
from gateway.resource import Field, Reference, Resource
from gateway.resources.crm import lines
from gateway.resources.crm.lines import Line
from gateway.store import Record
from gateway.transitions import Table, move
from gateway.validation import Draft
from gateway.views import View, view
from outbox.database.transaction import Tx

AMOUNTS = ("items", "discount", "shipping", "total")
"""The fields from which the amounts of a document come."""
_STATUS = "status"


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of document: its declaration, its numbers, its states."""

    resource: Resource
    prefix: str
    table: Table
    open: str
    """The state in which its content may be changed."""
    announced: Mapping[str, str] = field(default_factory=dict)
    """State → the change that is announced when it is reached, where that is not `updated`."""


def parties(noun: str) -> tuple[Field, ...]:
    """Whom a document is for, and which sale it belongs to."""
    return (
        Field(
            "contactId", "contact_id", formats.id_of("contact"), f"The contact the {noun} is for.",
            "018f3a5b7c9d1e2f3a4b5c6e", reference=Reference("contact", "contacts"),
        ),
        Field(
            "companyId", "company_id", formats.id_of("company"), f"The company the {noun} is for.",
            "018f3a5b7c9d1e2f3a4b5c6d", reference=Reference("company", "companies"),
        ),
        Field(
            "dealId", "deal_id", formats.id_of("deal"), f"The deal the {noun} belongs to.",
            "018f3a5b7c9d1e2f3a4b5c6f", reference=Reference("deal", "deals"),
        ),
    )  # fmt: skip


async def create(tx: Tx, caller: Caller, kind: Kind, draft: Draft) -> View:
    """A new document with the next number. Raises forbidden, or what is wrong with the draft."""
    caller.must("write")
    values = await _content(tx, caller, kind, draft)
    return await issue(tx, caller, kind, values)


async def issue(tx: Tx, caller: Caller, kind: Kind, values: Mapping[str, Any]) -> View:
    """A new document of checked columns; what has a default may be left out.

    Takes the number last of all locks.
    """
    resource = kind.resource
    zone = await actions.zone_of(tx, resource, caller)
    defaults = {f.column: f.default for f in resource.fields if f.default is not None}
    columns = defaults | dict(values)
    if resource.compute is not None:
        columns |= resource.compute(None, columns, tx.now)
    columns["number"] = await numbering.take(tx, caller.user_id, resource.table, kind.prefix)
    record = await store.insert(tx, resource, caller.user_id, columns)
    return actions.announce(tx, resource, "created", record, zone)


async def change(
    tx: Tx, caller: Caller, kind: Kind, record_id: str, draft: Draft, if_match: str | None
) -> View:
    """Write what was sent, content in the open state only; `status` moves as the table allows.

    Raises not_found, forbidden, what is wrong with the draft, precondition_failed, conflict,
    invalid_transition.
    """
    resource = kind.resource
    record = await actions.own(tx, caller, resource, record_id, "write", lock=True)
    zone = await actions.zone_of(tx, resource, caller)
    values = await _content(tx, caller, kind, draft, record)
    before = view(resource, record, tx.now, zone)
    actions.must_match(before, if_match)
    current = status_of(before)
    wanted = values.pop("status", current)
    changes = actions.changes_of(resource, record, values)
    if changes and current != kind.open:
        raise Refusal(
            "conflict",
            f"This {resource.noun} is {current}; it can be changed while it is {kind.open}.",
        )
    if wanted != current:
        move(resource.noun, kind.table, current, wanted)
        changes["status"] = wanted
    return await _write(tx, kind, record, changes, zone) if changes else before


async def step(
    tx: Tx, caller: Caller, kind: Kind, record_id: str, wanted: str, draft: Draft | None = None
) -> View:
    """Move a document on to `wanted`, with what a draft says of that step.

    Raises not_found, forbidden, what is wrong with the draft, invalid_transition, conflict.
    """
    resource = kind.resource
    record = await actions.own(tx, caller, resource, record_id, "write", lock=True)
    draft = draft or Draft()
    draft.must_hold()
    zone = await actions.zone_of(tx, resource, caller)
    move(resource.noun, kind.table, status_of(view(resource, record, tx.now, zone)), wanted)
    values = {column: dates.settled(value, zone) for column, value in draft.values.items()}
    return await _write(tx, kind, record, values | {"status": wanted}, zone)


def status_of(found: View) -> str:
    """The state of a document as it is shown."""
    status: str = getattr(found.shown, _STATUS)
    return status


async def _write(tx: Tx, kind: Kind, record: Record, changes: dict[str, Any], zone: str) -> View:
    resource = kind.resource
    if resource.compute is not None:
        stored = dict(zip(resource.columns, record, strict=True))
        changes |= resource.compute(stored, changes, tx.now)
    record = await store.update(tx, resource, record, changes)
    wanted = changes.get("status")
    announced = kind.announced.get(wanted or "", "updated")
    after = actions.announce(tx, resource, announced, record, zone)
    if wanted is not None and status_of(after) != wanted:
        raise Refusal(
            "conflict",
            f"This {resource.noun} would be {status_of(after)} at once; set a later date first.",
        )
    return after


async def _content(
    tx: Tx, caller: Caller, kind: Kind, draft: Draft, record: Record | None = None
) -> dict[str, Any]:
    """The columns that a draft asks for, amounts included. Raises what is wrong with it."""
    resource = kind.resource
    faults = [*await actions.reference_faults(tx, caller, resource, draft, record)]
    stored = {} if record is None else dict(zip(resource.columns, record, strict=True))
    before = lines.read(stored.get("items", "[]"))
    listed = lines.read(draft.values["items"]) if "items" in draft.values else before
    faults += await lines.product_faults(tx, caller.user_id, listed, before)
    values = dict(draft.values)
    # Amounts are not reckoned with what could not be read.
    unread = {fault.field.partition("[")[0] for fault in draft.faults}
    if draft.unreadable is None and unread.isdisjoint(AMOUNTS):
        faults += _reckon(values, stored, listed)
    draft.must_hold(faults)
    values["items"] = lines.text(lines.named(tx, listed, before))
    return {column: value for column, value in values.items() if column in resource.position}


def _reckon(
    values: dict[str, Any], stored: Mapping[str, Any], listed: Sequence[Line]
) -> list[Fault]:
    """Put the amounts into `values`; what is wrong with them.

    total = subtotal - discount + shipping, and subtotal is what the lines come to. Without lines
    it is the total that is sent, and the subtotal follows.
    """
    known = {**stored, **values}
    discount, shipping = known.get("discount") or 0, known.get("shipping") or 0
    asked: int | None = values.get("total")
    if listed:
        subtotal = sum(line.total for line in listed)
    elif asked is not None:
        subtotal = asked + discount - shipping
    elif "subtotal" in stored and not lines.read(stored["items"]):
        subtotal = stored["subtotal"]
    else:
        return [Fault("total", "required", "Send items or total.")]
    total = subtotal - discount + shipping
    values |= {"subtotal": subtotal, "discount": discount, "shipping": shipping, "total": total}
    show = formats.show_money
    if subtotal < 0:
        return [Fault("shipping", "too_large", "Send shipping that is not more than the total.")]
    if discount > subtotal:
        return [Fault("discount", "too_large", f"Send a discount of at most {show(subtotal)}.")]
    if asked is not None and asked != total:
        return [Fault("total", "disagrees", f"The items come to {show(total)}; send that or none.")]
    if max(subtotal, total) > formats.MOST_CENTAVOS:
        most = show(formats.MOST_CENTAVOS)
        return [Fault("total", "out_of_range", f"The total may be {most} at most.")]
    return []
