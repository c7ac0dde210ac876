"""What quotes and invoices share: how they are made, numbered, changed and moved on.

They are ordinary code on the engine's parts, because their fields depend on one another: lines
make amounts, and the state says what may still be written.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gateway.domain.sales import lines, numbering
from gateway.domain.sales.lines import Line
from gateway.domain.sales.transitions import Table, move
from gateway.records import actions
from gateway.records.access import Actor
from gateway.records.draft import Draft
from gateway.records.errors import Fault, Refusal
from gateway.records.record import Record
from gateway.records.resource import Field, Reference, Resource
from gateway.records.values import dates, formats, numbers
from outbox.database.transaction import Tx

AMOUNTS = ("items", "discount", "shipping", "total")
"""The fields from which the amounts of a document come."""


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of document: its declaration, its numbers, its states."""

    resource: Resource
    prefix: str
    table: Table
    open: str
    """The state in which its content may be changed."""
    stamps: Mapping[str, str]
    """State → the column of when it was reached: now, unless that is sent."""
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


async def create(tx: Tx, actor: Actor, kind: Kind, draft: Draft) -> Record:
    """Make a document with the next number. Raises forbidden, or what is wrong with the draft."""
    actor.must("write")
    return await issue(tx, actor, kind, await _content(tx, actor, kind, draft))


async def issue(tx: Tx, actor: Actor, kind: Kind, values: Mapping[str, Any]) -> Record:
    """Make a document of checked columns; what has a default may be left out.

    Takes the number last of all locks.
    """
    resource = kind.resource
    defaults = {f.column: f.default for f in resource.fields if f.default is not None}
    number = await numbering.take(tx, actor.owner_id, resource.table, kind.prefix)
    columns = {**defaults, **values, "number": number}
    return actions.announce(tx, "created", await actions.insert(tx, actor, resource, columns))


async def change(
    tx: Tx, actor: Actor, kind: Kind, record_id: str, draft: Draft, expected: frozenset[str] | None
) -> Record:
    """Write what was sent, content in the open state only; `status` moves as the table allows.

    Raises not_found, forbidden, what is wrong with the draft, precondition_failed, conflict,
    invalid_transition.
    """
    resource = kind.resource
    before = await actions.own(tx, actor, resource, record_id, "write", lock=True)
    values = await _content(tx, actor, kind, draft, before)
    actions.must_match(before, expected)
    current = before["status"]
    wanted = values.pop("status", current)
    changes = actions.changes_of(before, values)
    if changes and current != kind.open:
        raise Refusal(
            "conflict",
            f"This {resource.noun} is {current}; it can be changed while it is {kind.open}.",
        )
    if wanted != current:
        move(resource.noun, kind.table, current, wanted)
        changes["status"] = wanted
    return await _write(tx, actor, kind, before, changes) if changes else before


async def step(
    tx: Tx, actor: Actor, kind: Kind, record_id: str, wanted: str, draft: Draft | None = None
) -> Record:
    """Move a document on to `wanted`, with what a draft says of that step.

    Raises not_found, forbidden, what is wrong with the draft, invalid_transition, conflict.
    """
    resource = kind.resource
    before = await actions.own(tx, actor, resource, record_id, "write", lock=True)
    draft = draft or Draft()
    draft.must_hold()
    move(resource.noun, kind.table, before["status"], wanted)
    values = {column: dates.settled(value, actor.zone) for column, value in draft.values.items()}
    return await _write(tx, actor, kind, before, values | {"status": wanted})


async def _write(
    tx: Tx, actor: Actor, kind: Kind, before: Record, changes: dict[str, Any]
) -> Record:
    wanted = changes.get("status")
    stamp = kind.stamps.get(wanted or "")
    if stamp is not None and changes.get(stamp) is None:
        changes[stamp] = tx.now
    after = await actions.update(tx, actor, before, changes)
    actions.announce(tx, kind.announced.get(wanted or "", "updated"), after)
    if wanted is not None and after["status"] != wanted:
        noun = kind.resource.noun
        message = f"This {noun} would be {after['status']} at once; set a later date first."
        raise Refusal("conflict", message)
    return after


async def _content(
    tx: Tx, actor: Actor, kind: Kind, draft: Draft, before: Record | None = None
) -> dict[str, Any]:
    """The columns that a draft asks for, amounts included. Raises what is wrong with it."""
    resource = kind.resource
    faults = [*await actions.reference_faults(tx, actor, resource, draft, before)]
    stored = {} if before is None else before.stored
    known = lines.read(stored.get("items", "[]"))
    listed = lines.read(draft.values["items"]) if "items" in draft.values else known
    faults += await lines.product_faults(tx, actor.owner_id, listed, known)
    values = dict(draft.values)
    # Amounts are not reckoned with what could not be read.
    unread = {fault.field.partition("[")[0] for fault in draft.faults}
    if draft.unreadable is None and unread.isdisjoint(AMOUNTS):
        faults += _reckon(values, stored, listed)
    draft.must_hold(faults)
    values["items"] = lines.text(lines.named(tx, listed, known))
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
    show = numbers.show_money
    if subtotal < 0:
        return [Fault("shipping", "too_large", "Send shipping that is not more than the total.")]
    if discount > subtotal:
        return [Fault("discount", "too_large", f"Send a discount of at most {show(subtotal)}.")]
    if asked is not None and asked != total:
        return [Fault("total", "disagrees", f"The items come to {show(total)}; send that or none.")]
    if max(subtotal, total) > numbers.MOST_CENTAVOS:
        most = show(numbers.MOST_CENTAVOS)
        return [Fault("total", "out_of_range", f"The total may be {most} at most.")]
    return []
