"""Saves the leads of a store as contacts of its owner.

The result does not reveal whether the contact existed.
"""

from collections.abc import Mapping
from typing import Any

from gateway.domain.contacts import upsert
from gateway.domain.storefront.campaigns.ebooks import EBOOKS
from gateway.domain.storefront.visitors.shopper import Shopper
from gateway.records import store
from gateway.records.errors import Fault
from gateway.records.record import OWNER_ID, Record, check, record_of, refusal
from gateway.records.resource import Field, Form
from gateway.records.values import formats
from gateway.records.values.folding import filled
from outbox.database.transaction import Tx

LEAD = Form(
    noun="lead",
    description="A person who leaves an email address in a form of a store.",
    fields=(
        Field("name", "name", formats.title(), "Name.", "Maria da Silva"),
        Field("email", "email", formats.email(), "Email.", "maria@example.com", required=True),
        Field("phone", "phone", formats.phone(), "Phone number.", "(11) 98888-7777"),
        Field("source", "source", formats.title(100), "Label of the form.", "footer"),
        Field("company", "company", formats.title(), "Company.", "Acme Ltda"),
        Field("position", "position", formats.text(200), "Job title.", "Buyer"),
        Field(
            "acceptsMarketing", "accepts_marketing", formats.boolean(),
            "Whether the person accepts marketing.", True,
        ),
    ),
)  # fmt: skip
TAG = "lead"
EBOOK_TAG = "ebook"
KEPT = ("name", "phone", "company", "position", "acceptsMarketing")
"""The fields of the form that the note stores as they were sent."""


async def lead(tx: Tx, visitor: Shopper, sent: Mapping[str, Any]) -> Record:
    """Save a lead and return its contact. Raises the faults of the values."""
    return await _save(tx, visitor, sent, ["name", "email", "phone", "source"], [TAG])


async def ebook_lead(tx: Tx, visitor: Shopper, sent: Mapping[str, Any], ebook_id: str) -> str:
    """Save the lead of an e-book and return the URL of its file. Raises the faults of the values.

    An e-book that is inactive or of another store is unknown.
    """
    ebook = await _ebook(tx, visitor, ebook_id)
    takes = [field.name for field in LEAD.fields]
    await _save(tx, visitor, sent, takes, [TAG, EBOOK_TAG], ebook)
    url: str = ebook["file_url"]
    return url


async def _save(
    tx: Tx,
    visitor: Shopper,
    sent: Mapping[str, Any],
    takes: list[str],
    tags: list[str],
    ebook: Record | None = None,
) -> Record:
    draft = check(LEAD, filled(sent), creating=True, takes=takes)
    draft.must_hold()
    values = draft.values
    contact = await upsert.upsert(
        tx,
        visitor.actor,
        upsert.ContactDetails(
            email=values["email"],
            name=values.get("name"),
            phone=values.get("phone"),
            company=values.get("company"),
            position=values.get("position"),
            # A box that is not ticked withdraws no consent.
            tags=tags,
            consent=values.get("accepts_marketing") or None,
        ),
    )
    hostname: str = visitor.store["hostname"]
    metadata: dict[str, Any] = {"storeId": visitor.store.id, "hostname": hostname}
    text = f"Lead: {values.get('source') or hostname}"
    if ebook is not None:
        text += f" (e-book: {ebook['title']})"
        metadata["ebookId"] = ebook.id
    # The contact may keep other values, and the company may be unknown.
    metadata |= {name: draft.sent[name] for name in KEPT if name in draft.sent}
    await upsert.note(tx, visitor.actor, contact.id, text, metadata)
    return contact


async def _ebook(tx: Tx, visitor: Shopper, ebook_id: str) -> Record:
    row = await store.fetch(tx, EBOOKS, ebook_id)
    if row is not None and row[OWNER_ID] == visitor.store.owner_id:
        ebook = record_of(EBOOKS, row, tx.now, visitor.zone)
        if ebook["store_id"] == visitor.store.id and ebook["active"]:
            return ebook
    raise refusal([Fault("ebookId", "unknown", "This store has no such e-book.")])
