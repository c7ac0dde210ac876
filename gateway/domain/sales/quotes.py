"""Declares quotes, implements their verbs, and expires them; restores documents of an import."""

from gateway.domain.accounts import users
from gateway.domain.sales import document_lines, documents
from gateway.domain.sales.documents import Kind, Transitions, check_transition
from gateway.domain.sales.invoices import INVOICE
from gateway.records import actions, settled_rows
from gateway.records.audit import Actor
from gateway.records.derived import Derived
from gateway.records.errors import Refusal
from gateway.records.record import Draft, Record, record_of
from gateway.records.resource import BY_TIME, DerivedColumn, Field, Filter, Resource
from gateway.records.values import dates, formats, instants, numbers
from gateway.records.values.dates import Moment
from outbox.database.moving_owners import is_here
from outbox.database.transaction import Tx
from outbox.durations import DAY, HOUR

TRANSITIONS = {
    "draft": ("sent", "accepted", "canceled"),
    "sent": ("accepted", "rejected", "expired", "canceled"),
    "accepted": (),
    "rejected": (),
    "expired": (),
    "canceled": (),
}
CONVERT_TAKES = ("dueDate",)
DUE_DAYS = 30
"""Default days until the invoice of a quote is due."""
EARLIEST = 10 * HOUR
"""The earliest end of a day is in UTC+14, this long after the day begins in UTC."""
LOOK_AGAIN = HOUR
_STAMPS = {"sent": "sent_at", "accepted": "accepted_at", "rejected": "rejected_at"}
_PASSED = "valid_until < case when valid_day then {today} else {now} end"


def _status(at: Moment, status: str, until: int | None, is_day: bool) -> str:
    """Return the status at a time: a sent quote expires after validUntil."""
    lapses = status == "sent" and until is not None and at.has_passed(until, is_day)
    return "expired" if lapses else status


def _lapses_at(until: int | dates.Day) -> int:
    """Return when the expiry duty checks the quote."""
    return until.day + EARLIEST if isinstance(until, dates.Day) else until


_MONEY = numbers.money()
_INSTANT, _MOMENT = instants.instant(), instants.moment()

QUOTES = Resource(
    noun="quote",
    plural="quotes",
    table="quotes",
    description="An offer: lines with prices, valid until a date.",
    fields=(
        Field(
            "number", "number", formats.text(40), "Number, without gaps.", "Q-000001",
            on_create=False, on_update=False, made=True,
        ),
        Field(
            "status", "status", formats.one_of(*TRANSITIONS),
            "Draft on create. A draft can become sent, accepted or canceled; a sent quote can "
            "become accepted, rejected or canceled, and expires after validUntil.",
            "draft", on_create=False, default="draft", nullable=False,
        ),
        Field(
            "items", "items", document_lines.items(1), "The lines.", document_lines.EXAMPLE,
            required=True,
            shown_example=document_lines.SHOWN_EXAMPLE,
        ),
        Field(
            "subtotal", "subtotal", _MONEY, "Sum of the lines, in BRL.", 170,
            on_create=False, on_update=False, made=True,
        ),
        Field("discount", "discount", _MONEY, "Discount on the subtotal, in BRL.", 10, default=0),
        Field(
            "total", "total", _MONEY, "Subtotal - discount; checked when sent.", 160,
            made=True,
        ),
        Field(
            "currency", "currency", formats.one_of("BRL"), "Currency of the amounts.", "BRL",
            on_create=False, on_update=False, default="BRL",
        ),
        *documents.parties("quote"),
        Field(
            "validUntil", "valid_until", _INSTANT,
            "End of validity; a date without a time means the end of that day in the owner's time "
            "zone.",
            "2026-12-15",
            beside=(
                DerivedColumn("valid_day", dates.is_bare, part=True),
                DerivedColumn("lapses_at", _lapses_at),
            ),
        ),
        Field(
            "sentAt", "sent_at", _MOMENT, "Time of sending.", "2026-12-01T14:30:00.000Z",
            on_create=False, on_update=False, on_import=True,
        ),
        Field(
            "acceptedAt", "accepted_at", _MOMENT, "Time of acceptance.",
            "2026-12-02T09:00:00.000Z", on_create=False, on_update=False, on_import=True,
        ),
        Field(
            "rejectedAt", "rejected_at", _MOMENT, "Time of rejection.",
            "2026-12-02T09:00:00.000Z", on_create=False, on_update=False, on_import=True,
        ),
        Field(
            "invoiceId", "invoice_id", formats.id_of("invoice"), "The invoice of the quote.",
            "018f3a5b7c9d1e2f3a4b5c73", on_create=False, on_update=False,
        ),
        Field("notes", "notes", formats.text(formats.LONG), "Notes.", "Delivery included."),
    ),
    events={
        "created": ("id", "number", "total", "status", "createdAt"),
        "updated": ("id", "number", "status", "updatedAt"),
    },
    filterable=("status",),
    known_after={"created": {"status": "draft"}},
    search=("number",),
    filters=(
        Filter(
            "status",
            f"case when status = 'sent' and {_PASSED} then 'expired' else status end = {{}}",
            "text", "Only quotes of this status.", tuple(TRANSITIONS),
        ),
        documents.only("quote", "contactId", "contact_id", "contact"),
        documents.only("quote", "companyId", "company_id", "company"),
        documents.only("quote", "dealId", "deal_id", "deal"),
        Filter("number", "number = {}", "text", "Only the quote with this number."),
    ),
    sorts=BY_TIME,
    derived=(
        Derived(
            "status", ("status", "valid_until", "valid_day"), _status, {"type": "string"},
            "The current status.", "draft",
        ),
    ),
    deletable=False,
)  # fmt: skip

QUOTE = Kind(
    QUOTES, TRANSITIONS, open="draft", stamps=_STAMPS,
    restored={
        "sent": ("sentAt",), "accepted": ("sentAt", "acceptedAt"),
        "rejected": ("sentAt", "rejectedAt"), "expired": ("sentAt",), "canceled": ("sentAt",),
    },
)  # fmt: skip


async def create(tx: Tx, actor: Actor, draft: Draft) -> Record:
    """Create a quote in the state draft. See documents.create."""
    return await documents.create(tx, actor, QUOTE, draft)


async def change(
    tx: Tx, actor: Actor, record_id: str, draft: Draft, expected: frozenset[str] | None = None
) -> Record:
    """Change a draft quote; `status` can be set like by the verbs. See documents.change."""
    return await documents.change(tx, actor, QUOTE, record_id, draft, expected)


async def restore(tx: Tx, actor: Actor, quote: Record, draft: Draft) -> Record:
    """Move a quote to the state of a file. See _restore."""
    return await _restore(tx, actor, QUOTE, quote, draft)


async def restore_invoice(tx: Tx, actor: Actor, invoice: Record, draft: Draft) -> Record:
    """Move an invoice to the state of a file; a new one becomes that of its accepted quote.

    Else the quote could be converted again. See _restore.
    """
    if invoice.version == 1 and invoice["quote_id"] is not None:
        quote = await actions.own(tx, actor, QUOTES, invoice["quote_id"], "write", lock=True)
        if quote["status"] == "accepted" and quote["invoice_id"] is None:
            await actions.update(tx, actor, quote, {"invoice_id": invoice.id})
    return await _restore(tx, actor, INVOICE, invoice, draft)


async def send(tx: Tx, actor: Actor, record_id: str) -> Record:
    """Mark a quote as sent. See documents.step."""
    return await documents.step(tx, actor, QUOTE, record_id, "sent")


async def accept(tx: Tx, actor: Actor, record_id: str) -> Record:
    """Mark a quote as accepted by the customer. See documents.step."""
    return await documents.step(tx, actor, QUOTE, record_id, "accepted")


async def reject(tx: Tx, actor: Actor, record_id: str) -> Record:
    """Mark a quote as rejected by the customer. See documents.step."""
    return await documents.step(tx, actor, QUOTE, record_id, "rejected")


async def cancel(tx: Tx, actor: Actor, record_id: str) -> Record:
    """Cancel a quote. See documents.step."""
    return await documents.step(tx, actor, QUOTE, record_id, "canceled")


async def convert(tx: Tx, actor: Actor, record_id: str, draft: Draft) -> Record:
    """Create the invoice of an accepted quote, once; the draft takes CONVERT_TAKES of an invoice.

    Emits only invoice.created. Raises not_found, forbidden, the faults of the draft,
    invalid_transition, conflict.
    """
    quote = await actions.own(tx, actor, QUOTES, record_id, "write", lock=True)
    draft.must_hold()
    if quote["status"] != "accepted":
        # No state leads to `invoiced`, so this raises with the allowed states.
        check_transition("quote", TRANSITIONS, quote["status"], "invoiced")
    if quote["invoice_id"] is not None:
        raise Refusal(
            "conflict",
            "This quote already has an invoice.",
            facts={"invoiceId": quote["invoice_id"]},
        )
    copied = ("items", "subtotal", "discount", "total", "contact_id", "company_id", "deal_id",
              "notes")  # fmt: skip
    due_at = dates.today(tx.now, actor.zone) + DUE_DAYS * DAY
    values = {"due_at": due_at, "due_day": True, **draft.values}
    values |= {column: quote[column] for column in copied} | {"quote_id": quote.id}
    invoice = await documents.issue(tx, actor, INVOICE, values)
    await actions.update(tx, actor, quote, {"invoice_id": invoice.id})
    return invoice


_LAPSING = f"""
select {settled_rows.columns(QUOTES)} from quotes
where status = 'sent' and lapses_at <= $1 and {is_here("quotes.owner_id")}
order by lapses_at limit $2
/*postgres for update skip locked*/
"""
_LOOK_LATER = "update quotes set lapses_at = $2 where id = $1"


async def expire_quotes(tx: Tx, limit: int) -> int:
    """Set the status of up to `limit` expired quotes and emit quote.updated for each.

    Return the number of checked quotes; fewer than `limit` means that none is left.
    """
    rows = await tx.all(_LAPSING, tx.now, limit)
    for row in rows:
        owner_id = row["owner_id"]
        zone = await users.zone_of(tx, owner_id)
        system = Actor(owner_id, "system", zone=zone, cause="expiry")
        stored = [row[column] for column in QUOTES.columns]
        quote = record_of(QUOTES, stored, tx.now, system.zone)
        if quote["status"] == "expired":
            after = await actions.update(tx, system, quote, {"status": "expired"})
            actions.announce(tx, "updated", after, before=quote)
        else:
            # The day is not over in the owner's time zone, and that zone can change.
            await tx.run(_LOOK_LATER, quote.id, tx.now + LOOK_AGAIN)
    return len(rows)


async def _restore(tx: Tx, actor: Actor, kind: Kind, document: Record, draft: Draft) -> Record:
    """Move a document to the state of a file, through other states where that takes it.

    A sent document whose time has passed meanwhile is expired. Raises the faults of the draft,
    invalid_transition.
    """
    draft.must_hold()
    current, target = document["status"], draft.sent.get("status")
    if target is None or target == current:
        return document
    way = _way(kind.table, current, target)
    if not way:
        check_transition(kind.resource.noun, kind.table, current, target)
    fields = [kind.resource.named[name] for name in kind.restored.get(target, ())]
    known = {f.column: draft.sent[f.name] for f in fields if draft.sent.get(f.name) is not None}
    stamps = [kind.stamps[state] for state in way if state in kind.stamps]
    changes = dict.fromkeys(stamps, tx.now) | {"status": target}
    changes |= {column: dates.settled(value, actor.zone) for column, value in known.items()}
    after = await actions.update(tx, actor, document, changes)
    actions.announce(tx, kind.announced.get(target, "updated"), after, before=document)
    if kind.follow is not None:
        await kind.follow(tx, actor, after)
    return after


def _way(table: Transitions, current: str, target: str) -> list[str]:
    """Return the states from `current` to `target`, the shortest way; none when there is none."""
    ways = [[state] for state in table[current]]
    for way in ways:
        if way[-1] == target:
            return way
        ways += [[*way, state] for state in table[way[-1]] if state not in way]
    return []
