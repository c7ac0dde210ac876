"""Invoices: what customers owe an owner. Pending until they are paid or canceled."""

from collections.abc import Mapping
from typing import Any

from gateway.domain.sales import documents, lines
from gateway.domain.sales.documents import Kind
from gateway.records.access import Actor
from gateway.records.draft import Draft
from gateway.records.record import Record
from gateway.records.resource import (
    BY_TIME,
    LASTS,
    Beside,
    Derived,
    Field,
    Filter,
    Reference,
    Resource,
    Sort,
)
from gateway.records.values import dates, formats, instants, numbers
from outbox.database.transaction import Tx

TRANSITIONS = {"pending": ("paid", "canceled"), "paid": (), "canceled": ()}
METHODS = ("pix", "boleto", "card", "transfer", "cash")
PAY_TAKES = ("paidAt", "method", "reference")
CANCEL_TAKES = ("reason",)
_STAMPS = {"paid": "paid_at", "canceled": "canceled_at"}


def _overdue(row: Mapping[str, Any], now: int, zone: str) -> bool:
    return row["status"] == "pending" and dates.passed(row["due_at"], row["due_day"], now, zone)


def _only(name: str, column: str, noun: str) -> Filter:
    return Filter(name, f"{column} = {{}} and {LASTS}", "id", f"Only invoices of this {noun}.")


_MONEY = numbers.money()
_INSTANT = instants.instant()

INVOICES = Resource(
    noun="invoice",
    plural="invoices",
    table="invoices",
    description="What somebody owes: lines or a plain total, and the day by which it is due.",
    fields=(
        Field(
            "number", "number", formats.text(40), "Its number, without gaps.", "INV-000001",
            on_create=False, on_update=False, made=True,
        ),
        Field(
            "status", "status", formats.one_of(*TRANSITIONS),
            "Pending on create; then paid or canceled, which are final.", "pending",
            on_create=False, default="pending", nullable=False,
        ),
        Field(
            "items", "items", lines.items(0), "The lines; without any, send the total.",
            lines.EXAMPLE, default="[]", shown_example=lines.SHOWN_EXAMPLE,
        ),
        Field(
            "subtotal", "subtotal", _MONEY, "What the lines come to, in BRL.", 170,
            on_create=False, on_update=False, made=True,
        ),
        Field("discount", "discount", _MONEY, "Taken off the subtotal, in BRL.", 10, default=0),
        Field("shipping", "shipping", _MONEY, "Added for shipping, in BRL.", 15.5, default=0),
        Field(
            "total", "total", _MONEY,
            "Subtotal less discount plus shipping; needed without items, checked with them.", 175.5,
            made=True,
        ),
        Field(
            "currency", "currency", formats.one_of("BRL"), "Currency of the amounts.", "BRL",
            on_create=False, on_update=False, default="BRL",
        ),
        Field(
            "dueDate", "due_at", _INSTANT,
            "By when; a date without a time lasts until that day ends in the owner's time zone.",
            "2026-12-15", required=True, beside=(Beside("due_day", dates.is_bare, part=True),),
        ),
        Field(
            "paidAt", "paid_at", instants.moment(),
            "When it was paid; a date without a time is the beginning of that day in the owner's "
            "time zone.",
            "2026-12-10T14:30:00.000Z", on_create=False, on_update=False,
        ),
        Field(
            "method", "method", formats.one_of(*METHODS), "How it was paid.", "pix",
            on_create=False, on_update=False,
        ),
        Field(
            "reference", "reference", formats.text(200), "What the payment is known by elsewhere.",
            "E18236120202612101430s0a1b2c3d4e", on_create=False, on_update=False,
        ),
        Field(
            "canceledAt", "canceled_at", _INSTANT, "When it was canceled.",
            "2026-12-11T09:00:00.000Z", on_create=False, on_update=False,
        ),
        Field(
            "reason", "reason", formats.text(formats.LONG), "Why it was canceled.", "Ordered twice",
            on_create=False, on_update=False,
        ),
        *documents.parties("invoice"),
        Field(
            "quoteId", "quote_id", formats.id_of("quote"), "The quote that it came from.",
            "018f3a5b7c9d1e2f3a4b5c71", reference=Reference("quote", "quotes", ends=False),
        ),
        Field(
            "orderId", "order_id", formats.id_of("order"), "The order that it is for.",
            "018f3a5b7c9d1e2f3a4b5c72", on_create=False, on_update=False,
        ),
        Field("notes", "notes", formats.text(formats.LONG), "Free remarks.", "Pix key: ana@x.br"),
    ),
    events={
        "created": ("id", "number", "total", "status", "dueDate", "createdAt"),
        "updated": ("id", "number", "status", "updatedAt"),
        "paid": ("id", "number", "total", "paidAt"),
    },
    filters=(
        Filter(
            "status", "status = {}", "text", "Only invoices of this status.", tuple(TRANSITIONS),
        ),
        Filter(
            "overdue",
            "(status = 'pending' and due_at < case when due_day then {today} else {now} end) = {}",
            "boolean", "Only invoices that are overdue, or only those that are not.",
        ),
        Filter(
            "from", "created_at >= {}", "from",
            "Only invoices made at this time or later; a date without a time begins in the owner's "
            "time zone.",
        ),
        Filter(
            "to", "created_at < {}", "to",
            "Only invoices made up to this time; a date without a time includes its whole day in "
            "the owner's time zone.",
        ),
        _only("contactId", "contact_id", "contact"),
        _only("companyId", "company_id", "company"),
        _only("dealId", "deal_id", "deal"),
        _only("quoteId", "quote_id", "quote"),
        Filter("number", "number = {}", "text", "Only the one with this number."),
    ),
    sorts=(*BY_TIME, Sort("dueDate", "due_at")),
    derived=(
        Derived(
            "overdue", _overdue, {"type": "boolean"},
            "Whether it is pending although its due date has passed.", False,
        ),
    ),
    deletable=False,
)  # fmt: skip

INVOICE = Kind(
    INVOICES, "INV", TRANSITIONS, open="pending", stamps=_STAMPS, announced={"paid": "paid"}
)


async def create(tx: Tx, actor: Actor, draft: Draft) -> Record:
    """Make a pending invoice. See documents.create."""
    return await documents.create(tx, actor, INVOICE, draft)


async def change(
    tx: Tx, actor: Actor, record_id: str, draft: Draft, expected: frozenset[str] | None = None
) -> Record:
    """Change a pending invoice; its `status` may be set to what the verbs do. documents.change."""
    return await documents.change(tx, actor, INVOICE, record_id, draft, expected)


async def pay(tx: Tx, actor: Actor, record_id: str, draft: Draft) -> Record:
    """Mark it paid; the draft takes PAY_TAKES. Emits invoice.paid alone. See documents.step."""
    return await documents.step(tx, actor, INVOICE, record_id, "paid", draft)


async def cancel(tx: Tx, actor: Actor, record_id: str, draft: Draft) -> Record:
    """Cancel it; the draft takes CANCEL_TAKES. See documents.step."""
    return await documents.step(tx, actor, INVOICE, record_id, "canceled", draft)
