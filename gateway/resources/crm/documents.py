"""What quotes and invoices share: fields, money, numbers, and how they are made and changed.

They are ordinary code on the engine's parts, since their fields depend on one another.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gateway import actions, formats, numbering, store
from gateway.access import Caller
from gateway.errors import Fault, Refusal
from gateway.resource import Field, Reference, Resource
from gateway.resources.crm import lines
from gateway.resources.crm.lines import Line
from gateway.store import Record
from gateway.transitions import Table
from gateway.validation import Draft
from gateway.views import View
from outbox.database import Tx

MONEY = ("items", "discount", "shipping", "total")
"""The fields that together make the amounts of a document."""


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of document: its declaration, its numbers, its states."""

    resource: Resource
    prefix: str
    table: Table
    open: str
    """The state in which its content may be changed."""
    stamps: Mapping[str, str]
    """State → the column that keeps when it was reached."""


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


def amounts(before: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, int]:
    """The amounts of a document of which `values` are written over `before`, both by column.

    total = subtotal - discount + shipping, and subtotal is what the lines come to. Without lines
    the total says what the subtotal is. Raises Refusal through `_wrong`.
    """
    found = {**before, **values}
    discount, shipping = found.get("discount") or 0, found.get("shipping") or 0
    asked: int | None = values.get("total")
    listed: Sequence[Line] = found["items"]
    if listed:
        subtotal = sum(line.total for line in listed)
    elif asked is not None:
        subtotal = asked + discount - shipping
    else:
        subtotal = before["subtotal"]
    return {
        "subtotal": subtotal,
        "discount": discount,
        "shipping": shipping,
        "total": subtotal - discount + shipping,
    }


def amount_faults(money: Mapping[str, int], asked: int | None) -> list[Fault]:
    """What is wrong with the amounts of a document whose sender says that `asked` is the total."""
    faults = []
    if money["subtotal"] < 0:
        faults.append(Fault("shipping", "too_large", "Send shipping of at most the total."))
    elif money["discount"] > money["subtotal"]:
        worth = formats.show_money(money["subtotal"])
        faults.append(Fault("discount", "too_large", f"Send a discount of at most {worth}."))
    elif asked is not None and asked != money["total"]:
        comes_to = formats.show_money(money["total"])
        faults.append(
            Fault("total", "disagrees", f"The items come to {comes_to}; send that or none.")
        )
    if max(money["subtotal"], money["total"]) > formats.MOST_CENTAVOS:
        most = formats.show_money(formats.MOST_CENTAVOS)
        faults.append(Fault("total", "out_of_range", f"A document may come to {most} at most."))
    return faults
