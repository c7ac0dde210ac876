"""A quote or an invoice as a sheet of paper for the customer."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from gateway.console.desk import calendar_days
from gateway.console.frame import pages, templates
from gateway.console.frame.guard import Visitor
from gateway.console.frame.reader import READER, Reader
from gateway.domain.contacts.companies import COMPANIES
from gateway.domain.contacts.contacts import CONTACTS
from gateway.domain.sales.invoices import INVOICES
from gateway.domain.sales.quotes import QUOTES
from gateway.records import actions
from gateway.records.access import Actor
from gateway.records.record import Record
from gateway.records.resource import Resource
from gateway.server.app_keys import DB
from outbox.database.transaction import Tx

UNTIL = {QUOTES: ("valid_until", "valid_day"), INVOICES: ("due_at", "due_day")}
"""The documents that can be printed, with the columns of their date and of its form."""
AMOUNTS = ("subtotal", "discount", "shipping", "total")


@dataclass(frozen=True, slots=True)
class Sheet:
    """A document with its customer."""

    document: Record
    contact: Record | None
    company: Record | None


async def show(resource: Resource, request: web.Request, visitor: Visitor) -> web.StreamResponse:
    """Show the sheet of a document."""
    reader, record_id = request[READER], pages.id_of(request)
    sheet = await request.app[DB].read(_sheet, visitor.actor, resource, record_id)
    document = sheet.document
    at, day = UNTIL[resource]
    context = {
        "sheet": sheet, "document": document, "kind": resource.noun,
        "here": f"/console/{resource.plural}/{document.id}", "many": resource.plural,
        "items": document.shown("items"), "amounts": _amounts(document),
        "discounted": any(line.get("discount") for line in document.shown("items")),
        "dated": _day(document["created_at"], is_day=False, reader=reader),
        "until": _day(document[at], is_day=bool(document[day]), reader=reader),
    }  # fmt: skip
    return templates.render(request, visitor, "print.html", context)


async def _sheet(tx: Tx, actor: Actor, resource: Resource, record_id: str) -> Sheet:
    document = await actions.read(tx, actor, resource, record_id)
    contact = await _party(tx, actor, CONTACTS, document["contact_id"])
    return Sheet(document, contact, await _party(tx, actor, COMPANIES, document["company_id"]))


async def _party(tx: Tx, actor: Actor, resource: Resource, party_id: str | None) -> Record | None:
    if party_id is None:
        return None
    page = await actions.some(tx, actor, resource, [party_id])
    return page.records[0] if page.records else None


def _amounts(document: Record) -> Sequence[tuple[str, Any]]:
    """Return the amounts that a reader adds up; what is zero in between is left out."""
    named = [name for name in AMOUNTS if name in document.resource.named]
    shown = [(name, document.shown(name)) for name in named]
    if all(not value for name, value in shown if name in ("discount", "shipping")):
        return shown[-1:]
    return [(name, value) for name, value in shown if value or name in ("subtotal", "total")]


def _day(at: int | None, *, is_day: bool, reader: Reader) -> str:
    if at is None:
        return ""
    return calendar_days.words(calendar_days.date_of(at, is_day, reader), reader, "long")
