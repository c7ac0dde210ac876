"""Writes a quote or an invoice as a sheet for the customer: what a page and a PDF file show."""

from collections.abc import Sequence
from dataclasses import dataclass

from babel.dates import format_date

from gateway.domain.accounts import users
from gateway.domain.contacts.companies import COMPANIES
from gateway.domain.contacts.contacts import CONTACTS
from gateway.domain.sales import company_settings, pix
from gateway.domain.sales.company_settings import CompanySettings, Logo
from gateway.domain.sales.invoices import INVOICES
from gateway.domain.sales.quotes import QUOTES
from gateway.records import actions
from gateway.records.audit import Actor
from gateway.records.record import Record
from gateway.records.resource import Resource
from gateway.records.values import cnpj, dates
from gateway.records.values.masks import masked
from gateway.texts import Texts
from outbox.database.transaction import Row, Tx

DOCUMENTS = {one.noun: one for one in (QUOTES, INVOICES)}
"""The resources that have sheets, by noun."""
_UNTIL = {"quote": ("valid_until", "valid_day"), "invoice": ("due_at", "due_day")}
"""The columns of a document's date and of its form."""
_AMOUNTS = ("subtotal", "discount", "shipping", "total")


@dataclass(frozen=True, slots=True)
class Source:
    """A document with its parties, as the database has them."""

    document: Record
    contact: Record | None
    company: Record | None
    settings: CompanySettings
    user: Row
    zone: str


@dataclass(frozen=True, slots=True)
class SheetLine:
    """A line of a sheet; the discount is empty when no line has one."""

    description: str
    quantity: str
    price: str
    discount: str
    total: str


@dataclass(frozen=True, slots=True)
class Sheet:
    """A document as texts in one language."""

    language: str
    kind: str
    number: str
    title: str
    dates: Sequence[tuple[str, str]]
    """Labels and days."""
    state: str
    """A state that the reader must know, such as overdue; else empty."""
    state_word: str
    sender: str
    sender_lines: Sequence[str]
    logo: Logo | None
    customer_label: str
    customer_lines: Sequence[str]
    headings: SheetLine
    lines: Sequence[SheetLine]
    amounts: Sequence[tuple[str, str]]
    """Labels and amounts; the last one is the total."""
    bank_label: str
    bank: str
    pix_label: str
    pix: str
    """The code of the Pix payment of a pending invoice; empty without a key."""
    notes_label: str
    notes: str


async def read(tx: Tx, actor: Actor, resource: Resource, record_id: str) -> Source:
    """Return a document with its parties. Raises not_found, forbidden."""
    document = await actions.read(tx, actor, resource, record_id)
    user = await users.one(tx, actor.owner_id)
    assert user is not None, "an owner of records is a user"
    return Source(
        document,
        await _party(tx, actor, CONTACTS, document["contact_id"]),
        await _party(tx, actor, COMPANIES, document["company_id"]),
        await company_settings.of(tx, actor.owner_id),
        user,
        actor.zone,
    )


async def _party(tx: Tx, actor: Actor, resource: Resource, party_id: str | None) -> Record | None:
    if party_id is None:
        return None
    page = await actions.some(tx, actor, resource, [party_id])
    return page.records[0] if page.records else None


def written(source: Source, texts: Texts) -> Sheet:
    """Return the sheet of a document in a language."""
    document, values = source.document, source.settings.values
    kind = document.resource.noun
    items = document.shown("items")
    discounted = any(item.get("discount") for item in items)
    code, state = pix_code(source), _state(document)
    return Sheet(
        language=texts.code,
        kind=kind,
        number=document["number"],
        title=f"{texts(f'print.{kind}')} {document['number']}",
        dates=_dates(source, texts),
        state=state,
        state_word=_state_word(kind, state, texts),
        sender=sender_of(source),
        sender_lines=_sender_lines(source),
        logo=source.settings.logo,
        customer_label=texts("print.customer"),
        customer_lines=_customer_lines(source),
        headings=SheetLine(
            texts("print.description"), texts("print.quantity"), texts("print.price"),
            texts("print.discount") if discounted else "", texts("print.total"),
        ),
        lines=[
            SheetLine(
                item["description"], texts.number(item["quantity"], 3),
                texts.money(item["unitPrice"]),
                texts.money(item.get("discount") or 0) if discounted else "",
                texts.money(item["total"]),
            )
            for item in items
        ],
        amounts=_amounts(document, texts),
        bank_label=texts("print.bank"),
        bank=(values["bank_details"] or "") if kind == "invoice" else "",
        pix_label=texts("print.pix"),
        pix=code,
        notes_label=texts("print.notes"),
        notes=document["notes"] or "",
    )  # fmt: skip


def sender_of(source: Source) -> str:
    """Return the name of who sends the document."""
    values = source.settings.values
    return values["trade_name"] or values["legal_name"] or str(source.user["name"])


def pix_code(source: Source) -> str:
    """Return the code that pays a pending invoice by Pix, empty without one."""
    document, key = source.document, source.settings.values["pix_key"]
    if document.resource is not INVOICES or document["status"] != "pending" or key is None:
        return ""
    values = source.settings.values
    name = values["legal_name"] or values["trade_name"] or str(source.user["name"])
    return pix.code(key, name, document["total"], document["number"]) or ""


def _dates(source: Source, texts: Texts) -> Sequence[tuple[str, str]]:
    document, zone = source.document, source.zone
    kind = document.resource.noun
    at, is_day = (document[column] for column in _UNTIL[kind])
    dated = (texts("print.dated"), day_text(document["created_at"], False, zone, texts))
    if at is None:
        return (dated,)
    return (dated, (texts(f"print.until.{kind}"), day_text(at, bool(is_day), zone, texts)))


def day_text(at: int, is_day: bool, zone: str, texts: Texts) -> str:
    """Return a day as text: a bare date as it is, an instant in the zone."""
    day = dates.local(at, "UTC" if is_day else zone)
    return str(format_date(day, "long", locale=texts.locale))


def _state(document: Record) -> str:
    status = str(document["status"])
    if document.resource is INVOICES and document.shown("overdue"):
        return "overdue"
    return "" if status in ("draft", "sent", "pending") else status


def _state_word(kind: str, state: str, texts: Texts) -> str:
    if not state:
        return ""
    return texts(f"print.state.{f'{kind}_canceled' if state == 'canceled' else state}")


def _sender_lines(source: Source) -> Sequence[str]:
    values = source.settings.values
    number = values["cnpj"]
    legal = values["legal_name"] if values["trade_name"] else None
    lines = [
        legal,
        f"CNPJ {cnpj.masked(number)}" if number else None,
        *(values["address"] or "").splitlines(),
        masked("phone", values["phone"]),
        str(source.user["email"]),
    ]
    return [line for line in lines if line and line.strip()]


def _customer_lines(source: Source) -> Sequence[str]:
    lines: list[str | None] = []
    if source.company is not None:
        number = source.company["cnpj"]
        lines += [source.company["name"], f"CNPJ {cnpj.masked(number)}" if number else None]
    if source.contact is not None:
        lines += [masked(column, source.contact[column]) for column in ("name", "email", "phone")]
    return [line for line in lines if line]


def _amounts(document: Record, texts: Texts) -> Sequence[tuple[str, str]]:
    """Return the amounts that a reader adds up; what is zero in between is left out."""
    named = [name for name in _AMOUNTS if name in document.resource.named]
    shown = [(name, document.shown(name)) for name in named]
    if all(not value for name, value in shown if name in ("discount", "shipping")):
        shown = shown[-1:]
    return [
        (texts(f"print.{name}"), f"{'− ' if name == 'discount' else ''}{texts.money(value)}")
        for name, value in shown
        if value or name in ("subtotal", "total")
    ]
