"""Declares the orders of stores. A checkout creates them, and requests only cancel them."""

from typing import Any

from gateway.domain.sales import document_lines, documents
from gateway.records.resource import (
    BY_TIME,
    LASTS,
    DerivedColumn,
    Field,
    Filter,
    Kind,
    Reference,
    Resource,
    Sort,
)
from gateway.records.values import formats, instants, nested, numbers, postal, taxpayer
from gateway.records.values.emails import fold_email
from gateway.records.values.formats import Format
from gateway.records.values.nested import Member

TRANSITIONS = {
    "pending": ("paid", "canceled", "expired"),
    "paid": (),
    "canceled": (),
    "expired": (),
}
CANCEL_TAKES = ("reason",)
EXPIRED = "The order expired."
"""The start of the numbers; one series per owner, whatever the store."""


def _shown(name: str, column: str, form: Format, text: str, example: Any, **more: Any) -> Field:
    """Return a field that no request writes."""
    return Field(name, column, form, text, example, on_create=False, on_update=False, **more)


def _only(name: str, column: str, what: str, *, kind: Kind = "id", ends: bool = False) -> Filter:
    lasts = f" and {LASTS}" if ends else ""
    return Filter(name, f"{column} = {{}}{lasts}", kind, f"Only orders of this {what}.")


_MONEY = numbers.money()
_INSTANT = instants.instant()
_NOON = "2026-12-01T12:00:00.000Z"

_FIELDS = (
    _shown(
        "number", "number", formats.text(40), "Number, without gaps.", "ORD-000001", made=True
    ),
    _shown(
        "status", "status", formats.one_of(*TRANSITIONS),
        "Pending until its invoice is paid, until it is canceled, or until it expires.",
        "pending", made=True,
    ),
    _shown(
        "storeId", "store_id", formats.id_of("store"), "The store.",
        "018f3a5b7c9d1e2f3a4b5c70", reference=Reference("store", "stores"),
    ),
    _shown(
        "customerId", "customer_id", formats.id_of("client"),
        "The customer who was signed in at the checkout.", "018f3a5b7c9d1e2f3a4b5c75",
    ),
    _shown(
        "items", "items", document_lines.items(1),
        "The lines, with the prices of the checkout.",
        document_lines.EXAMPLE, made=True, shown_example=document_lines.SHOWN_EXAMPLE,
    ),
    _shown("subtotal", "subtotal", _MONEY, "Sum of the lines, in BRL.", 170, made=True),
    _shown("discount", "discount", _MONEY, "Discount of the coupon, in BRL.", 10, made=True),
    _shown("shipping", "shipping", _MONEY, "Shipping costs, in BRL.", 15.5, made=True),
    _shown(
        "total", "total", _MONEY, "Subtotal - discount + shipping, in BRL.", 175.5, made=True
    ),
    _shown(
        "currency", "currency", formats.one_of("BRL"), "Currency of the amounts.", "BRL",
        default="BRL",
    ),
    _shown(
        "coupon", "coupon",
        nested.object_text(
            (
                Member("code", formats.title(64), "Code.", required=True),
                Member(
                    "discountPercentage", numbers.percentage(),
                    "Discount in percent of the products, if it is relative.",
                ),
                Member("discountValue", _MONEY, "Discount in BRL, if it is absolute."),
            )
        ),
        "The used coupon.", {"code": "WELCOME10", "discountValue": 10},
    ),
    _shown(
        "shippingOption", "shipping_option",
        nested.object_text(
            (
                Member("type", formats.slug(), "Key of the option.", required=True),
                Member("name", formats.title(), "Name.", required=True),
                Member("price", _MONEY, "Price in BRL.", required=True),
                Member(
                    "deadline", numbers.integer(0, 365), "Days until delivery.", required=True
                ),
            )
        ),
        "The chosen way to ship.",
        {"type": "express", "name": "Express", "price": 15.5, "deadline": 2},
    ),
    _shown("name", "name", formats.title(), "Name of the buyer.", "Maria da Silva", made=True),
    _shown(
        "email", "email", formats.email(), "Email of the buyer.", "maria@example.com",
        made=True, beside=(DerivedColumn("email_folded", fold_email),),
    ),
    _shown("phone", "phone", formats.phone(), "Phone of the buyer.", "(11) 98888-7777"),
    _shown(
        "document", "document", taxpayer.taxpayer(),
        "CPF or CNPJ of the buyer, without mask.", "52998224725",
    ),
    _shown(
        "address", "address", nested.object_text(postal.ADDRESS), "Address of the delivery.",
        postal.EXAMPLE,
    ),
    _shown(
        "paymentMethod", "payment_method", formats.one_of(*documents.METHODS),
        "The method of payment that the buyer chose.", "pix", made=True,
    ),
    _shown("notes", "notes", formats.text(formats.LONG), "Notes of the buyer.", "Ring twice."),
    _shown(
        "expiresAt", "expires_at", _INSTANT, "Time at which a pending order expires.",
        "2026-12-04T12:00:00.000Z", made=True,
    ),
    _shown("paidAt", "paid_at", _INSTANT, "Time of payment.", _NOON),
    _shown("canceledAt", "canceled_at", _INSTANT, "Time of cancellation or expiry.", _NOON),
    _shown(
        "reason", "reason", formats.text(formats.LONG), "Reason for cancellation.",
        "Ordered twice",
    ),
    _shown(
        "latePaymentAt", "late_payment_at", _INSTANT,
        "Time of a payment that came after the order had ended; its invoice has the details.",
        _NOON,
    ),
    _shown(
        "contactId", "contact_id", formats.id_of("contact"), "The contact of the buyer.",
        "018f3a5b7c9d1e2f3a4b5c6e", reference=Reference("contact", "contacts"),
    ),
    _shown(
        "invoiceId", "invoice_id", formats.id_of("invoice"), "The invoice of the order.",
        "018f3a5b7c9d1e2f3a4b5c73", reference=Reference("invoice", "invoices", ends=False),
    ),
    _shown(
        "dealId", "deal_id", formats.id_of("deal"), "The deal of the order.",
        "018f3a5b7c9d1e2f3a4b5c6f", reference=Reference("deal", "deals"),
    ),
)  # fmt: skip
_UNSET = dict.fromkeys(("paidAt", "canceledAt", "reason", "latePaymentAt"))
_CANCELED = {"paidAt": None, "latePaymentAt": None}
_DATA = ("id", *(field.name for field in _FIELDS), "createdAt")

ORDERS = Resource(
    noun="order",
    plural="orders",
    table="orders",
    description="An order of a store, made by a checkout.",
    fields=_FIELDS,
    events={
        "created": _DATA,
        "paid": (*_DATA, "updatedAt"),
        "canceled": (*_DATA, "updatedAt"),
        "expired": (*_DATA, "updatedAt"),
    },
    known_after={
        "created": {**_UNSET, "status": "pending"},
        "paid": {"status": "paid", "canceledAt": None, "reason": None, "latePaymentAt": None},
        "canceled": {**_CANCELED, "status": "canceled"},
        "expired": {**_CANCELED, "status": "expired", "reason": EXPIRED},
    },
    search=("number", "name", "email"),
    numbers=("phone", "document"),
    filters=(
        Filter("status", "status = {}", "text", "Only orders of this status.", tuple(TRANSITIONS)),
        _only("storeId", "store_id", "store", ends=True),
        _only("customerId", "customer_id", "customer"),
        _only("contactId", "contact_id", "contact", ends=True),
        _only("dealId", "deal_id", "deal", ends=True),
        Filter("number", "number = {}", "text", "Only the order with this number."),
        Filter(
            "latePayment", "(late_payment_at is not null) = {}", "boolean",
            "Only orders with (true) or without a payment that came after they had ended.",
        ),
        Filter(
            "from", "created_at >= {}", "from",
            "Only orders created at this time or later; a date without a time means the begin of "
            "that day in the owner's time zone.",
        ),
        Filter(
            "to", "created_at < {}", "to",
            "Only orders created up to this time; a date without a time includes the whole day in "
            "the owner's time zone.",
        ),
    ),
    sorts=(*BY_TIME, Sort("expiresAt", "expires_at")),
    deletable=False,
)  # fmt: skip
