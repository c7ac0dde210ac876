"""Declares invoices and implements their verbs."""

from collections.abc import Mapping
from typing import Any

from gateway.domain.sales import document_lines, documents, order_ends
from gateway.domain.sales.documents import Kind
from gateway.records.audit import Actor
from gateway.records.derived import Derived
from gateway.records.errors import Refusal
from gateway.records.record import Draft, Record
from gateway.records.resource import (
    BY_TIME,
    DerivedColumn,
    Field,
    Filter,
    Reference,
    Resource,
    Sort,
)
from gateway.records.values import dates, formats, instants, nested, numbers
from gateway.records.values.nested import Member
from outbox.database.transaction import Tx

TRANSITIONS = {"pending": ("paid", "canceled"), "paid": (), "canceled": ()}
PAY_TAKES = ("paidAt", "method", "reference")
CANCEL_TAKES = ("reason",)
_STAMPS = {"paid": "paid_at", "canceled": "canceled_at"}


_MONEY = numbers.money()
_INSTANT = instants.instant()

INVOICES = Resource(
    noun="invoice",
    plural="invoices",
    table="invoices",
    description="A claim for payment: lines or a plain total, and a due date.",
    fields=(
        Field(
            "number", "number", formats.text(40), "Number, without gaps.", "INV-000001",
            on_create=False, on_update=False, made=True,
        ),
        Field(
            "status", "status", formats.one_of(*TRANSITIONS),
            "Pending on create; paid and canceled are final.", "pending",
            on_create=False, default="pending", nullable=False,
        ),
        Field(
            "items", "items", document_lines.items(0),
            "The lines; without lines, total is required.",
            document_lines.EXAMPLE, default="[]", shown_example=document_lines.SHOWN_EXAMPLE,
        ),
        Field(
            "subtotal", "subtotal", _MONEY, "Sum of the lines, in BRL.", 170,
            on_create=False, on_update=False, made=True,
        ),
        Field("discount", "discount", _MONEY, "Discount on the subtotal, in BRL.", 10, default=0),
        Field("shipping", "shipping", _MONEY, "Shipping costs, in BRL.", 15.5, default=0),
        Field(
            "total", "total", _MONEY,
            "Subtotal - discount + shipping; required without items, checked with items.", 175.5,
            made=True,
        ),
        Field(
            "currency", "currency", formats.one_of("BRL"), "Currency of the amounts.", "BRL",
            on_create=False, on_update=False, default="BRL",
        ),
        Field(
            "dueDate", "due_at", _INSTANT,
            "Due date; a date without a time means the end of that day in the owner's time zone.",
            "2026-12-15", required=True,
            beside=(DerivedColumn("due_day", dates.is_bare, part=True),),
        ),
        Field(
            "paidAt", "paid_at", instants.moment(),
            "Time of payment; a date without a time means the begin of that day in the owner's "
            "time zone.",
            "2026-12-10T14:30:00.000Z", on_create=False, on_update=False, on_import=True,
        ),
        Field(
            "method", "method", formats.one_of(*documents.METHODS), "Method of payment.", "pix",
            on_create=False, on_update=False, on_import=True,
        ),
        Field(
            "reference", "reference", formats.text(200), "External reference of the payment.",
            "E18236120202612101430s0a1b2c3d4e", on_create=False, on_update=False, on_import=True,
        ),
        Field(
            "canceledAt", "canceled_at", instants.moment(), "Time of cancellation.",
            "2026-12-11T09:00:00.000Z", on_create=False, on_update=False, on_import=True,
        ),
        Field(
            "reason", "reason", formats.text(formats.LONG), "Reason for cancellation.",
            "Ordered twice",
            on_create=False, on_update=False, on_import=True,
        ),
        Field(
            "latePayments", "late_payments",
            nested.objects(
                (
                    Member("reference", formats.text(200), "Its reference.", required=True),
                    Member("amount", _MONEY, "Amount in BRL.", required=True),
                    Member("receivedAt", _INSTANT, "When it was reported.", required=True),
                ),
                1_000,
            ),
            "Payments that the provider reported when the invoice was canceled or paid already; "
            "pay them back or settle them by hand.",
            [
                {
                    "reference": "ch_2f6a", "amount": 175.5,
                    "receivedAt": "2026-12-10T14:30:00.000Z",
                }
            ],
            on_create=False, on_update=False,
        ),
        *documents.parties("invoice"),
        Field(
            "quoteId", "quote_id", formats.id_of("quote"), "The quote of the invoice.",
            "018f3a5b7c9d1e2f3a4b5c71", reference=Reference("quote", "quotes", ends=False),
        ),
        Field(
            "orderId", "order_id", formats.id_of("order"), "The order of the invoice.",
            "018f3a5b7c9d1e2f3a4b5c72", on_create=False, on_update=False,
            reference=Reference("order", "orders", ends=False),
        ),
        Field("notes", "notes", formats.text(formats.LONG), "Notes.", "Pix key: ana@x.br"),
    ),
    events={
        "created": ("id", "number", "total", "status", "dueDate", "createdAt"),
        "updated": ("id", "number", "status", "updatedAt"),
        "paid": ("id", "number", "total", "paidAt"),
    },
    filterable=("status",),
    known_after={"created": {"status": "pending"}, "paid": {"status": "paid"}},
    search=("number",),
    filters=(
        Filter(
            "status", "status = {}", "text", "Only invoices of this status.", tuple(TRANSITIONS),
        ),
        Filter(
            "overdue",
            "(status = 'pending' and due_at < case when due_day then {today} else {now} end) = {}",
            "boolean", "Only invoices that are overdue (true) or not overdue (false).",
        ),
        Filter(
            "from", "created_at >= {}", "from",
            "Only invoices created at this time or later; a date without a time means the begin of "
            "that day in the owner's time zone.",
        ),
        Filter(
            "to", "created_at < {}", "to",
            "Only invoices created up to this time; a date without a time includes the whole day "
            "in the owner's time zone.",
        ),
        documents.only("invoice", "contactId", "contact_id", "contact"),
        documents.only("invoice", "companyId", "company_id", "company"),
        documents.only("invoice", "dealId", "deal_id", "deal"),
        documents.only("invoice", "quoteId", "quote_id", "quote"),
        documents.only("invoice", "orderId", "order_id", "order"),
        Filter("number", "number = {}", "text", "Only the invoice with this number."),
    ),
    sorts=(*BY_TIME, Sort("dueDate", "due_at")),
    derived=(
        Derived(
            "overdue", ("status", "due_at", "due_day"), documents.is_overdue, {"type": "boolean"},
            "Whether the invoice is pending after its due date.", False,
        ),
    ),
    deletable=False,
)  # fmt: skip

_OF_ORDER = frozenset(("items", "subtotal", "discount", "shipping", "total", "due_at", "due_day"))


def _guard(before: Record, changes: Mapping[str, Any]) -> None:
    """Raise conflict for a change of columns that the order of the invoice sets."""
    if before["order_id"] is not None and not _OF_ORDER.isdisjoint(changes):
        raise Refusal(
            "conflict",
            "This invoice belongs to an order, which decides its lines, amounts and due date; "
            "cancel it and create another invoice.",
        )


INVOICE = Kind(
    INVOICES, TRANSITIONS, open="pending", stamps=_STAMPS, announced={"paid": "paid"},
    follow=order_ends.follow, guard=_guard,
    restored={"paid": PAY_TAKES, "canceled": ("canceledAt", *CANCEL_TAKES)},
)  # fmt: skip


async def create(tx: Tx, actor: Actor, draft: Draft) -> Record:
    """Create a pending invoice. See documents.create."""
    return await documents.create(tx, actor, INVOICE, draft)


async def change(
    tx: Tx, actor: Actor, record_id: str, draft: Draft, expected: frozenset[str] | None = None
) -> Record:
    """Change a pending invoice; `status` can be set like by the verbs. See documents.change."""
    return await documents.change(tx, actor, INVOICE, record_id, draft, expected)


async def pay(tx: Tx, actor: Actor, record_id: str, draft: Draft) -> Record:
    """Mark an invoice as paid; the draft takes PAY_TAKES.

    Emits only invoice.paid; the payment of an order also emits order.paid, and wins its deal, which
    emits deal.updated.
    """
    return await documents.step(tx, actor, INVOICE, record_id, "paid", draft)


async def cancel(tx: Tx, actor: Actor, record_id: str, draft: Draft) -> Record:
    """Cancel an invoice and its order; the draft takes CANCEL_TAKES. See documents.step."""
    return await documents.step(tx, actor, INVOICE, record_id, "canceled", draft)
