"""Sends quotes and invoices to customers, who decide about quotes by their link."""

from collections.abc import Mapping
from typing import Literal, NamedTuple

from gateway.domain.sales import document_links, document_mails, documents, invoices, quotes, sheets
from gateway.domain.sales.document_links import Opened
from gateway.records import actions, audit
from gateway.records.audit import Actor
from gateway.records.errors import Refusal
from gateway.records.record import Record
from gateway.records.resource import Resource
from outbox.database.transaction import Tx

Decision = Literal["accept", "reject"]
SENT: Mapping[str, tuple[str, ...]] = {
    "quote": ("draft", "sent", "accepted"),
    "invoice": ("pending", "paid"),
}
"""The states in which a document can be sent."""
NO_MAIL = "This server sends no mails: [mail] host or [server] public_url is not set. Send a link."


class Linked(NamedTuple):
    """A document, and when its new link ends."""

    document: Record
    ends: int


async def mail(
    tx: Tx, actor: Actor, resource: Resource, record_id: str, address: str | None
) -> Record:
    """Queue the mail of a document to an address, else to its contact; a draft becomes sent.

    Raises not_found, forbidden, invalid_transition, conflict, rate_limited.
    """
    document = await _send(tx, actor, resource, record_id)
    if address is None and document["contact_id"] is not None:
        source = await sheets.read(tx, actor, resource, document.id)
        address = source.contact["email"] if source.contact is not None else None
    if address is None:
        message = f"The contact of this {resource.noun} has no e-mail address; send `email`."
        raise Refusal("conflict", message)
    await document_mails.add(tx, document, address)
    audit.record(tx, actor, "sent", resource.noun, document.id)
    return document


async def link(tx: Tx, actor: Actor, resource: Resource, record_id: str, token: str) -> Linked:
    """Store a new link to a document; a draft becomes sent.

    Raises not_found, forbidden, invalid_transition, conflict.
    """
    document = await _send(tx, actor, resource, record_id)
    ends = await document_links.add(tx, actor.owner_id, resource.noun, document.id, token)
    audit.record(tx, actor, "sent", resource.noun, document.id, ["link"])
    return Linked(document, ends)


async def mark(tx: Tx, actor: Actor, resource: Resource, record_id: str) -> Record:
    """Mark a draft as sent by other means.

    Raises not_found, forbidden, invalid_transition, conflict.
    """
    if resource is quotes.QUOTES:
        return await quotes.send(tx, actor, record_id)
    return await _send(tx, actor, resource, record_id)


async def end_links(tx: Tx, actor: Actor, resource: Resource, record_id: str) -> int:
    """End all links to a document; return how many there were. Raises not_found, forbidden."""
    document = await actions.own(tx, actor, resource, record_id, "write", lock=True)
    ended = await document_links.end(tx, document.id)
    if ended:
        audit.record(tx, actor, "revoked", resource.noun, document.id, ["link"])
    return ended


async def decide(tx: Tx, opened: Opened, decision: Decision) -> bool:
    """Accept or reject the quote of a link for its customer; return whether this changed it.

    One that was decided before, has expired or was canceled stays as it is.
    """
    actor = customer_of(opened)
    quote = await actions.own(tx, actor, quotes.QUOTES, opened.record_id, "write", lock=True)
    if quote["status"] != "sent":
        return False
    await (quotes.accept if decision == "accept" else quotes.reject)(tx, actor, quote.id)
    return True


def customer_of(opened: Opened) -> Actor:
    """Return who acts by a link."""
    return Actor(opened.owner_id, "system", cause="customer", zone=opened.zone)


async def _send(tx: Tx, actor: Actor, resource: Resource, record_id: str) -> Record:
    document = await actions.own(tx, actor, resource, record_id, "write", lock=True)
    status = document["status"]
    if status == "draft":
        return await quotes.send(tx, actor, document.id)
    if status not in SENT[resource.noun]:
        table = quotes.TRANSITIONS if resource is quotes.QUOTES else invoices.TRANSITIONS
        # No state leads to `sent` from these, so this raises with the allowed states.
        documents.check_transition(resource.noun, table, status, "sent")
    return document
