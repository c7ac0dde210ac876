"""Creates, numbers and changes quotes and invoices, and moves them between states.

They are functions over the steps of gateway.records.actions, because their fields depend on each
other: amounts follow from lines, and the state decides which fields are writable.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gateway.domain.sales import company_settings, document_lines, document_links, document_mails
from gateway.domain.sales.document_lines import Line
from gateway.records import actions
from gateway.records.audit import Actor
from gateway.records.errors import Fault, Refusal
from gateway.records.record import Draft, Record
from gateway.records.resource import LASTS, Field, Filter, Reference, Resource
from gateway.records.values import dates, formats, numbers
from outbox.database.transaction import Tx

METHODS = ("pix", "boleto", "card", "transfer", "cash")
"""The methods of payment."""
AMOUNTS = ("items", "discount", "shipping", "total")
"""The fields that determine the amounts of a document."""

Transitions = Mapping[str, Sequence[str]]
"""State → the allowed next states; none for a final state."""

CUSTOMERS = ("contact_id", "company_id")
"""The columns that name whom a document is for."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of document: its declaration and its states."""

    resource: Resource
    table: Transitions
    open: str
    """The state in which its content is writable."""
    stamps: Mapping[str, str]
    """State → the column with its time: now, unless the request sets it."""
    announced: Mapping[str, str] = field(default_factory=dict)
    """State → the event that it emits, if not `updated`."""
    follow: Callable[[Tx, Actor, Record], Awaitable[None]] | None = None
    """What follows from a new state, in the same transaction."""
    guard: Callable[[Record, Mapping[str, Any]], None] | None = None
    """Refuses changes (by column) of content that belongs to another record."""
    restored: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """State → the fields that an import sets with it."""


def parties(noun: str) -> tuple[Field, ...]:
    """Return the fields for the contact, company and deal of a document."""
    return (
        Field(
            "contactId", "contact_id", formats.id_of("contact"), f"The contact of the {noun}.",
            "018f3a5b7c9d1e2f3a4b5c6e", reference=Reference("contact", "contacts"),
        ),
        Field(
            "companyId", "company_id", formats.id_of("company"), f"The company of the {noun}.",
            "018f3a5b7c9d1e2f3a4b5c6d", reference=Reference("company", "companies"),
        ),
        Field(
            "dealId", "deal_id", formats.id_of("deal"), f"The deal of the {noun}.",
            "018f3a5b7c9d1e2f3a4b5c6f", reference=Reference("deal", "deals"),
        ),
    )  # fmt: skip


def only(noun: str, name: str, column: str, party: str) -> Filter:
    """Return the filter `name` of the documents called `noun`: those of one record."""
    sql = f"{column} = {{}} and {LASTS}"
    return Filter(name, sql, "id", f"Only {noun}s of this {party}.")


def is_overdue(at: dates.Moment, status: str, due_at: int, due_day: bool) -> bool:
    """Return whether a document that waits for its payment is past its due date."""
    return status == "pending" and at.has_passed(due_at, due_day)


async def create(tx: Tx, actor: Actor, kind: Kind, draft: Draft) -> Record:
    """Create a document with the next number. Raises forbidden, or the faults of the draft."""
    actor.must("write")
    return await issue(tx, actor, kind, await _content(tx, actor, kind, draft))


async def drafted(
    tx: Tx, actor: Actor, kind: Kind, draft: Draft, record_id: str | None = None
) -> Mapping[str, Any]:
    """Return the columns that a document would have with a draft of AMOUNTS; nothing is stored.

    Raises not_found, forbidden, the faults of the draft.
    """
    actor.must("read")
    before = None
    if record_id is not None:
        before = await actions.own(tx, actor, kind.resource, record_id, "read")
    stored = {} if before is None else before.stored
    lines = _lines(draft, stored)
    values, faults = _counted(draft, stored, lines)
    draft.must_hold(faults)
    return {**values, "items": document_lines.text(lines)}


async def issue(tx: Tx, actor: Actor, kind: Kind, values: Mapping[str, Any]) -> Record:
    """Create a document from checked columns; columns with a default are optional.

    The number is the last lock that it takes.
    """
    resource = kind.resource
    defaults = {f.column: f.default for f in resource.fields if f.default is not None}
    number = await take_number(tx, actor.owner_id, resource.table)
    columns = {**defaults, **values, "number": number}
    return actions.announce(
        tx, "created", await actions.insert(tx, actor, resource, columns), before=None
    )


async def change(
    tx: Tx, actor: Actor, kind: Kind, record_id: str, draft: Draft, expected: frozenset[str] | None
) -> Record:
    """Change a document: its content only in the open state, `status` along TRANSITIONS.

    Raises not_found, forbidden, the faults of the draft, precondition_failed, conflict,
    invalid_transition.
    """
    resource = kind.resource
    before = await actions.own(tx, actor, resource, record_id, "write", lock=True)
    values = await _content(tx, actor, kind, draft, before)
    actions.must_match(before, expected)
    current = before["status"]
    target = values.pop("status", current)
    changes = actions.changes_of(before, values)
    if changes and current != kind.open:
        raise Refusal(
            "conflict",
            f"This {resource.noun} is {current}; you can change it only while it is {kind.open}.",
        )
    if changes and kind.guard is not None:
        kind.guard(before, changes)
    if target != current:
        check_transition(resource.noun, kind.table, current, target)
        changes["status"] = target
    return await _write(tx, actor, kind, before, changes) if changes else before


async def step(
    tx: Tx, actor: Actor, kind: Kind, record_id: str, target: str, draft: Draft | None = None
) -> Record:
    """Move a document to the state `target`, with the values of a draft.

    Raises not_found, forbidden, the faults of the draft, invalid_transition, conflict.
    """
    resource = kind.resource
    before = await actions.own(tx, actor, resource, record_id, "write", lock=True)
    draft = draft or Draft()
    draft.must_hold()
    check_transition(resource.noun, kind.table, before["status"], target)
    values = {column: dates.settled(value, actor.zone) for column, value in draft.values.items()}
    return await _write(tx, actor, kind, before, values | {"status": target})


async def _write(
    tx: Tx, actor: Actor, kind: Kind, before: Record, changes: dict[str, Any]
) -> Record:
    target = changes.get("status")
    stamp = kind.stamps.get(target or "")
    if stamp is not None and changes.get(stamp) is None:
        changes[stamp] = tx.now
    after = await actions.update(tx, actor, before, changes)
    if any(column in changes for column in CUSTOMERS):
        # Who had it before must not see the new customer. A deleted one leaves no name behind.
        await document_links.end(tx, after.id)
        await document_mails.drop(tx, after.id)
    actions.announce(tx, kind.announced.get(target or "", "updated"), after, before=before)
    if target is not None and after["status"] != target:
        noun = kind.resource.noun
        message = f"This {noun} would be {after['status']} immediately; set a later date first."
        raise Refusal("conflict", message)
    if target is not None and kind.follow is not None:
        await kind.follow(tx, actor, after)
    return after


async def _content(
    tx: Tx, actor: Actor, kind: Kind, draft: Draft, before: Record | None = None
) -> dict[str, Any]:
    """Return the columns of a draft, including amounts. Raises the faults of the draft."""
    resource = kind.resource
    faults = [*await actions.reference_faults(tx, actor, resource, draft, before)]
    stored = {} if before is None else before.stored
    stored_lines = document_lines.read(stored.get("items", "[]"))
    lines = _lines(draft, stored)
    faults += await document_lines.product_faults(tx, actor.owner_id, lines, stored_lines)
    values, wrong = _counted(draft, stored, lines)
    draft.must_hold([*faults, *wrong])
    values["items"] = document_lines.text(document_lines.named(tx, lines, stored_lines))
    return {column: value for column, value in values.items() if column in resource.position}


def _lines(draft: Draft, stored: Mapping[str, Any]) -> Sequence[Line]:
    return document_lines.read(draft.values.get("items", stored.get("items", "[]")))


def _counted(
    draft: Draft, stored: Mapping[str, Any], lines: Sequence[Line]
) -> tuple[dict[str, Any], list[Fault]]:
    """Return the values of a draft with the amounts, and the faults of these."""
    values = dict(draft.values)
    # Amounts cannot be computed from invalid fields.
    invalid = {fault.field.partition("[")[0] for fault in draft.faults}
    if draft.unreadable is not None or not invalid.isdisjoint(AMOUNTS):
        return values, []
    return values, _compute_amounts(values, stored, lines)


def _compute_amounts(
    values: dict[str, Any], stored: Mapping[str, Any], lines: Sequence[Line]
) -> list[Fault]:
    """Add the amounts to `values` and return their faults.

    total = subtotal - discount + shipping, and the subtotal is the sum of the lines. Without lines
    the request sets the total, and the subtotal follows.
    """
    columns = {**stored, **values}
    discount, shipping = columns.get("discount") or 0, columns.get("shipping") or 0
    sent_total: int | None = values.get("total")
    if lines:
        subtotal = sum(line.total for line in lines)
    elif sent_total is not None:
        subtotal = sent_total + discount - shipping
    elif "subtotal" in stored and not document_lines.read(stored["items"]):
        subtotal = stored["subtotal"]
    else:
        return [Fault("total", "required", "items or total is required.")]
    total = subtotal - discount + shipping
    values |= {"subtotal": subtotal, "discount": discount, "shipping": shipping, "total": total}
    show = numbers.show_money
    if subtotal < 0:
        return [Fault("shipping", "too_large", "shipping must not exceed total.")]
    if discount > subtotal:
        message = f"discount must be at most {show(subtotal)}."
        return [Fault("discount", "too_large", message)]
    if sent_total is not None and sent_total != total:
        message = f"total must be {show(total)}, the sum of the items, or absent."
        return [Fault("total", "disagrees", message)]
    if max(subtotal, total) > numbers.MOST_CENTAVOS:
        most = {"most": show(numbers.MOST_CENTAVOS)}
        return [Fault("total", "out_of_range", "total must be at most {most}.", most)]
    return []


_TAKE_NUMBERS = {
    series: f"""
insert into counters (owner_id, series, n) values ($1, $2, 1)
on conflict (owner_id, series) do update set n = counters.n + 1
returning n, (select {column} from company_settings where owner_id = $1) as prefix
"""
    for series, column in company_settings.PREFIX_COLUMNS.items()
}


async def take_number(tx: Tx, owner_id: str, series: str) -> str:
    """Take the next number of an owner's series, such as INV-000001; numbers have no gaps.

    The prefix is that of the owner's settings at this time.

    It locks the series until the transaction ends, so a unit takes it as its last lock. A rollback
    also returns the number.
    """
    row = await tx.one(_TAKE_NUMBERS[series], owner_id, series)
    assert row is not None, "an upsert returns its row"
    return f"{row[1] or company_settings.PREFIXES[series]}-{row[0]:06d}"


def check_transition(noun: str, table: Transitions, current: str, target: str) -> None:
    """Raise invalid_transition, with the `allowed` states, unless `target` may follow `current`."""
    allowed = list(table[current])
    if target in allowed:
        return
    onward = f"it can become {' or '.join(allowed)}" if allowed else f"{current} is final"
    raise Refusal(
        "invalid_transition",
        f"This {noun} is {current} and cannot become {target}; {onward}.",
        facts={"allowed": allowed},
    )
