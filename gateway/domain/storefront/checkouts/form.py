"""Checks what a buyer sends with a checkout."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from msgspec import json

from gateway.domain.sales import documents
from gateway.records.record import check
from gateway.records.resource import Field, Form
from gateway.records.values import formats, nested, numbers, postal, taxpayer
from gateway.records.values.folding import filled

CHECKOUT = Form(
    noun="checkout",
    description="What a buyer sends with an order.",
    fields=(
        Field("email", "email", formats.email(), "Email.", "maria@example.com", required=True),
        Field("name", "name", formats.title(), "Name.", "Maria da Silva", required=True),
        Field("phone", "phone", formats.phone(), "Phone number.", "(11) 98888-7777"),
        Field("document", "document", taxpayer.taxpayer(), "CPF or CNPJ.", "529.982.247-25"),
        Field(
            "address", "address", nested.object_text(postal.ADDRESS), "Address of the delivery.",
            postal.EXAMPLE,
        ),
        Field(
            "paymentMethod", "payment_method", formats.one_of(*documents.METHODS),
            "Method of payment.", "pix", default="pix",
        ),
        Field("notes", "notes", formats.text(5_000), "Notes for the store.", "Ring twice."),
        Field(
            "expectedTotal", "expected_total", numbers.integer(0, numbers.MOST_CENTAVOS),
            "The total that the buyer agreed to, in centavos.", 17_550,
        ),
        Field(
            "idempotencyKey", "key", formats.title(255), "A key of the client.",
            "6b7f0c1e-order-1042",
        ),
    ),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class CheckoutInput:
    """The checked input of a checkout."""

    buyer: Mapping[str, Any]
    """The buyer's columns of an order."""
    key: str | None
    expected_total: int | None
    """The total that the buyer agreed to, in centavos; None for the one that was shown last."""
    fingerprint: bytes
    """A digest of the values; equal for repeats of a request."""

    @property
    def address(self) -> Mapping[str, Any] | None:
        text = self.buyer.get("address")
        address: Mapping[str, Any] | None = None if text is None else json.decode(text)
        return address


def read(sent: Mapping[str, Any]) -> CheckoutInput:
    """Check the input of a checkout. Raises every fault of its values."""
    draft = check(CHECKOUT, filled(sent), creating=True)
    draft.must_hold()
    buyer = dict(draft.values)
    key = buyer.pop("key", None)
    text = json.encode(buyer, order="sorted")
    expected_total = buyer.pop("expected_total", None)
    return CheckoutInput(buyer, key, expected_total, hashlib.sha256(text).digest())
