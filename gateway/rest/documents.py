"""Handles the sending of quotes and invoices: by mail, and by links for customers."""

from aiohttp import web
from msgspec import Struct

from gateway.domain.sales import document_links, sending
from gateway.domain.sales.quotes import QUOTES
from gateway.domain.storefront.mail import mail_tokens
from gateway.records import actions
from gateway.records.audit import Actor
from gateway.records.errors import Refusal
from gateway.records.record import Draft, Record
from gateway.records.resource import Field, Form, Resource
from gateway.records.values import dates, formats
from gateway.records.values.schemas import Instant
from gateway.rest.auth import authenticate
from gateway.rest.body import respond
from gateway.rest.document import shapes
from gateway.rest.document.describe import id_of
from gateway.rest.document.operations import Operation, operation
from gateway.rest.document.schema_parts import title_of
from gateway.rest.records import verb_with
from gateway.server.app_keys import CELLS, DB, IDS
from gateway.server.http.client_address import CLIENT
from gateway.server.installation import SITE
from outbox.database.transaction import Tx

SENDING = Form(
    noun="sending",
    description="To whom a document is sent.",
    fields=(
        Field(
            "email", "email", formats.email(),
            "Address to which a mail with the PDF file and a link goes.", None,
        ),
    ),
)  # fmt: skip
MOVES = ("invalid_transition", "conflict")


class Link(Struct, frozen=True, rename="camel"):
    """The address of a page for the customer, shown once, and its end."""

    url: str
    expires_at: Instant


class Ended(Struct, frozen=True):
    """How many links were ended."""

    ended: int


EXAMPLE = Link(
    "https://crm.example.com/documents?token=3q2-7wAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
    "2027-05-30T14:30:00.000Z",
)


def send(resource: Resource) -> Operation:
    """Return POST …/send: 200 with the document.

    Without `email` a quote is only marked as sent, and an invoice goes to its contact.
    """
    marks = resource is QUOTES

    async def send(tx: Tx, actor: Actor, record_id: str, draft: Draft) -> Record:
        await actions.own(tx, actor, resource, record_id, "write")
        draft.must_hold()
        address = draft.values.get("email")
        if marks and address is None:
            return await sending.mark(tx, actor, resource, record_id)
        return await sending.mail(tx, actor, resource, record_id, address)

    def ready(request: web.Request, draft: Draft) -> None:
        if marks and draft.values.get("email") is None:
            return
        if not request.app[SITE].sends_links:
            draft.unreadable = draft.unreadable or Refusal("conflict", sending.NO_MAIL)

    summary = "Send a quote" if marks else "Send an invoice by mail"
    return verb_with(resource, ("email",), send, summary, form=SENDING, ready=ready, refusals=MOVES)


def link(resource: Resource) -> Operation:
    """Return POST …/link: 201 with a new link for the customer."""

    async def handle(request: web.Request) -> web.Response:
        caller = await authenticate(request)
        app = request.app
        token = app[CELLS].marked(mail_tokens.make(app[IDS]), caller.owner_id)
        linked = await app[DB].write(
            sending.link, caller, resource, request.match_info["id"], token
        )
        client = request[CLIENT]
        site = app[SITE].public_url or f"{client.scheme}://{client.host}"
        where = f"{site}{document_links.PATH}?token={token}"
        return respond(Link(where, dates.show(linked.ends)), 201)

    return operation(
        f"link{title_of(resource)}", _tag(resource),
        f"Make a link for the customer of {_a(resource)}", shapes.struct(EXAMPLE), status=201,
        description="Whoever has the link reads the document without an account, for "
        f"{document_links.DAYS} days, and accepts or declines a quote. A draft becomes sent.",
        parameters=(id_of(resource.noun),), refusals=MOVES,
    )(handle)  # fmt: skip


def end_links(resource: Resource) -> Operation:
    """Return DELETE …/link: 200 after all links of a document have ended."""

    async def handle(request: web.Request) -> web.Response:
        caller = await authenticate(request)
        record_id = request.match_info["id"]
        return respond(
            Ended(await request.app[DB].write(sending.end_links, caller, resource, record_id))
        )

    return operation(
        f"endLinksOf{title_of(resource)}",
        _tag(resource),
        f"End all links to {_a(resource)}",
        shapes.struct(Ended(1)),
        parameters=(id_of(resource.noun),),
    )(handle)


def _tag(resource: Resource) -> str:
    return resource.plural.capitalize()


def _a(resource: Resource) -> str:
    return f"{'an' if resource.noun[0] in 'aeiou' else 'a'} {resource.noun}"
