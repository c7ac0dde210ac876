"""What an owner can do with a record besides editing it: one table, a button and a page for each.

The pages send the units of the REST API; a state that refuses is told in a sentence.
It is one module because the page of a verb, and its answers, follow from its row of the table.
"""

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from aiohttp import web

from gateway.console.layout import error_pages, pages, templates, wording
from gateway.console.layout.display import word_of
from gateway.console.layout.guard import Form, SignedIn
from gateway.console.layout.reader import READER
from gateway.console.records import inputs, typed_values
from gateway.console.records.inputs import Input
from gateway.console.records.nouns import Words
from gateway.console.records.references import name_of
from gateway.console.records.typed_values import Typed
from gateway.domain.contacts import tasks
from gateway.domain.contacts.tasks import TASKS
from gateway.domain.sales import (
    deals,
    invoices,
    order_payments,
    order_verbs,
    orders,
    quotes,
)
from gateway.domain.sales.deals import DEALS
from gateway.domain.sales.invoices import INVOICES
from gateway.domain.sales.orders import ORDERS
from gateway.domain.sales.quotes import QUOTES
from gateway.domain.storefront.catalogue import reviews
from gateway.domain.storefront.catalogue.reviews import REVIEWS
from gateway.domain.storefront.payments import reported_payments
from gateway.records import actions
from gateway.records.audit import Actor
from gateway.records.errors import Refusal
from gateway.records.record import Draft, Record, check
from gateway.records.resource import Resource
from gateway.server.app_keys import DB
from gateway.texts import Texts
from outbox.database.transaction import Tx

Unit = Callable[..., Awaitable[Record]]
VIEW = re.compile("due/[a-z]+([?]|$)", re.ASCII)
TOLD = ("invalid_transition", "conflict", "precondition_failed")
"""Codes of refusals that come from the state of the record, not from what was typed."""


@dataclass(frozen=True, eq=False, slots=True)
class Verb:
    """A verb: the unit that does it, and for which records it is offered.

    `takes` are the fields of `fields_of` that it asks for. With `asks`, a page asks before, because
    there are such fields or because it cannot be undone; without, a button does it at once.
    """

    resource: Resource
    name: str
    unit: Unit
    offered: Callable[[Record], bool]
    takes: Sequence[str] = ()
    fields_of: Resource | None = None
    asks: bool = True
    risky: bool = False
    listed: bool = False
    """Whether rows of the list have the button too."""
    placed: bool = False
    """Whether a part of the page has the button."""
    keys: str = ""
    """The start of the keys of its texts, if not `verb.noun.name`."""
    lead: str = ""
    """The key of what it means, if not `keys.lead`."""
    done: str = ""
    """The message afterwards, if not `noun_name`."""
    told: str = ""
    """The key of what is said when the state refuses, if it is more than the state."""
    first: Callable[[Record], Mapping[str, str]] = lambda record: {}
    """What the form has in its fields at first."""

    @property
    def path(self) -> str:
        return f"/console/{self.resource.plural}/{{id}}/{self.name}"

    @property
    def text(self) -> str:
        """The key of its button; the keys of its other texts begin with it."""
        return self.keys or f"verb.{self.resource.noun}.{self.name}"


@dataclass(frozen=True, slots=True)
class _Answer:
    """What a page says above its form, its status, and the faults of its fields."""

    said: str
    status: int = 200
    faults: Mapping[str, str] = field(default_factory=dict)


def _to(table: Mapping[str, Sequence[str]], target: str) -> Callable[[Record], bool]:
    return lambda record: target in table[record["status"]]


def _end(status: str) -> Unit:
    """Return the unit that sets the status of a deal, which any status may follow."""

    async def unit(tx: Tx, actor: Actor, record_id: str, draft: Draft | None = None) -> Record:
        sent = {} if draft is None else draft.sent
        if draft is not None:
            draft.must_hold()
        return await deals.change(
            tx, actor, record_id, check(DEALS, {**sent, "status": status}, from_json=True)
        )

    return unit


def _status(status: str) -> Unit:
    """Return the unit that sets the status of a review."""

    async def unit(tx: Tx, actor: Actor, record_id: str) -> Record:
        draft: Draft = check(REVIEWS, {"status": status})
        return await reviews.change(tx, actor, record_id, draft)

    return unit


def _is(*statuses: str) -> Callable[[Record], bool]:
    return lambda record: record["status"] in statuses


_QUOTE = partial(_to, quotes.TRANSITIONS)
_INVOICE = partial(_to, invoices.TRANSITIONS)
_ORDER = partial(_to, orders.TRANSITIONS)
VERBS: tuple[Verb, ...] = (
    Verb(
        TASKS, "complete", tasks.complete, lambda one: not one["completed"], asks=False,
        listed=True,
    ),
    Verb(TASKS, "reopen", tasks.reopen, lambda one: bool(one["completed"]), asks=False,
         listed=True),
    Verb(DEALS, "win", _end("won"), _is("open", "lost"), asks=False),
    Verb(DEALS, "lose", _end("lost"), _is("open", "won"), ("lostReason",), risky=True),
    Verb(DEALS, "reopen", _end("open"), _is("won", "lost"), asks=False),
    Verb(QUOTES, "accept", quotes.accept, _QUOTE("accepted")),
    Verb(QUOTES, "reject", quotes.reject, _QUOTE("rejected"), risky=True),
    Verb(QUOTES, "cancel", quotes.cancel, _QUOTE("canceled"), risky=True),
    Verb(
        QUOTES, "convert", quotes.convert,
        lambda one: one["status"] == "accepted" and one["invoice_id"] is None,
        quotes.CONVERT_TAKES, INVOICES,
    ),
    Verb(INVOICES, "pay", invoices.pay, _INVOICE("paid"), invoices.PAY_TAKES),
    Verb(INVOICES, "cancel", invoices.cancel, _INVOICE("canceled"), invoices.CANCEL_TAKES,
         risky=True),
    Verb(
        ORDERS, "pay", order_payments.pay, _ORDER("paid"), invoices.PAY_TAKES, INVOICES,
        keys="order.pay", lead="order.pay_lead", done="order_paid",
        told="error.order_not_pending", first=lambda one: {"method": one["payment_method"]},
    ),
    Verb(
        ORDERS, "cancel", order_verbs.cancel, _ORDER("canceled"), orders.CANCEL_TAKES, risky=True,
        keys="order.cancel", lead="order.cancel_lead", done="order_canceled",
        told="error.order_ended",
    ),
    Verb(
        ORDERS, "settle", reported_payments.settle, lambda one: one["late_payment_at"] is not None,
        asks=False, placed=True, keys="order.settle", done="order_settled",
    ),
    Verb(
        REVIEWS, "publish", _status("published"), _is("pending", "rejected"), asks=False,
        listed=True, keys="review.publish", done="review_published",
    ),
    Verb(
        REVIEWS, "reject", _status("rejected"), _is("pending", "published"), asks=False,
        listed=True, risky=True, keys="review.reject", done="review_rejected",
    ),
)  # fmt: skip


def of(record: Record) -> list[Verb]:
    """Return the verbs that are offered for a record."""
    return [
        verb
        for verb in VERBS
        if verb.resource is record.resource and not verb.placed and verb.offered(record)
    ]


def in_rows(resource: Resource) -> bool:
    """Return whether the rows of a list have buttons of verbs."""
    return any(verb.listed for verb in VERBS if verb.resource is resource)


async def ask(verb: Verb, request: web.Request, visitor: SignedIn) -> web.StreamResponse:
    """Ask for the fields of a verb, or whether to do what cannot be undone."""
    record = await _read(verb, request, visitor)
    form_inputs = _inputs(verb, request[READER].texts)
    answer = _Answer("" if verb.offered(record) else _not_now(request[READER].texts, verb, record))
    first = {name: [text] for name, text in verb.first(record).items()}
    typed = typed_values.of_form(Form(first), form_inputs)
    return _page(request, visitor, verb, record, typed, answer)


async def act(
    verb: Verb, request: web.Request, visitor: SignedIn, form: Form
) -> web.StreamResponse:
    """Do it, and show the record, or the one that it made; with the field `list`, the list."""
    record_id, texts = pages.id_of(request), request[READER].texts
    form_inputs = _inputs(verb, texts)
    typed = typed_values.of_form(form, form_inputs)
    takes: list[Draft] = []
    if verb.takes:
        values = typed_values.values(
            typed, form_inputs, texts, creating=True, zone=visitor.actor.zone
        )
        takes = [check(verb.fields_of or verb.resource, values, from_json=True, takes=verb.takes)]
    try:
        record_after = await request.app[DB].write(verb.unit, visitor.actor, record_id, *takes)
    except Refusal as refusal:
        if refusal.code not in TOLD and not refusal.faults:
            raise
        record = await _read(verb, request, visitor)
        faults = typed_values.faults(texts, refusal.faults, form_inputs, typed)
        said, status = faults.get("", ""), error_pages.status_of(refusal)
        if not refusal.faults:
            said, status = _told(texts, verb, record, refusal), 409
        return _page(request, visitor, verb, record, typed, _Answer(said, status, faults))
    done = verb.done or f"{verb.resource.noun}_{verb.name}"
    if form.all("list"):
        return pages.to(list_at(verb.resource, form.text("list")), done)
    return pages.to(f"/console/{record_after.resource.plural}/{record_after.id}", done)


def _inputs(verb: Verb, texts: Texts) -> list[Input]:
    named = (verb.fields_of or verb.resource).named
    return inputs.inputs(texts, [named[name] for name in verb.takes])


async def _read(verb: Verb, request: web.Request, visitor: SignedIn) -> Record:
    record_id = pages.id_of(request)
    return await request.app[DB].read(actions.read, visitor.actor, verb.resource, record_id)


def _told(texts: Texts, verb: Verb, record: Record, refusal: Refusal) -> str:
    if refusal.code == "invalid_transition":
        return _not_now(texts, verb, record)
    key = f"{verb.text}.conflict"
    return texts(key) if key in texts else wording.refused(texts, refusal)


def _not_now(texts: Texts, verb: Verb, record: Record) -> str:
    """Return that the state of a record no longer allows it."""
    if verb.told:
        return texts(verb.told)
    if "status" not in record.resource.named:
        return texts("verb.not_now")
    return texts("verb.not_now_as", state=word_of(texts, record["status"], record.resource.noun))


def place_of(view: str, query: str) -> str:
    """Return where a list by due date is, below the list of all."""
    return f"due/{view}?{query}" if query else f"due/{view}"


def list_at(resource: Resource, where: str) -> str:
    """Return the address of a list: its query, or its place; both are text of the form."""
    fits = where.isascii() and where.isprintable() and len(where) <= 2_000 and "#" not in where
    path = f"/console/{resource.plural}"
    if not fits or not where:
        return path
    return f"{path}/{where}" if VIEW.match(where) else f"{path}?{where}"


def _heading(record: Record) -> str:
    """Return the number of a document, or the name of another record."""
    numbered = "number" in record.resource.named
    return str(record["number"]) if numbered else name_of(record)


def _page(
    request: web.Request,
    visitor: SignedIn,
    verb: Verb,
    record: Record,
    typed: Typed,
    answer: _Answer,
) -> web.Response:
    resource = record.resource
    context: dict[str, Any] = {
        "verb": verb, "record": record, "inputs": _inputs(verb, request[READER].texts),
        "typed": typed, "said": answer.said, "faults": answer.faults,
        "heading": _heading(record), "words": Words(request[READER].texts, resource),
        "total": record["total"] / 100 if "total" in resource.named else None,
        "offered": verb.offered(record),
    }  # fmt: skip
    return templates.render(request, visitor, "verb.html", context, status=answer.status)
