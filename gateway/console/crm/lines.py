"""The lines of a quote or an invoice in its form: products to add, and totals before it is saved.

The totals come from the code that stores a document, so that both always agree.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from gateway.console.layout import templates, typed_numbers
from gateway.console.layout.guard import Form, SignedIn
from gateway.console.layout.pages import id_of
from gateway.console.layout.reader import READER
from gateway.console.records import form_pages, typed_values
from gateway.console.records.sections import SECTIONS
from gateway.domain.sales import document_lines, documents
from gateway.domain.sales.documents import AMOUNTS, Kind
from gateway.domain.sales.invoices import INVOICE
from gateway.domain.sales.products import PRODUCTS
from gateway.domain.sales.quotes import QUOTE
from gateway.records import actions
from gateway.records.audit import Actor
from gateway.records.errors import Fault, Refusal
from gateway.records.query import Query
from gateway.records.record import Draft, Record, check
from gateway.server.app_keys import DB
from gateway.texts import Texts
from outbox.database.transaction import Tx
from outbox.ids import is_id

KINDS = (QUOTE, INVOICE)
FOUND = 8
"""Products that a search offers."""
LONGEST = 200
AMOUNTS_SHOWN = ("subtotal", "discount", "shipping", "total")
UNFILLED = ("required", "too_few")
"""Codes of faults of a document that has no lines yet."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What the form asks for: products with a text, and one to add."""

    find: str
    add: str
    record_id: str | None


@dataclass(slots=True)
class Looked:
    """Products that were found, the one to add, and the document's columns or its faults."""

    found: Sequence[Record] = ()
    added: Record | None = None
    columns: Mapping[str, Any] = field(default_factory=dict)
    faults: Sequence[Fault] = ()


async def edit(
    kind: Kind, request: web.Request, visitor: SignedIn, form: Form
) -> web.StreamResponse:
    """Show the form with the products of the field `find`, with the one of `add`, and its totals.

    For htmx only the part with the lines, and with `only` only the totals.
    """
    section = SECTIONS[kind.resource.plural]
    record_id = id_of(request) if "id" in request.match_info else None
    form_inputs = section.inputs(request[READER].texts, creating=record_id is None)
    typed, texts = typed_values.of_form(form, form_inputs), request[READER].texts
    add = form.text("add").lower()
    asked = Asked(
        form.text("find").strip()[:LONGEST].replace("\0", ""), add if is_id(add) else "", record_id
    )
    used = [one for one in form_inputs if one.name in AMOUNTS]
    if asked.add:
        product = await request.app[DB].read(_product, visitor.actor, asked.add)
        if product is not None:
            typed["items"] = [*typed["items"], _line(product, texts)]
    values = typed_values.values(typed, used, texts, creating=True)
    draft = check(kind.resource, values, from_json=True, takes=AMOUNTS)
    looked = await request.app[DB].scan(
        visitor.actor.owner_id, _look, visitor.actor, kind, draft, asked
    )
    wrong = looked.faults
    if not typed["items"]:
        # Who has not entered a line yet has made no mistake.
        wrong = [fault for fault in wrong if fault.code not in UNFILLED]
    faults = typed_values.faults(texts, wrong, form_inputs, typed)
    columns = looked.columns
    context = {
        "section": section, "typed": typed, "parts": section.parts, "spare": typed_values.SPARE,
        "input": next(one for one in form_inputs if one.name == "items"),
        "record": None if record_id is None else {"id": record_id}, "found": looked.found,
        "find": asked.find, "faults": faults, "told": list(dict.fromkeys(faults.values())),
        "sums": [line.total / 100 for line in document_lines.read(columns.get("items", "[]"))],
        "amounts": [
            (name, columns[name] / 100)
            for name in AMOUNTS_SHOWN
            if name in columns and name in kind.resource.named
        ],
    }  # fmt: skip
    if "HX-Request" not in request.headers:
        more = {one: context[one] for one in ("found", "find", "told", "sums", "amounts")}
        return await form_pages.again(section, request, visitor, form, typed, more)
    part = "parts/lines_totals.html" if form.text("only") else "parts/lines_editor.html"
    return templates.render(request, visitor, part, context)


async def _look(tx: Tx, actor: Actor, kind: Kind, draft: Draft, asked: Asked) -> Looked:
    looked = Looked()
    if asked.find:
        query = Query(limit=FOUND, search=asked.find, counted=False)
        looked.found = (await actions.page(tx, actor, PRODUCTS, query)).records
    try:
        looked.columns = await documents.drafted(tx, actor, kind, draft, asked.record_id)
    except Refusal as refusal:
        if not refusal.faults:
            raise
        looked.faults = refusal.faults
    return looked


async def _product(tx: Tx, actor: Actor, product_id: str) -> Record | None:
    page = await actions.some(tx, actor, PRODUCTS, [product_id])
    return page.records[0] if page.records else None


def _line(product: Record, texts: Texts) -> Mapping[str, str]:
    """Return one of a product as it would be typed."""
    return {
        "id": "", "productId": product.id, "description": product["name"], "quantity": "1",
        "unitPrice": typed_numbers.written(product.shown("price"), texts, 2), "discount": "",
    }  # fmt: skip
